package prove

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/prover"
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
		return nil, fault.New(fault.Invalid, "attempt %s is for device %s, this is %s", t.Attempt(), t.Device, d.config.Device)
	}
	return t, nil
}

func (t *task) Attempt() job.Attempt           { return t.ProveTask.Attempt }
func (t *task) Target() (job.Node, job.Device) { return t.Node, t.Device }
func (t *task) Stage() job.Stage               { return job.Sealed }
func (t *task) TraceParent() string            { return t.ProveTask.TraceParent }

// Work proves one sealed segment.
func (t *task) Work(ctx context.Context, r *attempt.Run) (err error) {
	h := t.device.host
	h.Points.Hit(ctx, PointAfterFetch)
	r.SetHandoff(t.Handoff)
	held, err := t.take(ctx, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.free(ctx, r, held)) }()
	segment, err := h.Spill.Open(ctx, handoff.Want{Attempt: r.Attempt(), Circuit: t.Circuit, Kind: handoff.Kind(t.Handoff)})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, segment.GiveBack()) }()
	r.Follow(t.device.progress)
	result, err := t.prove(ctx, r, held, segment)
	if err != nil {
		return err
	}
	h.Points.Hit(ctx, PointAfterProof)
	if err := r.CheckFence(ctx); err != nil {
		return err
	}
	r.Settle(ctx, result)
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

// free takes the booking out of the book; the segment is back by then, and the engine has let go of it.
func (t *task) free(ctx context.Context, r *attempt.Run, held *agent.Held) error {
	h := t.device.host
	if err := h.Spill.Reclaim(r.Attempt()); err != nil && !errors.Is(err, handoff.ErrBusy) {
		return err
	}
	if err := held.Remove(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	r.Freed(ctx)
	return nil
}

// triesMax is how often an attempt is given to an engine: the second time alone.
const triesMax = 2

// prove has the device prove a segment.
func (t *task) prove(
	ctx context.Context, r *attempt.Run, held *agent.Held, segment *handoff.Segment,
) (*wire.Result, error) {
	for try := 1; ; try++ {
		result, company, err := t.try(ctx, r, held, segment, try > 1)
		var crash *engine.Crash
		if err == nil || try == triesMax || !company || !errors.As(err, &crash) || ctx.Err() != nil {
			return result, err
		}
		t.device.config.Log.Warn().Stringer("attempt", r.Attempt()).Str("cause", crash.Cause).
			Msg("engine crashed with several proofs in it, this one is tried again alone")
	}
}

// try gives a segment to the engine once. Company tells that it was not alone there.
func (t *task) try(
	ctx context.Context, r *attempt.Run, held *agent.Held, segment *handoff.Segment, alone bool,
) (_ *wire.Result, company bool, err error) {
	d := t.device
	if err := d.lane.enter(ctx, alone); err != nil {
		return nil, false, err
	}
	passed := false
	pass := func() {
		if !passed {
			passed = true
			d.lane.pass()
		}
	}
	defer pass()
	defer d.lane.leave()
	e, circuit, done, err := d.serving(ctx, t.Circuit)
	if err != nil {
		return nil, false, err
	}
	defer done()
	if err := r.CheckFence(ctx); err != nil {
		return nil, false, err
	}
	if err := errors.Join(d.book(ctx, t.Circuit), held.SetStage(ctx, job.Proving)); err != nil {
		return nil, false, err
	}
	r.Enter(ctx, job.Proving)
	began := time.Now()
	d.jobs.Add(1)
	proof, err := e.Start(ctx, engine.Work{Attempt: r.Attempt(), Circuit: t.Circuit}, segment.File())
	company = d.company()
	if err != nil {
		return nil, company, d.judge(err)
	}
	released := time.Now()
	if !alone {
		pass()
	}
	proved, err := proof.Finish(ctx)
	company = company || d.company()
	if err == nil {
		err = verify(circuit.key, segment, proved.Proof)
	}
	if err != nil {
		return nil, company, d.judge(err)
	}
	d.praise()
	d.measure(e, circuit.loaded.Device)
	seconds := map[string]float64{"start": released.Sub(began).Seconds(), "finish": time.Since(released).Seconds()}
	for _, part := range []map[string]float64{t.Seconds, proved.Seconds} {
		for name, s := range part {
			seconds[name] = s
		}
	}
	return &wire.Result{
		Outcome: job.OutcomeOK, Proof: proved.Proof, DeviceUUID: d.config.UUID, ParamsDigest: circuit.loaded.Digest,
		Handoff: t.Handoff, Seconds: seconds,
	}, company, nil
}

// judge has the engine replaced when an error is the device's.
func (d *Device) judge(err error) error {
	if fault.KindOf(err) == fault.Device {
		d.blame(err)
	}
	return err
}

// verify compares a proof with the inputs of the segment that it is of: the engine said so, but bytes may have changed on
// the way (invariant 4).
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
