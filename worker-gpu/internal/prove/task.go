package prove

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/prover"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
)

// Points of package hook that a proof comes by in the worker (H8); the engine has engine.PointMidProof.
const (
	PointAfterFetch  = "gpu.after-fetch"
	PointAfterProof  = "gpu.after-proof"
	PointAfterResult = "gpu.after-result"
	PointBeforeFree  = "gpu.before-free"
)

// task is one message.
type task struct {
	wire.ProveTask

	device *Device
}

// Decode reads a message of the device's queue.
func (d *Device) Decode(data []byte) (attempt.Task, error) {
	t := &task{device: d}
	if err := wire.Decode(data, &t.ProveTask); err != nil {
		return nil, err
	}
	if t.Device != d.config.Device {
		return nil, fault.New(fault.Invalid, "attempt %s is for device %s, this is %s",
			t.Attempt(), t.Device, d.config.Device)
	}
	return t, nil
}

// Left gives the attempts for this device whose worker died with the segment sealed: that can be proved at once, before
// the message comes again.
func (d *Device) Left(ctx context.Context) ([]attempt.Task, error) {
	orphans, err := d.host.Book.Orphans(ctx)
	if err != nil {
		return nil, err
	}
	var all []attempt.Task
	for _, o := range orphans {
		if o.Device != d.config.Device {
			continue
		}
		all = append(all, &task{device: d, ProveTask: wire.ProveTask{
			Attempt: o.Attempt, Node: d.host.Node, Device: o.Device, Circuit: o.Circuit,
			Segment: handoff.Name(o.Attempt), Handoff: string(o.Segment), Amounts: o.Amounts, TraceParent: o.TraceParent,
		}})
	}
	return all, nil
}

func (t *task) Attempt() job.Attempt           { return t.ProveTask.Attempt }
func (t *task) Target() (job.Node, job.Device) { return t.Node, t.Device }
func (t *task) Stage() job.Stage               { return job.Sealed }
func (t *task) TraceParent() string            { return t.ProveTask.TraceParent }

// Work proves one sealed segment.
func (t *task) Work(ctx context.Context, r *attempt.Run) error {
	h := t.device.host
	h.Points.Hit(ctx, PointAfterFetch)
	r.SetHandoff(t.Handoff, t.HandoffReason)
	t.follow(r)
	held, err := t.take(ctx, r)
	if err != nil {
		return err
	}
	defer t.free(ctx, r, held)
	if !slices.Contains(h.Spill.Kinds(), handoff.Kind(t.Handoff)) { // a mistake of the host's, not of the job
		return fault.New(fault.Exhausted, "segment of attempt %s lies on %s, this worker has no spill folder there",
			r.Attempt(), t.Handoff)
	}
	segment, err := h.Spill.Open(ctx,
		handoff.Want{Attempt: r.Attempt(), Circuit: t.Circuit, Kind: handoff.Kind(t.Handoff)})
	if errors.Is(err, handoff.ErrAbsent) { // it can be made again, unlike a job's input (B78)
		return fault.As(fault.Transient, err)
	}
	if err != nil {
		return err
	}
	defer t.giveBack(segment)
	sealed := segmentPeak(segment)
	r.Follow(t.device.progress)
	result, err := t.prove(ctx, r, held, segment)
	if err != nil {
		return err
	}
	result.Peaks = t.peaks(sealed, result.Peaks[job.Proving])
	h.Points.Hit(ctx, PointAfterProof)
	if err := r.CheckFence(ctx); err != nil {
		return err
	}
	r.Settle(ctx, result)
	r.Trace().Enter(telemetry.SpanGiveBack)
	h.Points.Hit(ctx, PointAfterResult)
	h.Points.Hit(ctx, PointBeforeFree)
	return nil
}

// takePause is how often a booking is asked for that its writer still has.
const takePause = 10 * time.Millisecond

// take takes the attempt's booking over, waiting as long for its writer as for the seal.
func (t *task) take(ctx context.Context, r *attempt.Run) (*agent.Held, error) {
	deadline := time.Now().Add(t.device.config.SealWait)
	for {
		held, err := t.device.host.Book.Take(ctx, r.Attempt())
		switch {
		case errors.Is(err, agent.ErrNotBooked): // its segment was found damaged or gone: it can be made again (B78)
			return nil, fault.As(fault.Transient, err)
		case !errors.Is(err, agent.ErrBooked):
			return held, err
		case time.Now().After(deadline): // another process of this node is at it
			return nil, fault.As(fault.Lost, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(takePause):
		}
	}
}

// giveBack gives a segment back. What goes wrong is no part of the outcome: a proof that is stored stays a success, and
// free and the sweep of the spill folders look for the segment again.
func (t *task) giveBack(segment *handoff.Segment) {
	if err := segment.GiveBack(); err != nil {
		t.device.config.Log.Error().Err(err).Stringer("attempt", t.Attempt()).
			EmbedObject(telemetry.InTrace(t.TraceParent())).Msg("segment was not given back")
	}
}

// free takes the booking out of the book; the segment is back by then, and the engine has let go of it. What goes wrong
// is no part of the outcome: the agent tries again until the booking is gone.
func (t *task) free(ctx context.Context, r *attempt.Run, held *agent.Held) {
	err := t.device.host.Spill.Reclaim(r.Attempt())
	if errors.Is(err, handoff.ErrBusy) {
		err = nil
	}
	if err = held.Free(ctx, err); err != nil {
		t.device.config.Log.Error().Err(err).Stringer("attempt", r.Attempt()).
			EmbedObject(telemetry.InTrace(t.TraceParent())).Msg("booking stays for now")
		return
	}
	r.Freed(ctx)
}

// triesMax is how often an attempt is given to an engine: the second time alone.
const triesMax = 2

// prove has the device prove a segment.
func (t *task) prove(
	ctx context.Context, r *attempt.Run, held *agent.Held, segment *handoff.Segment,
) (*wire.Result, error) {
	for try := 1; ; try++ {
		r.Trace().Enter(telemetry.SpanPrepare)
		result, company, err := t.try(ctx, r, held, segment, try > 1)
		var crash *engine.Crash
		if err == nil || try == triesMax || !company || !errors.As(err, &crash) || ctx.Err() != nil {
			return result, err
		}
		t.device.config.Log.Warn().Stringer("attempt", r.Attempt()).Str("cause", crash.Cause).
			EmbedObject(telemetry.InTrace(t.TraceParent())).
			Msg("engine crashed with several proofs in it, this one is tried again alone")
	}
}

// seat is a segment's place in an engine: it is mapped there and checked.
type seat struct {
	engine  *engine.Engine
	circuit *circuitState
	proof   *engine.Proof
}

// sit prepares a segment in the device's engine, if need be in the next one.
func (t *task) sit(ctx context.Context, segment *handoff.Segment) (*seat, error) {
	for try := 1; ; try++ {
		e, circuit, err := t.device.serving(ctx, t.Circuit)
		if err != nil {
			return nil, err
		}
		if err := t.device.ensure(ctx, e, t.Circuit); err != nil {
			if next := t.nextEngine(ctx, err, try); next {
				continue
			}
			return nil, t.device.judge(err)
		}
		proof, err := e.Prepare(ctx, engine.Work{Attempt: t.Attempt(), Circuit: t.Circuit}, segment.File())
		if err == nil {
			return &seat{engine: e, circuit: circuit, proof: proof}, nil
		}
		if !t.nextEngine(ctx, err, try) {
			return nil, t.device.judge(err)
		}
	}
}

// nextEngine tells whether an error is an engine's end, which the next one may do better.
func (t *task) nextEngine(ctx context.Context, err error, try int) bool {
	var crash *engine.Crash
	return try < triesMax && errors.As(err, &crash) && ctx.Err() == nil
}

// try gives a segment to the engine once. Company tells that it was not alone there.
func (t *task) try(
	ctx context.Context, r *attempt.Run, held *agent.Held, segment *handoff.Segment, alone bool,
) (_ *wire.Result, company bool, err error) {
	d := t.device
	defer d.use(t.Circuit)()
	var s *seat
	err = r.Idle(func() (err error) {
		if s, err = t.sit(ctx, segment); err != nil {
			return err
		}
		r.Trace().Enter(telemetry.SpanWaitTurn)
		if err = d.lane.enter(ctx, alone); err != nil {
			s.proof.Drop()
		}
		return err
	})
	if err != nil {
		return nil, false, err
	}
	defer d.lane.leave()
	pass := sync.OnceFunc(d.lane.pass)
	defer pass()
	for ready := false; !ready; {
		if err := t.begin(ctx, r, held); err != nil {
			s.proof.Drop()
			return nil, false, err
		}
		if ready = d.activate(s.engine); ready {
			continue
		}
		s.proof.Drop() // its engine was replaced while it waited for its turn
		if s, err = t.sit(ctx, segment); err != nil {
			return nil, false, err
		}
	}
	defer d.deactivate()
	seen := d.observe(s.engine)
	defer seen.span.End()
	began := time.Now()
	r.Trace().Enter(telemetry.SpanProve)
	d.jobs.Add(1)
	err = s.proof.Start(ctx)
	company = d.company()
	if err != nil {
		return nil, company, d.judge(err)
	}
	seen.look()
	released := time.Now()
	asked := pass
	if alone {
		asked = func() {} // it stays alone to its end
	}
	proved, err := s.proof.Finish(ctx, asked)
	company = company || d.company()
	if err == nil {
		traceProof(r.Trace(), began, released, proved.Seconds)
		r.Trace().Enter(telemetry.SpanVerify)
		if err = verify(s.circuit.key, segment, proved.Proof); fault.KindOf(err) == fault.Device {
			d.config.Meters.wrongProof(d)
		}
	}
	if err != nil {
		return nil, company, d.judge(err)
	}
	d.praise()
	d.measure(s.engine, s.circuit.loaded.Device)
	result := t.result(s.circuit, &proved, released.Sub(began), time.Since(released))
	result.Peaks = wire.Peaks{job.Proving: seen.end(s.circuit)}
	return result, company, nil
}

// begin is what has to be right before a proof is started.
func (t *task) begin(ctx context.Context, r *attempt.Run, held *agent.Held) error {
	if err := r.CheckFence(ctx); err != nil {
		return err
	}
	if err := held.SetStage(ctx, job.Proving); err != nil {
		return err
	}
	r.Enter(ctx, job.Proving)
	return nil
}

// result is that of a success.
func (t *task) result(c *circuitState, proved *engine.Proved, start, finish time.Duration) *wire.Result {
	seconds := map[string]float64{"start": start.Seconds(), "finish": finish.Seconds()}
	maps.Copy(seconds, t.Measured())
	maps.Copy(seconds, proved.Seconds)
	return &wire.Result{
		Outcome: job.OutcomeOK, Proof: proved.Proof, DeviceUUID: t.device.config.UUID, ParamsDigest: c.loaded.Digest,
		Handoff: t.Handoff, HandoffReason: t.HandoffReason, Seconds: seconds,
	}
}

// judge has the engine replaced when an error is the device's.
func (d *Device) judge(err error) error {
	if fault.KindOf(err) == fault.Device {
		d.blame(err)
	}
	return err
}

// verify compares a proof with the inputs of the segment that it is of: the engine said so, but bytes may have
// changed on the way (invariant 4).
func verify(key *groth16.PreparedKey, segment *handoff.Segment, data []byte) error {
	s, err := compact.Open(segment.Memory())
	if err != nil {
		return fault.As(fault.Corrupt, err)
	}
	proof, err := groth16.ParseProof(data)
	if err == nil {
		err = key.Verify(s.Inputs()[1:], proof)
	}
	if err != nil {
		return fault.As(fault.Device, fmt.Errorf("%w: %w", prover.ErrProof, err))
	}
	return nil
}
