package verb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// submitFlags are the flags of submit.
type submitFlags struct {
	rack     rackFlags
	job      jobFlags
	key      string
	kind     string
	priority int
	within   time.Duration
	output   string
	wait     time.Duration
	detach   bool
	forNode  bool
	out      string
	form     proofForm
}

// submitResult is an accepted job, and how it ended if that was waited for.
type submitResult struct {
	Job      job.ID    `json:"job_id"`
	Existing bool      `json:"existing"`
	State    job.State `json:"state"`
	Warnings []string  `json:"warnings,omitempty"`
	*jobResult
}

func (r *submitResult) human(w io.Writer) {
	if r.jobResult != nil {
		r.jobResult.human(w)
		return
	}
	row(w, "job", "%s", r.Job)
	if r.Existing {
		row(w, "", "it was submitted before under this key")
	}
	row(w, "state", "%s", r.State)
}

// submitCommand hands a C1 output to the rack.
func (a *app) submitCommand() *cobra.Command {
	var flags submitFlags
	c := &cobra.Command{
		Use:   "submit C1 --miner MINER --sector-number NUMBER",
		Short: "have the rack prove a C1 output, and wait for the proof",
		Long: "submit hands a C1 output to the rack, which checks all of it before it accepts the job, and waits until\n" +
			"the job has ended. With --detach it prints the job's id and returns. Interrupting it leaves the job alone.",
		Args: oneArg("the C1 output", sampleHint),
		RunE: func(c *cobra.Command, args []string) error { return a.submitInput(c, args, &flags) },
	}
	flags.rack.register(c)
	c.Flags().Lookup("timeout").Usage = "how long to wait for a rack that is not there; if given, for its answer too"
	flags.job.register(c)
	c.Flags().
		StringVar(&flags.key, "key", "", "the same key and input give the same job, however often they are submitted")
	c.Flags().StringVar(&flags.kind, "kind", "", "kind of proof, when it is not the proof of replication")
	c.Flags().IntVar(&flags.priority, "priority", 0, "-100 to 100, higher goes first")
	spanVar(c, &flags.within, "deadline", 0, "fail the job if it has not ended after this time")
	c.Flags().StringVar(&flags.output, "output", "", `"partitions" for non-interactive inputs`)
	spanVar(c, &flags.wait, "wait", 0, "wait this long at most; the job goes on")
	c.Flags().BoolVar(&flags.detach, "detach", false, "do not wait")
	c.Flags().BoolVar(&flags.forNode, "wait-for-node", false, "accept a job that no node of the rack can hold now")
	c.Flags().StringVar(&flags.out, "out", "", `file for the proof, or "-"`)
	flags.form.register(c)
	return c
}

// priorityMax is the highest priority; the lowest is as far below zero.
const priorityMax = 100

// submitInput looks at flags and file before it asks for the rack.
func (a *app) submitInput(c *cobra.Command, args []string, flags *submitFlags) (err error) {
	trace := a.openTrace(c.Context(), telemetry.SpanSubmit)
	defer func() { trace.end(err) }()
	if !flags.job.miner.set {
		return fail(usage, "give the miner's actor id, such as --miner f01000", "--miner is missing")
	}
	if flags.detach && flags.out != "" {
		return fail(usage, `fetch the proof later with "proofrack result"`, "--detach and --out exclude each other")
	}
	if flags.priority < -priorityMax || flags.priority > priorityMax {
		return misuse("--priority: %d is outside -%d to %d", flags.priority, priorityMax, priorityMax)
	}
	if !slices.Contains([]string{"", job.OutputProof, job.OutputPartitions}, flags.output) {
		return misuse("--output: there is only %q beside the proof, not %q", job.OutputPartitions, flags.output)
	}
	if flags.detach && flags.wait > 0 {
		return fail(usage, `wait later with "proofrack watch"`, "--detach and --wait exclude each other")
	}
	if info, err := os.Stat(args[0]); err == nil && info.Size() > wire.ReferenceBytesMax {
		return fail(badInput, "", "C1 output %q has %d bytes, a rack takes %d at most", args[0], info.Size(),
			int64(wire.ReferenceBytesMax))
	}
	source, err := a.openInput(args[0], "C1 output", sampleHint)
	if err != nil {
		return err
	}
	defer source.Close()
	return a.asked(&flags.rack, func(c *cobra.Command, _ []string, r *rack) error {
		return a.submit(c, r, source, flags, trace)
	})(c, args)
}

func (a *app) submit(c *cobra.Command, r *rack, source io.Reader, flags *submitFlags, trace *trace) error {
	request := client.Request{
		Key: flags.key, Kind: flags.kind, Miner: strconv.FormatUint(flags.job.miner.id, 10), Priority: flags.priority,
		Output: flags.output, WaitForNode: flags.forNode, Input: source, SetupWait: r.timeout,
		TraceParent: trace.parent(),
	}
	if flags.job.number.set {
		request.SectorNumber = &flags.job.number.number
	}
	if flags.within > 0 {
		at := time.Now().Add(flags.within)
		request.Deadline = &at
	}
	limit := submitTimeout
	if c.Flags().Changed("timeout") {
		limit = r.timeout
	}
	ctx, cancel := context.WithTimeout(c.Context(), limit)
	defer cancel()
	submitted, err := r.client.Submit(ctx, request)
	if err != nil {
		return refused(err)
	}
	for _, w := range submitted.Warnings {
		a.warn("%s", w)
	}
	trace.about(telemetry.String(telemetry.KeyJobID, submitted.Job))
	out := &submitResult{Job: submitted.Job, Existing: submitted.Existing, State: submitted.State}
	if flags.detach {
		return a.emit(out, false)
	}
	if !a.json {
		fmt.Fprintf(a.Err, "job %s accepted\n", submitted.Job)
	}
	ended, err := a.await(c.Context(), r, submitted.Job, flags.wait)
	if err != nil {
		return err
	}
	out.State, out.jobResult = ended.Record.State, ended
	return a.deliver(c.Context(), r, out, ended, flags.out, &flags.form)
}

// submitTimeout bounds sending and checking an input, the largest ones too, unless the user says how long.
const submitTimeout = 5 * time.Minute

// await waits for the end of a job with a bar per partition, or lines where there is no terminal. A rack that goes away
// meanwhile is waited for; one that is not there at the beginning is not.
func (a *app) await(ctx context.Context, r *rack, id job.ID, limit time.Duration) (*jobResult, error) {
	waiting := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	first, cancel := r.within(waiting)
	_, err := r.client.Status(first, id)
	cancel()
	if err != nil && waiting.Err() == nil {
		return nil, refused(err)
	}
	watch := a.startWatch()
	defer watch.stop()
	watch.why = func() (*wire.WhyReply, error) {
		asking, cancel := context.WithTimeout(waiting, whyTimeout)
		defer cancel()
		return r.client.Why(asking, id)
	}
	record, err := r.client.Wait(waiting, id, watch.see)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		return nil, fail(interrupted, fmt.Sprintf(`"proofrack watch %s" goes on watching`, id), "interrupted; job %s goes on",
			id)
	case err != nil && errors.Is(waiting.Err(), context.DeadlineExceeded):
		return nil, fail(
			timedOut,
			fmt.Sprintf(`the job goes on: "proofrack watch %s"`, id),
			"job %s has not ended after %s",
			id,
			limit,
		)
	case err != nil:
		return nil, refused(err)
	}
	return &jobResult{Record: record}, nil
}

// deliver writes the proof of a job that is done, and prints how it went.
func (a *app) deliver(
	ctx context.Context, r *rack, printed result, ended *jobResult, path string, form *proofForm,
) error {
	record := ended.Record
	if record.State != job.Done {
		if err := a.emit(printed, false); err != nil {
			return err
		}
		return jobFailure(record)
	}
	if path == "" {
		return a.emit(printed, false)
	}
	fetchCtx, cancel := r.within(ctx)
	defer cancel()
	proof, err := r.client.Result(fetchCtx, record)
	if err != nil {
		return refused(err)
	}
	out, err := a.createOutput(path)
	if err != nil {
		return err
	}
	defer out.Close()
	if _, err := out.Write(form.write(proof)); err != nil {
		return fmt.Errorf("write proof to %q: %w", path, reason(err))
	}
	if err := out.commit(); err != nil {
		return err
	}
	ended.Out = path
	return a.emit(printed, path == "-")
}

// jobFailure is the failure of a job that ended without a proof.
func jobFailure(r *job.Record) error {
	text := ""
	if r.Fault != nil {
		text = ": " + r.Fault.Message
	}
	hint := fmt.Sprintf(`"proofrack job %s" shows every attempt`, r.ID)
	return fail(jobFailed, hint, "job %s is %s%s", r.ID, r.State, text)
}

// resultFlags are the flags of result.
type resultFlags struct {
	rack  rackFlags
	wait  bool
	limit time.Duration
	out   string
	form  proofForm
}

// resultCommand fetches a proof.
func (a *app) resultCommand() *cobra.Command {
	var flags resultFlags
	c := &cobra.Command{
		Use:   "result JOB --out FILE",
		Short: "fetch the proof of a job that is done",
		Args:  oneJob(jobHint),
		RunE: a.asked(&flags.rack, func(c *cobra.Command, args []string, r *rack) error {
			return a.fetchResult(c, r, args, &flags)
		}),
	}
	flags.rack.register(c)
	c.Flags().BoolVar(&flags.wait, "wait", false, "wait until the job has ended")
	spanVar(c, &flags.limit, "wait-limit", 0, "wait until the job has ended, this long at most")
	c.Flags().StringVar(&flags.out, "out", "", `file for the proof, or "-"`)
	flags.form.register(c)
	return c
}

func (a *app) fetchResult(c *cobra.Command, r *rack, args []string, flags *resultFlags) error {
	id, err := jobArg(args)
	if err != nil {
		return err
	}
	if flags.wait || flags.limit > 0 {
		ended, err := a.await(c.Context(), r, id, flags.limit)
		if err != nil {
			return err
		}
		return a.deliver(c.Context(), r, ended, ended, flags.out, &flags.form)
	}
	ctx, cancel := r.within(c.Context())
	defer cancel()
	status, err := r.client.Status(ctx, id)
	if err != nil {
		return refused(err)
	}
	if !status.Record.State.Ended() {
		return fail(
			notReady,
			fmt.Sprintf(`wait with "proofrack result %s --wait"`, id),
			"job %s is %s: %d of %d partitions are proved",
			id,
			status.Record.State,
			status.Record.VerifiedCount(),
			len(status.Record.Partitions),
		)
	}
	ended := &jobResult{Record: status.Record}
	return a.deliver(c.Context(), r, ended, ended, flags.out, &flags.form)
}

// watcher shows a job's progress on standard error, and while some of it waits, for what.
type watcher struct {
	a       *app
	meter   *meter
	last    string
	why     func() (*wire.WhyReply, error)
	askedAt time.Time
	reason  string
}

// Bounds of asking why a job waits, beside asking how far it is.
const (
	whyTimeout = 2 * time.Second
	whyPause   = 5 * time.Second
)

func (a *app) startWatch() *watcher { return &watcher{a: a, meter: a.startMeter("waiting")} }

func (w *watcher) stop() { w.meter.stop() }

// see shows one status: on a terminal as a bar with one for each partition below it, otherwise as a line when something
// changed.
func (w *watcher) see(status *wire.StatusReply) {
	text, done, total := describeProgress(status)
	if reason := w.waitsFor(status.Record); reason != "" {
		text += "; " + reason
	}
	w.meter.say(text)
	w.meter.set(done, total)
	partitions := status.Record.Partitions
	for i := range partitions {
		w.meter.row(i, len(partitions), partitionText(i, &partitions[i]), stepsOf(partitions[i].Stage), stepsOf(job.Verified))
	}
	if w.meter.bar != nil || w.a.json || text == w.last {
		return
	}
	w.last = text
	fmt.Fprintf(w.a.Err, "%s %s\n", time.Now().Format(time.TimeOnly), text)
}

// partitionText says where a partition is.
func partitionText(i int, p *job.Partition) string {
	text := fmt.Sprintf("partition %d %s", i, p.Stage)
	if last := p.Last(); last != nil && p.Stage.Running() {
		text += fmt.Sprintf(" on %s/%s", last.Node, last.Device)
	}
	if n := len(p.Attempts); n > 1 {
		text += fmt.Sprintf(", attempt %d", n)
	}
	return text
}

// waitsFor says what a job's waiting partitions wait for. A rack that does not answer is no reason to stop watching.
func (w *watcher) waitsFor(r *job.Record) string {
	waits := slices.ContainsFunc(r.Partitions, func(p job.Partition) bool { return p.Stage == job.Waiting })
	if r.State != job.Active || !waits {
		w.reason, w.askedAt = "", time.Time{}
		return ""
	}
	if time.Since(w.askedAt) < whyPause {
		return w.reason
	}
	w.askedAt = time.Now()
	reply, err := w.why()
	if err != nil {
		return w.reason
	}
	w.reason = ""
	if more := len(reply.Reasons) - 1; more >= 0 {
		first := &reply.Reasons[0]
		w.reason = partitionsText(first.Partitions) + ": " + oneLine(first.Text)
		if more > 0 {
			w.reason += fmt.Sprintf(" (and %d more)", more)
		}
	}
	return w.reason
}

// silentAfter is when a running partition counts as silent.
const silentAfter = 20 * time.Second

// describeProgress says where a job's partitions are, and how far it is: four steps per partition.
func describeProgress(status *wire.StatusReply) (text string, done, total int64) {
	r := status.Record
	counts := map[job.Stage]int{}
	for i := range r.Partitions {
		counts[r.Partitions[i].Stage]++
		done += stepsOf(r.Partitions[i].Stage)
		total += stepsOf(job.Verified)
	}
	text = fmt.Sprintf("%d of %d proved", counts[job.Verified], len(r.Partitions))
	for _, stage := range []job.Stage{job.Proving, job.Sealed, job.Synthesizing, job.Reserved, job.Waiting} {
		if counts[stage] > 0 {
			text += fmt.Sprintf(", %d %s", counts[stage], stage)
		}
	}
	for _, live := range status.Live {
		if live.Partition < len(r.Partitions) && r.Partitions[live.Partition].Stage.Running() &&
			!live.BeatAt.IsZero() && time.Since(live.BeatAt) > silentAfter {
			text += fmt.Sprintf(
				"; no heartbeat of partition %d since %s",
				live.Partition,
				live.BeatAt.Local().Format(time.TimeOnly),
			)
			break
		}
	}
	for i := range r.Partitions {
		p := &r.Partitions[i]
		if last := p.Last(); p.Stage == job.Waiting && last != nil && last.Fault != nil {
			text += fmt.Sprintf("; partition %d: retrying (%d failed, %d lost), last error: %s", i, p.FailedCount, p.LostCount,
				sentence(last.Fault.Message))
			if p.NotBefore != nil {
				text += ", next at " + p.NotBefore.Local().Format(time.TimeOnly)
			}
			break
		}
	}
	return text, done, total
}

func stepsOf(stage job.Stage) int64 {
	switch stage {
	case job.Synthesizing:
		return 1
	case job.Sealed:
		return 2
	case job.Proving, job.Proved:
		return 3
	case job.Verified:
		return 4
	case job.Waiting, job.Reserved, job.StageFailed, job.StageStopped:
	}
	return 0
}
