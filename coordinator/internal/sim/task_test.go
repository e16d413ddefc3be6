package sim_test

import (
	"context"
	"errors"
	"time"

	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

// The work of the two roles, in the order of packages synth and prove.

// synthTask is a task of synthesis.
type synthTask struct {
	wire.SynthTask

	p *worker
}

func (p *worker) decodeSynth(data []byte) (attempt.Task, error) {
	t := &synthTask{p: p}
	err := wire.Decode(data, &t.SynthTask)
	return t, err
}

func (t *synthTask) Attempt() job.Attempt           { return t.SynthTask.Attempt }
func (t *synthTask) Target() (job.Node, job.Device) { return t.Node, t.Device }
func (t *synthTask) Stage() job.Stage               { return job.Reserved }
func (t *synthTask) TraceParent() string            { return t.Slice.SHA256 }

// provingTask is a task of a device. Its trace says which proof is the right one.
type provingTask struct {
	wire.ProveTask

	p *worker
}

func (p *worker) decodeProve(data []byte) (attempt.Task, error) {
	t := &provingTask{p: p}
	err := wire.Decode(data, &t.ProveTask)
	return t, err
}

func (p *worker) left(context.Context) (all []attempt.Task, err error) {
	if err := p.gate(); err != nil {
		return nil, err
	}
	for _, t := range p.h.orphans() {
		all = append(all, &provingTask{*t, p})
	}
	return all, nil
}

func (t *provingTask) Attempt() job.Attempt           { return t.ProveTask.Attempt }
func (t *provingTask) Target() (job.Node, job.Device) { return t.Node, t.Device }
func (t *provingTask) Stage() job.Stage               { return job.Sealed }
func (t *provingTask) TraceParent() string            { return t.ProveTask.TraceParent }

// owns asks the record whether an attempt owns its partition, as Run.CheckFence does: when nobody knows, work goes on.
// One that was fenced out before may not pass.
func (p *worker) owns(ctx context.Context, r *attempt.Run) error {
	if err := p.gate(); err != nil {
		return err
	}
	out := p.h.w.fencedOut(r.Attempt())
	err := p.Fences.Check(ctx, r.Attempt())
	switch {
	case err == nil && out:
		p.h.w.fail("invariant 5: %s was fenced out, and worker %s goes on with it", r.Attempt(), p.instance)
	case fault.KindOf(err) == fault.Transient:
		err = ctx.Err()
	}
	return errors.Join(err, p.gate())
}

// busy spends time on an attempt, a second at a time, with progress or without.
func (p *worker) busy(ctx context.Context, r *attempt.Run, d time.Duration, advance bool) error {
	for ; d > 0; d -= time.Second {
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
		if err := p.gate(); err != nil {
			return err
		}
		if advance {
			r.Step()
		}
	}
	return ctx.Err()
}

// spend spends between low and high, four times as much while the host is slow, and then without progress.
func (p *worker) spend(ctx context.Context, r *attempt.Run, low, high time.Duration) error {
	p.h.mu.Lock()
	slow := p.h.slow
	p.h.mu.Unlock()
	d := p.h.dice.between(low, high)
	if slow {
		d *= 4
	}
	return p.busy(ctx, r, d, !slow)
}

// enter moves an attempt on.
func (p *worker) enter(ctx context.Context, r *attempt.Run, s job.Stage) error {
	if !p.change(r.Attempt(), func(b *booking) { b.stage = s }) {
		return fault.As(fault.Lost, errNotBooked)
	}
	r.Enter(ctx, s)
	return nil
}

// free gives back all bytes of an attempt that has ended. A worker that is dead gives nothing back: the host finds it.
func (p *worker) free(ctx context.Context, r *attempt.Run) {
	if p.gate() != nil {
		return
	}
	a := r.Attempt()
	if !p.change(a, func(*booking) { delete(p.h.book, a); p.h.freed[a], p.h.ended[a] = true, true }) {
		return
	}
	p.h.w.log.Debug().Stringer("attempt", a).Str("worker", p.instance).Msg("host frees")
	r.Freed(ctx)
	p.changed()
}

// Work synthesizes a segment and announces it.
func (t *synthTask) Work(ctx context.Context, r *attempt.Run) error {
	p := t.p
	if err := p.gate(); err != nil {
		return err
	}
	switch err := p.h.admit(p, &t.SynthTask); {
	case errors.Is(err, errHandedOver): // the message came again
		return t.announce(ctx, r)
	case errors.Is(err, errBooked):
		return fault.As(fault.Lost, err)
	case err != nil:
		return err
	}
	if err := t.make(ctx, r); err != nil {
		p.free(ctx, r)
		return err
	}
	if err := t.announce(ctx, r); err != nil {
		if p.gate() == nil && p.h.take(p, r.Attempt()) == nil {
			p.free(ctx, r)
		}
		return err
	}
	return nil
}

// make makes the segment, seals it and hands it over.
func (t *synthTask) make(ctx context.Context, r *attempt.Run) error {
	p := t.p
	if err := p.enter(ctx, r, job.Synthesizing); err != nil {
		return err
	}
	if err := p.spend(ctx, r, 2*time.Second, 15*time.Second); err != nil {
		return err
	}
	if err := p.owns(ctx, r); err != nil {
		return err
	}
	if !p.change(r.Attempt(), func(b *booking) { b.stage, b.sealed, b.handed = job.Sealed, true, true }) {
		return fault.As(fault.Lost, errNotBooked)
	}
	r.Enter(ctx, job.Sealed)
	return nil
}

func (t *synthTask) announce(ctx context.Context, r *attempt.Run) error {
	if err := t.p.owns(ctx, r); err != nil {
		return err
	}
	data, err := wire.Encode(proveTask(t.p.h, r.Attempt(), t.Amounts, t.Slice.SHA256))
	if err != nil {
		return fault.As(fault.Internal, err)
	}
	return r.Publish(ctx, bus.Message{
		Subject: wire.ProveSubject(t.Node, t.Device), ID: r.Attempt().String(), Data: data,
	})
}

func proveTask(h *host, a job.Attempt, amounts ledger.Amounts, trace string) *wire.ProveTask {
	return &wire.ProveTask{
		Attempt: a, Node: h.name, Device: device, Circuit: toy.Circuit().ID(), Segment: a.String(),
		Handoff: wire.HandoffSHM, Amounts: amounts.Clone(), TraceParent: trace,
	}
}

// Work takes one sealed segment through the device, which does one at a time.
func (t *provingTask) Work(ctx context.Context, r *attempt.Run) error {
	p := t.p
	if err := t.take(ctx, r); err != nil {
		return err
	}
	defer p.free(ctx, r)
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.turn }()
	result, err := t.compute(ctx, r)
	if err != nil {
		return err
	}
	if err := p.owns(ctx, r); err != nil {
		return err
	}
	p.h.w.told(r.Attempt())
	r.Settle(ctx, result)
	return nil
}

// sealWait is how long to wait for the writer of a segment.
const sealWait = 10 * time.Second

func (t *provingTask) take(ctx context.Context, r *attempt.Run) error {
	for deadline := time.Now().Add(sealWait); ; {
		if err := t.p.gate(); err != nil {
			return err
		}
		err := t.p.h.take(t.p, r.Attempt())
		switch {
		case errors.Is(err, errNotBooked): // it can be made again
			return fault.As(fault.Transient, err)
		case !errors.Is(err, errBooked):
			return err
		case time.Now().After(deadline):
			return fault.As(fault.Lost, err)
		}
		if err := sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

// compute is the device's work.
func (t *provingTask) compute(ctx context.Context, r *attempt.Run) (*wire.Result, error) {
	p := t.p
	if err := p.owns(ctx, r); err != nil {
		return nil, err
	}
	if err := p.enter(ctx, r, job.Proving); err != nil {
		return nil, err
	}
	if err := p.spend(ctx, r, 4*time.Second, 12*time.Second); err != nil {
		return nil, err
	}
	if p.h.dice.chance(0.7) {
		t.shrink(r)
	}
	if err := p.busy(ctx, r, 2*time.Second, true); err != nil {
		return nil, err
	}
	p.h.mu.Lock()
	lies, lost := p.h.lies, p.h.lost
	p.h.mu.Unlock()
	proof := p.h.w.made.proofs[t.ProveTask.TraceParent]
	switch {
	case lost:
		return nil, fault.New(fault.Device, "the device is lost")
	case lies:
		proof = p.h.w.made.otherThan(t.ProveTask.TraceParent)
	}
	return &wire.Result{
		Outcome: job.OutcomeOK, Proof: proof, ParamsDigest: "abcd", DeviceUUID: p.uuid(), Handoff: wire.HandoffSHM,
		Seconds: map[string]float64{"synthesis": 5, "start": 8},
	}, nil
}

// shrink gives back half of the segment, which lies on the device by then: it cannot be proved once more.
func (t *provingTask) shrink(r *attempt.Run) {
	var keeps ledger.Amounts
	t.p.change(r.Attempt(), func(b *booking) {
		half := b.amounts[ledger.PoolSHM] / 2
		keep, err := b.amounts.Minus(ledger.Amounts{ledger.PoolSHM: half, ledger.PoolRAM: half})
		if err != nil {
			t.p.h.w.fail("attempt %s holds %v: %v", r.Attempt(), b.amounts, err)
			return
		}
		b.amounts, b.sealed, b.shrunk, keeps = keep, false, true, keep.Clone()
	})
	if len(keeps) > 0 {
		t.p.send(wire.ReportSubject(t.p.h.name), &wire.Report{Attempt: r.Attempt(), Node: t.p.h.name, Keeps: keeps})
	}
}
