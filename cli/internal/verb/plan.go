package verb

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/coordinator/plan"
	"github.com/proofrack/proofrack/shared/fault"
)

// planFlags are the flags of plan.
type planFlags struct {
	nodes, jobs, profile, picture string
}

// planResult is a plan.
type planResult struct {
	*plan.Report
	Picture string `json:"picture,omitempty"`
}

func (a *app) planCommand() *cobra.Command {
	var flags planFlags
	c := &cobra.Command{
		Use:   "plan --nodes FILE --jobs FILE",
		Short: "tell what a rack would do with a load: proofs an hour, memory, bottleneck, cost",
		Long: "plan runs the scheduler in simulated time, with stage times and sizes from a profile. docs/plan.md\n" +
			"describes the files. Nothing is started, and nothing of a running rack is asked.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := required(c, "nodes", "jobs"); err != nil {
				return err
			}
			return a.plan(c.Context(), &flags)
		},
	}
	c.Flags().StringVar(&flags.nodes, "nodes", "", "machines, policy and prices (TOML)")
	c.Flags().StringVar(&flags.jobs, "jobs", "", "jobs (TOML)")
	c.Flags().StringVar(&flags.profile, "profile", "proofrack-card-32gib", "a shipped profile, or a file of one")
	c.Flags().StringVar(&flags.picture, "picture", "", "draw stages and memory over time into FILE.svg or FILE.html")
	c.AddCommand(a.planHistoryCommand(), a.planProfileCommand())
	return c
}

func (a *app) plan(ctx context.Context, flags *planFlags) error {
	kind := filepath.Ext(flags.picture)
	if flags.picture != "" && kind != ".svg" && kind != ".html" {
		return misuse("--picture %q: the name must end in .svg or .html", flags.picture)
	}
	profile, err := a.openProfile(flags.profile)
	if err != nil {
		return err
	}
	rack, err := readPlan(a, flags.nodes, "nodes file", plan.ReadRack)
	if err != nil {
		return err
	}
	load, err := readPlan(a, flags.jobs, "jobs file", plan.ReadLoad)
	if err != nil {
		return err
	}
	report, err := plan.Make(ctx, profile, rack, load)
	if err != nil {
		return planFailure(err)
	}
	if flags.picture != "" {
		draw := report.Result.WriteSVG
		if kind == ".html" {
			draw = report.Result.WriteHTML
		}
		title := fmt.Sprintf("%s, policy %s", profile.Name, rack.Policy.Name)
		if err := a.writeOutput(flags.picture, func(w io.Writer) error { return draw(w, title) }); err != nil {
			return err
		}
	}
	return a.emit(&planResult{report, flags.picture}, false)
}

// openProfile reads a shipped profile by name, or a file.
func (a *app) openProfile(name string) (*plan.Profile, error) {
	if slices.Contains(plan.Shipped(), name) || !strings.ContainsAny(name, "./") {
		profile, err := plan.OpenShipped(name)
		return profile, planFailure(err)
	}
	return readPlan(a, name, "profile", plan.ReadProfile)
}

// planHint says where the formats are.
const planHint = "docs/plan.md has examples"

// readPlan opens a file for one of plan's readers.
func readPlan[T any](a *app, path, what string, read func(io.Reader, string) (T, error)) (T, error) {
	var none T
	file, err := a.openInput(path, what, planHint)
	if err != nil {
		return none, err
	}
	defer file.Close()
	value, err := read(file, file.name)
	if err != nil {
		return none, planFailure(err)
	}
	return value, nil
}

// planFailure gives an error of plan the exit code of its kind.
func planFailure(err error) error {
	if err == nil {
		return nil
	}
	hint := ""
	var hinted interface{ Hint() string }
	if errors.As(err, &hinted) {
		hint = hinted.Hint()
	}
	switch fault.KindOf(err) {
	case fault.Invalid, fault.NotFound:
		return fail(badInput, hint, "%w", err)
	case fault.Exhausted:
		return fail(noRoom, hint, "%w", err)
	default:
	}
	return err
}

func (r *planResult) human(w io.Writer) {
	s := r.Result
	row(w, "profile", "%s, policy %s", oneLine(r.Profile), r.Policy.Name)
	row(w, "proofs", "%d in %.0f s: %.1f s each, %.1f an hour", s.Jobs, s.Makespan, s.SecondsPerProof, s.ProofsPerHour)
	row(w, "a proof takes", "median %.0f s, longest %.0f s; a partition waited %.0f s at most", s.JobMedian, s.JobLongest,
		s.LongestWait)
	if s.Killed != nil {
		k := s.Killed
		row(w, "killed", "node %s after %.0f s: it held %s of %s and has %s; %d partitions waited for a device", k.Node,
			k.At, k.Held, k.Pool, k.Capacity, k.Sealed)
	}
	row(w, "bottleneck", "%s", s.Bottleneck)
	row(w, "devices idle", "%.1f %% of the time%s", 100*s.DeviceIdle, idleText(s.IdleBecause))
	if c := s.Cost; c != nil {
		row(w, "cost of a proof", "%.4f %s: machines %.4f, power %.4f (%.3f kWh)", c.PerProof, oneLine(c.Currency),
			c.MachinesPerProof, c.PowerPerProof, c.KWhPerProof)
	}
	if r.Picture != "" {
		row(w, "picture", "%s", r.Picture)
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprint(table, "\nnode\tdevice or pool\tpeak booked\tpeak held\tof\tidle\tpartitions\n")
	for i := range s.Nodes {
		n := &s.Nodes[i]
		for _, d := range n.Devices {
			fmt.Fprintf(table, "%s\t%s %s\t\t\t\t%.1f %%\t%d\n", n.Name, d.Name, oneLine(d.Kind), 100*d.IdleShare,
				d.Partitions)
		}
		for _, p := range n.Pools {
			if p.Booked > 0 || p.Held > 0 {
				fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t\t\n", n.Name, p.Pool, p.Booked, p.Held, p.Capacity)
			}
		}
	}
	fmt.Fprint(table, "\none more\tproofs an hour\tgain\tcost of a proof\n")
	for _, m := range r.More {
		cost := "–"
		if m.PerProof > 0 {
			cost = fmt.Sprintf("%.4f %s", m.PerProof, oneLine(s.Cost.Currency))
		}
		fmt.Fprintf(table, "%s\t%.1f\t%+.1f\t%s\n", m.Kind, m.ProofsPerHour, m.Gain, cost)
	}
}

// idleText names the causes of idle devices, the largest first.
func idleText(because map[plan.Cause]float64) string {
	causes := sortedKeys(because)
	slices.SortStableFunc(causes, func(a, b plan.Cause) int {
		switch {
		case because[a] > because[b]:
			return -1
		case because[a] < because[b]:
			return 1
		}
		return 0
	})
	var parts []string
	for _, c := range causes {
		if because[c] >= 0.0005 {
			parts = append(parts, fmt.Sprintf("%s %.1f %%", c, 100*because[c]))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return ": " + strings.Join(parts, ", ")
}

// recordResult is a record that is printed as it is.
type recordResult struct {
	Record string `json:"record"`
}

func (r *recordResult) human(w io.Writer) { fmt.Fprint(w, r.Record) }

func (a *app) planHistoryCommand() *cobra.Command {
	var pictures string
	c := &cobra.Command{
		Use:   "history",
		Short: "hold the planner against the published history of a one-box prover (Markdown)",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var record bytes.Buffer
			if err := plan.WriteHistory(c.Context(), &record); err != nil {
				return err
			}
			if pictures != "" {
				drawn, err := plan.HistoryPictures(c.Context())
				if err != nil {
					return err
				}
				for _, name := range sortedKeys(drawn) {
					if err := a.writeOutput(filepath.Join(pictures, name), drawn[name]); err != nil {
						return err
					}
				}
			}
			return a.emit(&recordResult{record.String()}, false)
		},
	}
	c.Flags().StringVar(&pictures, "pictures", "", "also write its pictures into this folder")
	return c
}
