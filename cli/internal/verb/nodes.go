package verb

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// nodesResult is the rack.
type nodesResult struct{ *wire.NodesReply }

func (r *nodesResult) human(w io.Writer) {
	state := "ready"
	if !r.Ready {
		state = "not ready: " + sentence(r.Reason)
	}
	row(w, "rack", "%s", state)
	row(w, "leader", "%s, term %d", r.Leader, r.Term)
	if r.Paused {
		row(w, "intake", "paused")
	}
	row(w, "work", "%s", r.work())
	if len(r.Nodes) == 0 {
		row(w, "nodes", "none has joined yet")
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer table.Flush()
	for i := range r.Nodes {
		printNode(table, &r.Nodes[i])
	}
}

// work says what waits and runs. Nothing to do is no fault (B103).
func (r *nodesResult) work() string {
	running := 0
	for i := range r.Nodes {
		running += r.Nodes[i].Running
	}
	if r.Waiting == 0 && running == 0 {
		return "idle: no partition waits or runs"
	}
	return fmt.Sprintf("%s partitions wait, %d run", countText(r.Waiting), running)
}

func printNode(w io.Writer, n *wire.NodeView) {
	state := "ready"
	switch {
	case n.Draining:
		state = "draining"
	case n.Cordoned:
		state = "cordoned"
	case !n.Ready:
		state = "not ready: " + sentence(n.Reason)
	}
	fmt.Fprintf(w, "\nnode %s\t%s\tseen %s ago\t%d running\n", n.Node, state, ago(n.SeenAt), n.Running)
	for _, p := range n.Processes {
		text := p.State
		if reason := strings.TrimPrefix(sentence(p.Reason), p.State+": "); reason != "" {
			text += ": " + reason
		}
		host := ""
		if p.Host {
			host = "speaks for the host"
		}
		fmt.Fprintf(w, "  %s\t%s\tbuild %s, wire %d-%d\t%s\n", p.Role, text, p.Build, p.WireMin, p.WireMax, host)
	}
	for _, d := range n.Devices {
		text := "healthy"
		switch {
		case d.Quarantined:
			text = "quarantined: " + sentence(d.Reason)
		case !d.Healthy:
			text = "unhealthy: " + sentence(d.Reason)
		}
		fmt.Fprintf(
			w,
			"  device %s\t%s\t%s\tproves %s\n",
			d.Device,
			text,
			cmp.Or(d.Name, d.UUID),
			cmp.Or(strings.Join(d.Circuits, ", "), "nothing"),
		)
	}
	for _, pool := range n.Capacity.Pools() {
		fmt.Fprintf(w, "  %s\t%s of %s held\n", pool, n.Reserved[pool], n.Capacity[pool])
	}
}

func (a *app) nodesCommand() *cobra.Command {
	var flags rackFlags
	c := &cobra.Command{
		Use:   "nodes",
		Short: "show the rack; fails until it is ready",
		Args:  noArgs,
		RunE: a.ordered(&flags, func(c *cobra.Command, _ []string, r *rack) error {
			reply, err := paged(c.Context(), r, client.Nodes)
			if err != nil {
				return err
			}
			if err := a.emit(&nodesResult{reply}, false); err != nil {
				return err
			}
			if !reply.Ready {
				return fail(notReady, "", "the rack is not ready: %s", reply.Reason)
			}
			return nil
		}),
	}
	flags.register(c)
	c.AddCommand(a.forgetCommand(), a.readmitCommand())
	return c
}

// drainResult is how far a drain is.
type drainResult struct {
	*wire.DrainReply
	undone bool
}

func (r *drainResult) human(w io.Writer) {
	if r.undone {
		row(w, "drain", "undone: it takes work again")
		return
	}
	if r.Drained {
		row(w, "drained", "nothing runs any more")
		return
	}
	row(w, "draining", "%d partitions still run, about %s to go", r.Running, r.Estimate.Round(time.Second))
}

func (a *app) drainCommand() *cobra.Command {
	var flags rackFlags
	var request wire.DrainRequest
	var wait bool
	var all bool
	c := &cobra.Command{
		Use:   "drain NODE | drain --all",
		Short: "give a node, or the whole rack, no new work, and let what runs end",
		PreRunE: func(c *cobra.Command, args []string) error {
			switch {
			case all == (len(args) == 1) || len(args) > 1:
				return fail(usage, helpHint(c), "name one node, or --all for the whole rack")
			case all:
				return nil
			}
			node, err := job.ParseNode(args[0])
			if err != nil {
				return misuse("%w", err)
			}
			request.Node = node
			return nil
		},
		RunE: a.ordered(&flags, func(c *cobra.Command, _ []string, r *rack) error {
			for {
				var reply wire.DrainReply
				if err := r.admin(c.Context(), wire.AdminDrain, &request, &reply); err != nil {
					return err
				}
				if !wait || reply.Drained || request.Undo {
					return a.emit(&drainResult{&reply, request.Undo}, false)
				}
				select {
				case <-c.Context().Done():
					return fail(interrupted, "--undo takes it back", "interrupted; the drain goes on")
				case <-time.After(time.Second):
				}
			}
		}),
	}
	flags.register(c)
	c.Flags().BoolVar(&all, "all", false, "the whole rack")
	c.Flags().BoolVar(&request.Undo, "undo", false, "give it work again")
	c.Flags().BoolVar(&request.Cordon, "cordon", false, "no new work, but the node stays")
	c.Flags().BoolVar(&wait, "wait", false, "wait until nothing runs any more")
	return c
}

// intakeResult is the state of intake.
type intakeResult struct {
	Paused bool `json:"paused"`
}

func (r *intakeResult) human(w io.Writer) {
	if r.Paused {
		row(w, "intake", "paused: submits are refused, accepted jobs go on")
		return
	}
	row(w, "intake", "open")
}

func (a *app) intakeCommand() *cobra.Command {
	verb := func(name, short string, pause bool) *cobra.Command {
		var flags rackFlags
		var why string
		c := &cobra.Command{
			Use:   name,
			Short: short,
			Args:  noArgs,
			RunE: a.ordered(&flags, func(c *cobra.Command, _ []string, r *rack) error {
				request := &wire.IntakeRequest{Pause: pause, Reason: why}
				if err := r.admin(c.Context(), wire.AdminIntake, request, &wire.Reply{}); err != nil {
					return err
				}
				return a.emit(&intakeResult{Paused: pause}, false)
			}),
		}
		flags.register(c)
		if pause {
			c.Flags().StringVar(&why, "reason", "", "what clients are told")
		}
		return c
	}
	return a.group("intake", "pause or resume taking jobs",
		verb("pause", "refuse submits; accepted jobs go on", true), verb("resume", "take submits again", false))
}

// lettersResult is a list of dead letters.
type lettersResult struct{ *wire.DLQReply }

func (r *lettersResult) human(w io.Writer) {
	if len(r.Letters)+len(r.Messages) == 0 {
		fmt.Fprintln(w, "no dead letters")
		return
	}
	for i := range r.Letters {
		l := &r.Letters[i]
		row(w, string(l.Job), "%s of tenant %s, %s ago: %s", l.Circuit, l.Tenant, ago(l.At), sentence(l.Fault.Message))
		if l.Record != nil {
			(&jobResult{Record: l.Record}).human(w)
		}
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		row(w, "message", "%s on %s, %s ago: %s; it begins %q", byteText(int64(m.Bytes)), oneLine(m.Subject), ago(m.At),
			sentence(m.Reason), m.Start)
	}
}

func (a *app) dlqCommand() *cobra.Command {
	verb := func(name, short string, needsJob, replay bool) *cobra.Command {
		var flags rackFlags
		c := &cobra.Command{
			Use:   name,
			Short: short,
			Args:  noArgs,
			RunE: a.ordered(&flags, func(c *cobra.Command, args []string, r *rack) error {
				if !needsJob {
					all, err := paged(c.Context(), r, client.Letters)
					if err != nil {
						return err
					}
					return a.emit(&lettersResult{all}, false)
				}
				id, err := jobArg(args)
				if err != nil {
					return err
				}
				request := &wire.DLQRequest{Job: id, Replay: replay}
				var reply wire.DLQReply
				if err := r.admin(c.Context(), wire.AdminDLQ, request, &reply); err != nil {
					return err
				}
				return a.emit(&lettersResult{&reply}, false)
			}),
		}
		if needsJob {
			c.Args = oneJob(`"proofrack dlq list" lists the dead letters`)
		}
		flags.register(c)
		return c
	}
	return a.group("dlq", "look at jobs that failed for good, and try them again",
		verb("list", "list the dead letters", false, false),
		verb("show JOB", "show one with its record", true, false),
		verb("replay JOB", "make the job active again with fresh budgets; finished partitions stay finished", true, true))
}

// ledgerResult is the ledger.
type ledgerResult struct{ *wire.LedgerReply }

func (r *ledgerResult) human(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer table.Flush()
	if len(r.Nodes) == 0 {
		fmt.Fprintln(w, "no node has a book yet")
	}
	for i := range r.Nodes {
		n := &r.Nodes[i]
		note := ""
		if !n.Declared {
			note = "\tnot declared: nothing is granted until it says what it holds"
		}
		fmt.Fprintf(table, "node %s%s\n", n.Node, note)
		for _, pool := range n.Capacity.Pools() {
			fmt.Fprintf(table, "  %s\t%s of %s held\n", pool, n.Held[pool], n.Capacity[pool])
		}
		for _, e := range n.Entries {
			text := "since " + ago(e.Since)
			if e.Limbo {
				text += ", in limbo: its lease ended, its bytes are not known to be gone"
			} else if e.LeaseAt != nil {
				text += fmt.Sprintf(", lease for %.0f s", time.Until(*e.LeaseAt).Seconds())
			}
			fmt.Fprintf(table, "    %s\t%s\t%s\n", e.Name, e.Amounts, text)
		}
	}
}

func (a *app) ledgerCommand() *cobra.Command {
	var flags rackFlags
	c := &cobra.Command{
		Use:   "ledger",
		Short: "show who holds which bytes of every node",
		Args:  noArgs,
		RunE: a.ordered(&flags, func(c *cobra.Command, _ []string, r *rack) error {
			reply, err := paged(c.Context(), r, client.Ledger)
			if err != nil {
				return err
			}
			return a.emit(&ledgerResult{reply}, false)
		}),
	}
	flags.register(c)
	c.AddCommand(a.unbookCommand())
	return c
}

// auditResult is a page of audit records.
type auditResult struct{ *wire.AuditReply }

func (r *auditResult) human(w io.Writer) {
	if len(r.Records) == 0 && !r.More {
		fmt.Fprintln(w, "no records")
		return
	}
	for i := range r.Records {
		rec := &r.Records[i]
		row(w, string(rec.Job), "%s sector %d of %s, tenant %s, ended %s", rec.Circuit, rec.SectorNumber, rec.Miner,
			rec.Tenant, rec.EndedAt.Local().Format(time.DateTime))
		row(w, "", "input %s", rec.InputHash)
		row(w, "", "parameters %s", cmp.Or(rec.ParamsDigest, "not told"))
		row(w, "", "proof %s, %d attempts, made by %s", rec.ProofSHA256, rec.AttemptCount, strings.Join(makers(rec), ", "))
	}
	if r.More {
		row(w, "", "further records: --after %s", r.Next)
	}
}

// makers are where a proof's partitions were made and by which builds, each once.
func makers(rec *wire.Audit) (all []string) {
	for i := range rec.Attempts {
		at := &rec.Attempts[i]
		maker := fmt.Sprintf("%s/%s (%s)", at.Node, at.Device, cmp.Or(oneLine(at.Build), "unknown build"))
		if !slices.Contains(all, maker) {
			all = append(all, maker)
		}
	}
	return all
}

func (a *app) auditCommand() *cobra.Command {
	var flags rackFlags
	var request wire.AuditRequest
	var after string
	var since time.Duration
	var all bool
	c := &cobra.Command{
		Use:   "audit",
		Short: "export what is kept of every proof: input, parameters, node, device, build, attempts",
		Args:  noArgs,
		RunE: a.ordered(&flags, func(c *cobra.Command, _ []string, r *rack) error {
			request.After = job.ID(after)
			if since > 0 {
				at := time.Now().Add(-since)
				request.Since = &at
			}
			for told := false; ; {
				var reply wire.AuditReply
				if err := r.admin(c.Context(), wire.AdminAudit, &request, &reply); err != nil {
					return err
				}
				if request.After = reply.Next; request.After == "" && reply.More && len(reply.Records) > 0 {
					request.After = reply.Records[len(reply.Records)-1].Job // of an older build
				}
				further := all && reply.More && request.After != ""
				if all {
					reply.More, reply.Next = false, ""
				}
				if len(reply.Records) > 0 || !further && !told {
					if err := a.emit(&auditResult{&reply}, false); err != nil {
						return err
					}
					told = true
				}
				if !further {
					return nil
				}
			}
		}),
	}
	flags.register(c)
	spanVar(c, &since, "since", 0, "only of this last time")
	c.Flags().StringVar(&after, "after", "", "the page after this job")
	c.Flags().IntVar(&request.Limit, "limit", 0, "length of a page")
	c.Flags().BoolVar(&all, "all", false, "all pages; with --json one document each")
	return c
}
