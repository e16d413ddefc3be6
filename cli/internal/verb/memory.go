package verb

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// memoryResult is what the rack learned of attempts' memory and time.
type memoryResult struct{ *wire.MemoryReply }

func (r *memoryResult) human(w io.Writer) {
	if len(r.Sizes)+len(r.Speeds) == 0 {
		fmt.Fprintln(w, "nothing was measured yet: sizes are booked as workers compute them")
		return
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer table.Flush()
	if len(r.Sizes) > 0 {
		fmt.Fprint(table, "circuit\tstage\tdevices\tpool\tcomputed\tmeasured p50\tp99\tsamples\tbooked\tdrift\n")
	}
	for i := range r.Sizes {
		s := &r.Sizes[i]
		booked := s.Booked.String()
		if s.Pinned {
			booked += " (pinned)"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\n", oneLine(s.Circuit), oneLine(string(s.Stage)),
			cmp.Or(oneLine(s.Kind), "-"), oneLine(string(s.Pool)), sizeText(s.Computed), sizeText(s.P50), sizeText(s.P99),
			s.Samples, booked, driftText(s))
	}
	if len(r.Speeds) > 0 {
		fmt.Fprint(table, "\ncircuit\tnode\tdevice\tsynthesis\tdevice taken\tsamples\tlast\n")
	}
	for i := range r.Speeds {
		s := &r.Speeds[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d\t%s ago\n", oneLine(s.Circuit), s.Node, s.Device, timeText(s.Synthesis),
			timeText(s.Proof), s.Samples, ago(s.At))
	}
}

// sizeText is an amount that may not be known.
func sizeText(b bytesize.Bytes) string {
	if b == 0 {
		return "-"
	}
	return byteText(int64(b))
}

// timeText is a time that may not be known.
func timeText(d time.Duration) string {
	if d == 0 {
		return "-"
	}
	return d.Round(time.Millisecond).String()
}

// driftText says by how much measured peaks are off.
func driftText(s *wire.MemorySize) string {
	if s.Drift == "" || s.Computed == 0 {
		return "-"
	}
	return fmt.Sprintf("%s, %+.0f %%", oneLine(s.Drift), 100*(float64(s.P99)/float64(s.Computed)-1))
}

// memoryPinned is a pin that was changed, as it is listed then.
type memoryPinned struct{ wire.MemorySize }

func (r *memoryPinned) human(w io.Writer) {
	what := "booked as measured from now on"
	if r.Pinned {
		what = "pinned"
	}
	row(w, what, "%s of %s for %s of circuit %s on devices of kind %q", r.Booked, r.Pool, r.Stage,
		oneLine(r.Circuit), r.Kind)
}

func (a *app) memoryCommand() *cobra.Command {
	var flags rackFlags
	var circuit string
	c := &cobra.Command{
		Use:   "memory",
		Short: "show what attempts really take, beside what is computed and booked, and how fast devices are",
		Args:  a.unknownVerb,
		RunE: a.ordered(&flags, func(c *cobra.Command, _ []string, r *rack) error {
			reply, err := learned(c.Context(), r, &wire.MemoryRequest{Circuit: circuit})
			if err != nil {
				return err
			}
			return a.emit(&memoryResult{reply}, false)
		}),
	}
	flags.register(c)
	c.Flags().StringVar(&circuit, "circuit", "", "show this circuit alone")
	c.AddCommand(
		a.memoryPinCommand(wire.MemoryPin, "CIRCUIT STAGE POOL BYTES", 4,
			"book so many bytes for a stage of attempts, whatever is measured"),
		a.memoryPinCommand(wire.MemoryUnpin, "CIRCUIT STAGE POOL", 3, "take a pin away"))
	return c
}

// learned asks for what was learned, all pages of it.
func learned(ctx context.Context, r *rack, q *wire.MemoryRequest) (*wire.MemoryReply, error) {
	all := &wire.MemoryReply{}
	for {
		page := &wire.MemoryReply{}
		if err := r.admin(ctx, wire.AdminMemory, q, page); err != nil {
			return nil, err
		}
		speeds := append(all.Speeds, page.Speeds...)
		*all = *page
		all.Speeds, all.SpeedsNext = speeds, 0
		if page.SpeedsNext <= q.SpeedsAfter {
			return all, nil
		}
		q.SpeedsAfter, q.Do = page.SpeedsNext, ""
	}
}

func (a *app) memoryPinCommand(do, args string, count int, short string) *cobra.Command {
	var flags rackFlags
	var q wire.MemoryRequest
	c := &cobra.Command{
		Use:   do + " " + args,
		Short: short,
		Long: short + ".\nThe stage is " + string(job.Synthesizing) + " or " + string(job.Proving) +
			", the pool ram, shm, disk or vram, as \"proofrack memory\" lists them.",
		PreRunE: func(c *cobra.Command, args []string) error {
			if len(args) != count {
				return fail(usage, helpHint(c), "%d arguments are needed, not %d", count, len(args))
			}
			q.Do, q.Circuit, q.Stage, q.Pool = do, args[0], job.Stage(args[1]), ledger.Pool(args[2])
			if do == wire.MemoryPin {
				bytes, err := bytesize.Parse(args[3])
				if err != nil {
					return misuse("%w", err)
				}
				q.Bytes = bytes
			}
			if err := q.Check(); err != nil {
				return misuse("%w", err)
			}
			return nil
		},
		RunE: a.ordered(&flags, func(c *cobra.Command, _ []string, r *rack) error {
			pinned := memoryPinned{wire.MemorySize{Circuit: q.Circuit, Stage: q.Stage, Kind: q.Kind, Pool: q.Pool}}
			reply, err := learned(c.Context(), r, &q)
			if err != nil {
				return err
			}
			for _, s := range reply.Sizes {
				if s.Circuit == pinned.Circuit && s.Stage == pinned.Stage && s.Kind == pinned.Kind && s.Pool == pinned.Pool {
					pinned.MemorySize = s
				}
			}
			return a.emit(&pinned, false)
		}),
	}
	flags.register(c)
	c.Flags().StringVar(&q.Kind, "kind", "", "kind of devices, as it is listed; empty for devices without a model")
	return c
}
