package verb

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// flightFlags are the flags of flight.
type flightFlags struct {
	rack                    rackFlags
	timeline, picture, from string
	during, every           time.Duration
	check                   bool
}

// Bounds of recording.
const (
	flightEveryMin     = 100 * time.Millisecond
	flightDuringMax    = 24 * time.Hour
	flightPointsOfEach = 1 << 16
)

func (a *app) flightCommand() *cobra.Command {
	var flags flightFlags
	c := &cobra.Command{
		Use:   "flight [NODE]",
		Short: "show the large buffers of every process: how many, how far in their life, and which should be gone",
		Long: "flight shows what the processes of the rack, or of one node, have in large buffers, by class and stage.\n" +
			"With --timeline or --svg it records for a while first, and draws what it saw; --from draws a time line\n" +
			"that was recorded before, such as a worker's own from GET /flight/timeline.",
		RunE: func(c *cobra.Command, args []string) error {
			if err := flags.validate(c, args); err != nil {
				return err
			}
			if flags.from != "" {
				return a.drawFlight(&flags)
			}
			return a.ordered(&flags.rack, func(c *cobra.Command, args []string, r *rack) error {
				return a.flight(c, args, r, &flags)
			})(c, args)
		},
	}
	flags.rack.register(c)
	f := c.Flags()
	f.StringVar(&flags.timeline, "timeline", "", "record, and write the time line as JSON lines")
	f.StringVar(&flags.picture, "svg", "", "record, and draw the time line")
	f.StringVar(&flags.from, "from", "", "draw this time line; no rack is asked")
	f.DurationVar(&flags.during, "for", time.Minute, "how long to record")
	f.DurationVar(&flags.every, "every", time.Second, "how often to look while recording")
	f.BoolVar(&flags.check, "check", false, "fail when a buffer leaks or was counted wrongly")
	return c
}

func (f *flightFlags) validate(c *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return fail(usage, helpHint(c), "unexpected argument %q", args[1])
	case f.from != "" && (len(args) > 0 || f.picture == "" || f.timeline != "" || f.check):
		return fail(usage, helpHint(c), "--from goes with --svg alone")
	case f.every < flightEveryMin:
		return misuse("--every: must be at least %s, is %s", flightEveryMin, f.every)
	case f.during < 0 || f.during > flightDuringMax:
		return misuse("--for: must be 0 to %s, is %s", flightDuringMax, f.during)
	}
	return nil
}

// flight asks the rack, once or for a while.
func (a *app) flight(c *cobra.Command, args []string, r *rack, flags *flightFlags) error {
	var request wire.FlightRequest
	if len(args) == 1 {
		node, err := job.ParseNode(args[0])
		if err != nil {
			return misuse("%w", err)
		}
		request.Node = node
	}
	ask := func() (*wire.FlightReply, error) {
		var reply wire.FlightReply
		err := r.admin(c.Context(), wire.AdminFlight, &request, &reply)
		return &reply, err
	}
	reply, err := ask()
	if err != nil {
		return err
	}
	if flags.timeline != "" || flags.picture != "" {
		lines := newLines()
		lines.follow(time.Now(), reply)
		ticker := time.NewTicker(flags.every)
		defer ticker.Stop()
		for end := time.Now().Add(flags.during); time.Now().Before(end); {
			select {
			case <-c.Context().Done():
				return c.Context().Err()
			case now := <-ticker.C:
				if next, err := ask(); err == nil { // a leader that changes costs a look or two
					reply = next
					lines.follow(now, reply)
				}
			}
		}
		if err := a.writeFlight(flags, "rack", lines.points()); err != nil {
			return err
		}
	}
	if err := a.emit(&flightResult{reply}, flags.timeline == "-" || flags.picture == "-"); err != nil {
		return err
	}
	if flags.check {
		return checkFlight(reply)
	}
	return nil
}

// checkFlight fails for leaks and defects.
func checkFlight(reply *wire.FlightReply) error {
	if wrong := leaksOf(reply); len(wrong) > 0 {
		return fail(notReady, "restart that process: its memory is free then", "%s", wrong[0])
	}
	return nil
}

// leaksOf names buffers that should be gone, and processes that counted some wrongly.
func leaksOf(reply *wire.FlightReply) (wrong []string) {
	for i := range reply.Nodes {
		n := &reply.Nodes[i]
		for _, l := range n.Leaks {
			wrong = append(wrong, fmt.Sprintf("node %s: %s leaks %s %q (%s): %s", n.Node, oneLine(l.Process), l.Class, l.Label,
				l.Bytes, l.Why))
		}
		for k := range n.Reports {
			if r := &n.Reports[k]; r.Defects > 0 {
				wrong = append(wrong, fmt.Sprintf("node %s: %s counted %d buffers wrongly, the last: %s", n.Node,
					oneLine(r.Process), r.Defects, oneLine(r.Defect)))
			}
		}
	}
	return wrong
}

// writeFlight writes what was recorded.
func (a *app) writeFlight(flags *flightFlags, title string, points []flight.Point) error {
	if flags.timeline != "" {
		write := func(w io.Writer) error { return flight.WritePoints(w, points) }
		if err := a.writeOutput(flags.timeline, write); err != nil {
			return err
		}
	}
	if flags.picture != "" {
		return a.writeOutput(flags.picture, func(w io.Writer) error { return flight.Draw(w, title, points) })
	}
	return nil
}

// drawFlight draws a recorded time line.
func (a *app) drawFlight(flags *flightFlags) error {
	file, err := a.openInput(flags.from, "time line", "record one with --timeline")
	if err != nil {
		return err
	}
	defer file.Close()
	points, err := flight.ReadPoints(file)
	if err != nil {
		return fail(badInput, "record one with --timeline", "%s: %w", file.name, err)
	}
	return a.writeFlight(flags, file.name, points)
}

// lines are the time lines of processes, in the order in which they were seen first.
type lines struct {
	names []string
	byKey map[string]*flight.Timeline
}

func newLines() *lines { return &lines{byKey: map[string]*flight.Timeline{}} }

// follow notes what the rack has now. Processes that are not named any more are gone.
func (l *lines) follow(at time.Time, reply *wire.FlightReply) {
	seen := map[string]bool{}
	for i := range reply.Nodes {
		for k := range reply.Nodes[i].Reports {
			r := &reply.Nodes[i].Reports[k]
			if r.Check() != nil { // of a later build
				continue
			}
			name := fmt.Sprintf("%s %s", reply.Nodes[i].Node, r.Process)
			for n := 2; seen[name]; n++ { // a second worker of the same role
				name = fmt.Sprintf("%s %s %d", reply.Nodes[i].Node, r.Process, n)
			}
			seen[name] = true
			if l.byKey[name] == nil {
				l.byKey[name] = flight.NewTimeline(flightPointsOfEach)
				l.names = append(l.names, name)
			}
			l.byKey[name].Follow(at, r)
		}
	}
	for _, name := range l.names {
		if !seen[name] {
			l.byKey[name].Follow(at, &flight.Report{})
		}
	}
}

func (l *lines) points() (all []flight.Point) {
	for _, name := range l.names {
		all = append(all, l.byKey[name].Points(name)...)
	}
	slices.SortStableFunc(all, func(a, b flight.Point) int { return a.At.Compare(b.At) })
	return all
}

// flightResult is the buffers of the rack.
type flightResult struct{ *wire.FlightReply }

func (r *flightResult) human(w io.Writer) {
	if len(r.Nodes) == 0 {
		fmt.Fprintln(w, "no node has joined yet")
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer table.Flush()
	for i := range r.Nodes {
		printFlight(table, &r.Nodes[i])
	}
	if r.Left > 0 {
		fmt.Fprintf(table, "\n%d more nodes: ask for them by name\n", r.Left)
	}
}

func printFlight(w io.Writer, n *wire.FlightNode) {
	state := "at work"
	if n.Idle {
		state = "idle, assets alone are left"
	}
	fmt.Fprintf(w, "node %s: %s, seen %s ago\n", n.Node, state, ago(n.SeenAt))
	fmt.Fprint(w, "  process\tclass\tnow\thighest\tgiven back\tback within\n")
	for i := range n.Reports {
		r := &n.Reports[i]
		for k := range r.Classes {
			c := &r.Classes[k]
			fmt.Fprintf(w, "  %s\t%s\t%s\t%d x %s\t%d\t%s\n", oneLine(r.Process), c.Class, liveText(c), c.HighPieces,
				c.HighBytes, c.GonePieces, lagText(c.Lag))
		}
		if r.RSSBytes > 0 {
			fmt.Fprintf(w, "  %s\tother\t%s of %s resident\t\t\t\n", oneLine(r.Process), r.BeyondBytes, r.RSSBytes)
		}
		if r.Pending+r.Waiting > 0 {
			fmt.Fprintf(w, "  %s\tproofs\t%d pending, %d waiting\t\t\t\n", oneLine(r.Process), r.Pending, r.Waiting)
		}
		if r.Defects > 0 {
			fmt.Fprintf(w, "  %s\tDEFECTS\t%d, the last: %s\t\t\t\n", oneLine(r.Process), r.Defects, oneLine(r.Defect))
		}
	}
	for i := range n.Leaks {
		l := &n.Leaks[i]
		fmt.Fprintf(w, "  %s\t%s\tLEAK of %s: %s, %s, %s old: %s\t\t\t\n", oneLine(l.Process), l.Class, l.Bytes,
			oneLine(l.Label), l.Stage, time.Duration(l.AgeMS)*time.Millisecond, l.Why)
	}
}

// liveText lists what is live by stage.
func liveText(c *flight.ClassReport) string {
	parts := make([]string, 0, len(c.Live))
	for _, n := range c.Live {
		parts = append(parts, fmt.Sprintf("%d %s %s", n.Pieces, n.Stage, n.Bytes))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// lagText tells within what time all but one in a hundred were back.
func lagText(lag []uint64) string {
	var all, sum uint64
	for _, n := range lag {
		all += n
	}
	if all == 0 {
		return ""
	}
	for i, bound := range flight.LagBounds() {
		if i < len(lag) {
			sum += lag[i]
		}
		if sum*100 >= all*99 {
			return bound.String()
		}
	}
	return "longer"
}
