package verb

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// jobsResult is a page of jobs.
type jobsResult struct{ *wire.JobsReply }

func (r *jobsResult) human(w io.Writer) {
	if len(r.Jobs) == 0 {
		fmt.Fprintln(w, "no jobs")
		return
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "JOB\tSTATE\tPROVED\tCIRCUIT\tMINER\tSECTOR\tAGE\tKEY")
	for i := range r.Jobs {
		j := &r.Jobs[i]
		fmt.Fprintf(
			table,
			"%s\t%s\t%d/%d\t%s\t%s\t%d\t%s\t%s\n",
			j.ID,
			j.State,
			j.Verified,
			j.Partitions,
			j.Circuit,
			j.Miner,
			j.SectorNumber,
			ago(j.SubmittedAt),
			oneLine(j.Key),
		)
	}
	if r.More {
		fmt.Fprintf(table, "further jobs: --before %s\n", r.Jobs[len(r.Jobs)-1].ID)
	}
}

func (a *app) jobsCommand() *cobra.Command {
	var flags rackFlags
	var state, before string
	var limit int
	var all bool
	var request wire.JobsRequest
	c := &cobra.Command{
		Use:   "jobs",
		Short: "list the tenant's jobs, newest first",
		Args:  noArgs,
		PreRunE: func(*cobra.Command, []string) error {
			request = wire.JobsRequest{State: job.State(state), Before: job.ID(before), Limit: limit}
			if err := request.Check(); err != nil {
				return misuse("%w", err)
			}
			return nil
		},
		RunE: a.askedAs(&flags, func() string {
			if all {
				return asOperator
			}
			return asTenant
		}, func(c *cobra.Command, _ []string, r *rack) error {
			if all {
				var reply wire.JobsReply
				if err := r.admin(c.Context(), wire.AdminJobs, &request, &reply); err != nil {
					return err
				}
				return a.emit(&jobsResult{&reply}, false)
			}
			ctx, cancel := r.within(c.Context())
			defer cancel()
			reply, err := r.client.Jobs(ctx, request)
			if err != nil {
				return refused(err)
			}
			return a.emit(&jobsResult{reply}, false)
		}),
	}
	flags.register(c)
	c.Flags().StringVar(&state, "state", "", "only those that are active, cancelling, done, failed or cancelled")
	c.Flags().StringVar(&before, "before", "", "the page after this job")
	c.Flags().IntVar(&limit, "limit", 0, "length of a page, 100 when 0")
	c.Flags().BoolVar(&all, "all-tenants", false, "of all tenants, as an operator")
	return c
}

// jobResult is one job.
type jobResult struct {
	Record *job.Record `json:"record"`
	Live   []wire.Live `json:"live,omitempty"`
	Out    string      `json:"out,omitempty"`
}

func (r *jobResult) human(w io.Writer) {
	record := r.Record
	row(w, "job", "%s", record.ID)
	row(w, "state", "%s: %d of %d partitions of %s proved", record.State, record.VerifiedCount(), len(record.Partitions),
		record.Circuit)
	row(w, "sector", "%d of miner %s", record.SectorNumber, record.Miner)
	if record.Key != "" {
		row(w, "key", "%s", oneLine(record.Key))
	}
	row(w, "submitted", "%s, %s ago", record.SubmittedAt.Local().Format(time.DateTime), ago(record.SubmittedAt))
	if record.EndedAt != nil {
		row(w, "time", "%.2f s", record.EndedAt.Sub(record.SubmittedAt).Seconds())
	}
	if record.Fault != nil {
		row(w, "reason", "%s (%s)", sentence(record.Fault.Message), record.Fault.Kind)
		if record.Fault.Hint != "" {
			row(w, "", "%s", sentence(record.Fault.Hint))
		}
	}
	if record.Output == job.OutputPartitions {
		row(w, "output", "the partitions' proofs in order, as input for aggregation: no proof the chain takes")
	}
	if record.Result != nil {
		row(w, "proof", "%d bytes, verified, SHA-256 %s", record.Result.Bytes, record.Result.SHA256)
	}
	if r.Out != "" {
		row(w, "written to", "%s", r.Out)
	}
	for i := range record.Partitions {
		printPartition(w, i, &record.Partitions[i])
	}
}

// printPartition prints one line per partition and one per attempt.
func printPartition(w io.Writer, index int, p *job.Partition) {
	line := string(p.Stage)
	if p.Stage.Running() {
		line += fmt.Sprintf(" on %s/%s for %s", p.Node, p.Device, ago(p.StageAt))
	}
	if p.FailedCount > 0 || p.LostCount > 0 {
		line += fmt.Sprintf(" (%d attempts failed, %d lost)", p.FailedCount, p.LostCount)
	}
	if p.NotBefore != nil {
		line += ", next at " + p.NotBefore.Local().Format(time.TimeOnly)
	}
	row(w, fmt.Sprintf("partition %d", index), "%s", line)
	for i := range p.Attempts {
		at := &p.Attempts[i]
		text := fmt.Sprintf(
			"%s  %s/%s  %s",
			at.StartedAt.Local().Format(time.TimeOnly),
			at.Node,
			at.Device,
			cmp.Or(string(at.Outcome), "running"),
		)
		if at.EndedAt != nil {
			text += fmt.Sprintf(" after %.1f s", at.EndedAt.Sub(at.StartedAt).Seconds())
		}
		if at.Handoff != "" {
			text += ", handed over in " + at.Handoff
			if at.HandoffReason != "" {
				text += " (" + oneLine(at.HandoffReason) + ")"
			}
		}
		if times := timesOf(at.Seconds); times != "" {
			text += ", " + times
		}
		if at.Fault != nil {
			text += ": " + sentence(at.Fault.Message)
		}
		if at.TraceID != "" {
			text += " (trace " + at.TraceID + ")"
		}
		row(w, "", "  %s", text)
	}
}

// shownSeconds is what people are told of; the record has all.
const shownSeconds = 0.005

func timesOf(seconds map[string]float64) string {
	var parts []string
	for _, name := range sortedKeys(seconds) {
		if seconds[name] >= shownSeconds {
			parts = append(parts, fmt.Sprintf("%s %.2f s", name, seconds[name]))
		}
	}
	return strings.Join(parts, ", ")
}

func (a *app) jobCommand() *cobra.Command {
	var flags rackFlags
	c := &cobra.Command{
		Use:   "job JOB",
		Short: "show a job with every attempt",
		Args:  oneJob(jobHint),
		RunE: a.asked(&flags, func(c *cobra.Command, args []string, r *rack) error {
			id, err := jobArg(args)
			if err != nil {
				return err
			}
			ctx, cancel := r.within(c.Context())
			defer cancel()
			status, err := r.client.Status(ctx, id)
			if err != nil {
				return refused(err)
			}
			return a.emit(&jobResult{Record: status.Record, Live: status.Live}, false)
		}),
	}
	flags.register(c)
	return c
}

func (a *app) watchCommand() *cobra.Command {
	var flags rackFlags
	var limit time.Duration
	c := &cobra.Command{
		Use:   "watch JOB",
		Short: "follow a job until it has ended",
		Args:  oneJob(jobHint),
		RunE: a.asked(&flags, func(c *cobra.Command, args []string, r *rack) error {
			id, err := jobArg(args)
			if err != nil {
				return err
			}
			ended, err := a.await(c.Context(), r, id, limit)
			if err != nil {
				return err
			}
			return a.deliver(c.Context(), r, ended, ended, "", nil)
		}),
	}
	flags.register(c)
	spanVar(c, &limit, "wait", 0, "wait this long at most; the job goes on")
	return c
}

// whyResult is why a job waits.
type whyResult struct{ *wire.WhyReply }

func (r *whyResult) human(w io.Writer) {
	row(w, "state", "%s", r.State)
	if len(r.Reasons) == 0 {
		row(w, "", "nothing of it waits")
	}
	for i := range r.Reasons {
		reason := &r.Reasons[i]
		row(w, partitionsText(reason.Partitions), "%s", oneLine(reason.Text))
		for _, h := range reason.Holders {
			line := fmt.Sprintf("  %s holds %s", h.Name, h.Bytes)
			if h.Since != nil {
				line += " for " + ago(*h.Since)
			}
			row(w, "", "%s", line)
		}
	}
}

// partitionsText names partitions: "partition 3", "partitions 0, 1, 2 and 7 more".
func partitionsText(indices []int) string {
	if len(indices) == 1 {
		return fmt.Sprintf("partition %d", indices[0])
	}
	var names []string
	for _, i := range indices[:min(len(indices), 3)] {
		names = append(names, fmt.Sprint(i))
	}
	text := "partitions " + strings.Join(names, ",")
	if more := len(indices) - 3; more > 0 {
		text += fmt.Sprintf(" +%d", more)
	}
	return text
}

func (a *app) whyCommand() *cobra.Command {
	var flags rackFlags
	c := &cobra.Command{
		Use:   "why JOB",
		Short: "say why a job waits: the pool, the missing bytes and who holds them",
		Args:  oneJob(jobHint),
		RunE: a.asked(&flags, func(c *cobra.Command, args []string, r *rack) error {
			id, err := jobArg(args)
			if err != nil {
				return err
			}
			ctx, cancel := r.within(c.Context())
			defer cancel()
			reply, err := r.client.Why(ctx, id)
			if err != nil {
				return refused(err)
			}
			return a.emit(&whyResult{reply}, false)
		}),
	}
	flags.register(c)
	return c
}

// cancelResult is a cancelled job.
type cancelResult struct {
	Job   job.ID    `json:"job_id"`
	State job.State `json:"state"`
}

func (r *cancelResult) human(w io.Writer) { row(w, "job", "%s is %s", r.Job, r.State) }

func (a *app) cancelCommand() *cobra.Command {
	var flags rackFlags
	var why string
	c := &cobra.Command{
		Use:   "cancel JOB",
		Short: "end a job; what of it runs is stopped",
		Args:  oneJob(jobHint),
		RunE: a.asked(&flags, func(c *cobra.Command, args []string, r *rack) error {
			id, err := jobArg(args)
			if err != nil {
				return err
			}
			ctx, cancel := r.within(c.Context())
			defer cancel()
			if err := r.client.Cancel(ctx, id, why); err != nil {
				return refused(err)
			}
			status, err := r.client.Status(ctx, id)
			if err != nil {
				return refused(err)
			}
			return a.emit(&cancelResult{Job: id, State: status.Record.State}, false)
		}),
	}
	flags.register(c)
	c.Flags().StringVar(&why, "reason", "", "what the job's record will say")
	return c
}
