package dispatch

import (
	"context"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// resultConsumer is the durable consumer of all results; only the leader fetches from it.
const resultConsumer = "coordinator"

// fetchResults brings results into the loop, as many at once as are looked at.
func (l *Leader) fetchResults(ctx context.Context) error {
	queue, err := l.parts.Bus.Queue(ctx, bus.Consumer{
		Stream: wire.StreamResult, Name: resultConsumer, Subject: wire.AllResult, AckWait: l.cfg.ResultAckWait,
	})
	if err != nil {
		return fmt.Errorf("open queue of results: %w", err)
	}
	turns := semaphore.NewWeighted(int64(l.cfg.ResultsMax))
	for {
		if err := turns.Acquire(ctx, 1); err != nil {
			return err
		}
		d, err := queue.Fetch(ctx)
		if err != nil {
			return err
		}
		l.inbox.post(func() { l.takeResult(d, func() { turns.Release(1) }) })
	}
}

// takeResult looks at one result, in its job's lane.
func (l *Leader) takeResult(d bus.Delivery, done func()) {
	m := d.Message()
	result := &wire.Result{}
	err := wire.Decode(m.Data, result)
	if err == nil && wire.Token(m.Subject, 2) != string(result.Node) {
		err = fault.New(fault.Invalid, "result on %s names node %s", m.Subject, result.Node)
	}
	if err != nil {
		l.log.Warn().Err(err).Str("subject", m.Subject).Msg("result refused")
		l.lanes.do("refused results", func(ctx context.Context) {
			defer done()
			l.settle(ctx, d, settlement{drop: err.Error()})
		})
		return
	}
	id := result.Attempt.Job
	s := l.job(id)
	s.busy++
	l.lanes.do(laneOfJob(id), func(ctx context.Context) {
		defer done()
		ctx = l.traceResult(ctx, m, result)
		out := l.judge(ctx, result)
		telemetry.PathOf(ctx).End(out.err)
		l.parts.Hooks.Hit(ctx, PointBeforeAck)
		l.settle(ctx, d, out)
		l.inbox.post(func() {
			l.changed(s, id, "result", out.job, out.err, func(j store.Job, err error) { l.judged(result, &out, err) })
		})
	})
}

// settlement is what became of a result.
type settlement struct {
	job store.Job
	// err leaves the result in the queue, to be looked at again after a pause.
	err error
	// drop removes it unprocessed.
	drop string
	// ended is what the scheduler has to hear, nil when the result changed nothing.
	ended *scheduler.Ended
	late  bool
}

// settle acks, or puts back.
func (l *Leader) settle(ctx context.Context, d bus.Delivery, out settlement) {
	ctx, cancel := l.call(ctx)
	defer cancel()
	var err error
	switch {
	case out.err != nil:
		err = d.Nak(ctx, l.cfg.Tick)
	case out.drop != "":
		err = d.Term(ctx, out.drop)
	default:
		err = d.Ack(ctx)
	}
	if err != nil {
		l.log.Warn().Err(err).Msg("result not settled: it comes again")
	}
}

// judge decides what a result means and writes that into the record. It runs in the job's lane.
func (l *Leader) judge(ctx context.Context, result *wire.Result) settlement {
	a := result.Attempt
	j, ok := l.parts.Store.Get(a.Job)
	if !ok {
		var err error
		if j, err = l.parts.Store.Fetch(ctx, a.Job); fault.KindOf(err) == fault.NotFound {
			return settlement{late: true}
		} else if err != nil {
			return settlement{err: err}
		}
	}
	if a.Partition >= len(j.Record.Partitions) {
		return settlement{drop: "no such partition"}
	}
	if !owns(j.Record, a) {
		return l.stale(ctx, j, a)
	}
	if p := &j.Record.Partitions[a.Partition]; p.Node != result.Node {
		return settlement{drop: fmt.Sprintf("attempt %s is on node %s, not on %s", a, p.Node, result.Node)}
	}
	report, blame := result.Fault, result.BlameDevice
	if result.Outcome == job.OutcomeOK {
		telemetry.PathOf(ctx).Enter(telemetry.SpanVerify)
		err := l.parts.Verifier.Partition(ctx, j.Record, a.Partition, result.Proof)
		switch {
		case err == nil:
			return l.accept(ctx, result)
		case transient(err):
			return settlement{err: err}
		}
		report = fault.ReportOf("verify", err)
		if report.FaultKind() == fault.Device {
			blame = true
			l.badProofs.Add(1)
			l.parts.Meter.badProof(result.Node, j.Record.Partitions[a.Partition].Device)
		}
	}
	return l.refuse(ctx, result, report, blame)
}

// stale counts a result that came too late, and changes nothing else (invariant 5). A second copy of the one that was
// accepted is none of these.
func (l *Leader) stale(ctx context.Context, j store.Job, a job.Attempt) settlement {
	p := &j.Record.Partitions[a.Partition]
	if p.Stage == job.Verified && p.Fence == a.Fence {
		return settlement{job: j}
	}
	next, err := l.parts.Store.Update(ctx, a.Job, func(r *job.Record) error {
		if owns(r, a) {
			return fault.New(fault.Transient, "attempt %s owns its partition after all", a)
		}
		r.LateCount++
		return nil
	})
	if err != nil && transient(err) {
		return settlement{err: err}
	}
	return settlement{job: next, late: true}
}

// accept stores a verified proof in the record.
func (l *Leader) accept(ctx context.Context, result *wire.Result) settlement {
	a := result.Attempt
	telemetry.PathOf(ctx).Enter(telemetry.SpanRecord)
	j, err := l.parts.Store.Update(ctx, a.Job, func(r *job.Record) error {
		if p := &r.Partitions[a.Partition]; p.Stage == job.Verified && p.Fence == a.Fence {
			return store.ErrUnchanged
		}
		note(r, result)
		if result.ParamsDigest != "" {
			r.ParamsDigest = result.ParamsDigest
		}
		return r.Accept(a, result.Proof, time.Now().UTC())
	})
	switch {
	case fault.KindOf(err) == fault.Lost:
		return l.stale(ctx, j, a)
	case err != nil:
		return settlement{err: err}
	}
	l.parts.Hooks.Hit(ctx, PointAccepted)
	synth, device := durations(result.Seconds)
	return settlement{job: j, ended: &scheduler.Ended{
		Attempt: a, Outcome: job.OutcomeOK, Synth: synth, Device: device, Peaks: scheduler.Peaks(result.Peaks),
	}}
}

// durations are how long synthesis took, and for how long the device was taken: until it could start the next proof.
func durations(seconds map[string]float64) (synth, device time.Duration) {
	of := func(names ...string) (sum time.Duration) {
		for _, name := range names {
			sum += time.Duration(min(max(seconds[name], 0), 86400) * float64(time.Second))
		}
		return sum
	}
	return of("slice", "segment", "synthesis"), of("start")
}

// note keeps what a result says of its attempt in the history.
func note(r *job.Record, result *wire.Result) {
	last := r.Partitions[result.Attempt.Partition].Last()
	if last == nil || last.Fence != result.Attempt.Fence {
		return
	}
	last.Build, last.DeviceUUID = clip(result.Build), clip(result.DeviceUUID)
	if result.Handoff != "" {
		if where := clip(result.Handoff); last.Handoff != where || result.HandoffReason != "" {
			last.Handoff, last.HandoffReason = where, clipReason(result.HandoffReason)
		}
	}
	if len(result.Seconds) > 0 && len(result.Seconds) <= secondsMax {
		last.Seconds = result.Seconds
	}
	if parts := strings.Split(result.TraceParent, "-"); len(parts) == 4 {
		last.TraceID = clip(parts[1])
	}
}

// secondsMax bounds the measurements of one attempt.
const secondsMax = 32

func clip(text string) string { return text[:min(len(text), 128)] }

// clipReason bounds why a segment lies where it lies.
func clipReason(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), 256)], "")
}

// verdict is what an attempt without a proof means for its partition.
type verdict int

const (
	again    verdict = iota // it counts as a failure and is tried again, elsewhere if there is an elsewhere
	handBack                // it costs nothing
	lost                    // its worker died; counted apart
	final                   // the job fails
	nothing                 // the attempt was stopped on purpose
)

// verdictOf is the one place where the kind of a fault decides.
func verdictOf(outcome job.Outcome, kind fault.Kind) verdict {
	switch outcome {
	case job.OutcomeLost:
		return lost
	case job.OutcomeHandedBack:
		return handBack
	case job.OutcomeCancelled:
		return nothing
	case job.OutcomeOK, job.OutcomeFailed:
	}
	switch kind {
	case fault.Invalid, fault.NotFound:
		return final // the input is wrong, or gone: no retry helps
	case fault.Lost, fault.Cancelled:
		return handBack // it gave itself up, but the record still says that it owns the partition
	case fault.Conflict, fault.Exhausted, fault.Transient, fault.Corrupt, fault.Device, fault.Internal:
		return again
	}
	return again
}

// refuse ends an attempt that brought no proof, or one that does not hold.
func (l *Leader) refuse(ctx context.Context, result *wire.Result, report *fault.Report, blame bool) settlement {
	a := result.Attempt
	outcome := result.Outcome
	if outcome == job.OutcomeOK {
		outcome = job.OutcomeFailed
	}
	v := verdictOf(outcome, report.FaultKind())
	if v == final && report.FaultKind() == fault.NotFound {
		var err error
		if v, err = l.inputGone(ctx, a); err != nil {
			return settlement{err: err}
		}
	}
	j, err := l.parts.Store.Update(ctx, a.Job, func(r *job.Record) error {
		note(r, result)
		now := time.Now().UTC()
		switch v {
		case again:
			return r.Fail(a, report, l.cfg.Policy, now)
		case handBack, nothing:
			return r.HandBack(a, report.Message, l.cfg.HandBackPause, now)
		case lost:
			return r.Lose(a, report.Message, l.cfg.Policy, now)
		case final:
			if err := r.Fail(a, report, l.cfg.Policy, now); err != nil || r.State != job.Active {
				return err
			}
			return r.FailWhole(report, now)
		}
		panic(fmt.Sprintf("dispatch: unknown verdict %d", v))
	})
	switch {
	case fault.KindOf(err) == fault.Lost:
		return l.stale(ctx, j, a)
	case err != nil:
		return settlement{err: err}
	}
	return settlement{job: j, ended: &scheduler.Ended{
		Attempt: a, Outcome: outcome, BlameDevice: blame || report.FaultKind() == fault.Device,
	}}
}

// inputGone looks whether a partition's slice is really gone: then the job fails with that reason, else the attempt is
// tried again.
func (l *Leader) inputGone(ctx context.Context, a job.Attempt) (verdict, error) {
	j, ok := l.parts.Store.Get(a.Job)
	if !ok {
		return again, nil
	}
	there, err := l.parts.Store.HasSlice(ctx, j.Record, a.Partition)
	switch {
	case fault.KindOf(err) == fault.Corrupt, err == nil && !there:
		return final, nil
	case err != nil:
		return again, err
	}
	return again, nil
}

// judged tells the scheduler, before it sees the record.
func (l *Leader) judged(result *wire.Result, out *settlement, err error) {
	s := l.job(result.Attempt.Job)
	if err != nil {
		s.trouble = err.Error()
		return
	}
	s.trouble = ""
	if out.late {
		l.late.Add(1)
		l.parts.Meter.lateResult()
		if out.job.Record == nil {
			l.orphans.Add(1)
		}
		l.log.Info().Str("attempt", result.Attempt.String()).Str("outcome", string(result.Outcome)).
			EmbedObject(telemetry.InTrace(result.TraceParent)).
			Msg("result came too late and changed nothing")
		return
	}
	if out.ended == nil {
		return
	}
	entry := l.log.Info()
	if out.ended.Outcome != job.OutcomeOK {
		entry = l.log.Warn().AnErr("fault", asError(result.Fault))
	}
	entry.Str("attempt", result.Attempt.String()).Str("c2.node.id", string(result.Node)).
		EmbedObject(telemetry.InTrace(result.TraceParent)).
		Str("outcome", string(out.ended.Outcome)).Msg("attempt ended")
	l.endTrack(result.Attempt)
	l.parts.Meter.result(result, out.ended, out.job.Record)
	l.apply(*out.ended)
	l.publishPartition(out.job.Record, result.Attempt.Partition)
}

func asError(r *fault.Report) error {
	if r == nil {
		return nil
	}
	return r
}
