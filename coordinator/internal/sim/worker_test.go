package sim_test

import (
	"context"
	"time"

	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// fenceSaid is what a worker learned about an attempt.
type fenceSaid int

const (
	unknown fenceSaid = iota
	current
	stale
)

// compare gives what the worker asks about fences: the real one.
func (p *worker) compare() (*attempt.Fences, error) {
	p.h.mu.Lock()
	f := p.fences
	p.h.mu.Unlock()
	if f != nil {
		return f, nil
	}
	kv, err := p.link.KV(p.ctx, wire.BucketJobs)
	if err != nil {
		return nil, err
	}
	f = attempt.NewFences(kv, p.link.Connected, callTimeout)
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	p.fences = f
	return f, nil
}

// ask asks the record whether an attempt owns its partition. One that was fenced out before may not pass.
func (p *worker) ask(a job.Attempt) fenceSaid {
	f, err := p.compare()
	if err != nil {
		return unknown
	}
	out := p.h.w.fencedOut(a)
	switch err := f.Check(p.ctx, a); {
	case err == nil && out:
		p.h.w.fail("invariant 5: %s was fenced out, and worker %s goes on with it", a, p.instance)
		return current
	case err == nil:
		return current
	case fault.KindOf(err) == fault.Transient:
		return unknown
	}
	return stale
}

// begin notes an attempt in the hands of this worker; false: it is in them already.
func (p *worker) begin(a job.Attempt, stage job.Stage) (ctx context.Context, end func(), ok bool) {
	p.h.mu.Lock()
	defer p.h.mu.Unlock()
	if p.running[a] != nil {
		return nil, nil, false
	}
	ctx, stop := context.WithCancel(p.ctx)
	p.running[a] = &work{stage: stage, stop: stop}
	return ctx, func() {
		stop()
		p.h.mu.Lock()
		defer p.h.mu.Unlock()
		delete(p.running, a)
	}, true
}

// keep tells the queue that the work goes on, until done.
func (p *worker) keep(ctx context.Context, d bus.Delivery) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	p.wg.Go(func() {
		for sleep(ctx, ackWait/3) == nil && p.gate() == nil {
			_ = d.InProgress(ctx)
		}
	})
	return cancel
}

// busy spends time on an attempt, a second at a time. false: it was stopped.
func (p *worker) busy(ctx context.Context, a job.Attempt, d time.Duration, advance bool) bool {
	for ; d > 0; d -= time.Second {
		if sleep(ctx, time.Second) != nil || p.gate() != nil {
			return false
		}
		p.h.mu.Lock()
		if r := p.running[a]; r != nil && advance {
			r.progress++
		}
		p.h.mu.Unlock()
	}
	return ctx.Err() == nil
}

// stage moves an attempt on.
func (p *worker) stage(a job.Attempt, s job.Stage) {
	p.h.mu.Lock()
	if r := p.running[a]; r != nil {
		r.stage = s
		r.progress++
	}
	if b := p.h.book[a]; b != nil {
		b.stage = s
	}
	p.h.mu.Unlock()
	p.send(wire.ReportSubject(p.h.name), &wire.Report{Attempt: a, Node: p.h.name, Stage: s, Handoff: wire.HandoffSHM})
}

// free gives back all bytes of an attempt. A worker that is dead gives nothing back: the host finds it.
func (p *worker) free(a job.Attempt) {
	if p.ctx.Err() != nil {
		return
	}
	p.h.mu.Lock()
	delete(p.h.book, a)
	p.h.mu.Unlock()
	p.h.w.log.Debug().Stringer("attempt", a).Str("worker", p.instance).Msg("host frees")
	p.send(wire.ReportSubject(p.h.name), &wire.Report{Attempt: a, Node: p.h.name, Freed: true})
	p.changed()
}

// publish publishes until it is stored, or the worker is dead.
func (p *worker) publish(m bus.Message) bool {
	for p.gate() == nil {
		if _, err := p.link.Publish(p.ctx, m); err == nil {
			return true
		}
		_ = sleep(p.ctx, time.Second)
	}
	return false
}

func (p *worker) result(r *wire.Result) {
	r.Node, r.Device, r.Build, r.DeviceUUID = p.h.name, device, "sim", "CPU-"+string(p.h.name)
	data, err := wire.Encode(r)
	if err != nil {
		p.h.w.fail("encode result: %v", err)
		return
	}
	if r.Outcome == job.OutcomeOK {
		p.h.w.told(r.Attempt)
	}
	p.publish(bus.Message{Subject: wire.ResultSubject(p.h.name), ID: r.ID(), Data: data})
}

func (p *worker) ended(a job.Attempt, o job.Outcome, kind fault.Kind, blame bool, why string) {
	p.result(&wire.Result{
		Attempt: a, Outcome: o, BlameDevice: blame, Fault: &fault.Report{Kind: kind, Stage: "sim", Message: why},
	})
}

// synthesize takes one task through synthesis.
func (p *worker) synthesize(d bus.Delivery, _ chan struct{}) {
	var t wire.SynthTask
	if err := wire.Decode(d.Message().Data, &t); err != nil {
		p.h.w.fail("task: %v", err)
		return
	}
	a, h := t.Attempt, p.h
	switch p.ask(a) {
	case stale:
		_ = d.Ack(p.ctx)
		return
	case unknown:
		_ = d.Nak(p.ctx, time.Second)
		return
	case current:
	}
	if p.again(d, &t) {
		return
	}
	ctx, end, ok := p.begin(a, job.Synthesizing)
	if !ok {
		_ = d.Nak(p.ctx, heartbeat)
		return
	}
	defer end()
	if p.gate() != nil {
		return
	}
	if !h.admit(p, a, t.Amounts) {
		p.ended(a, job.OutcomeHandedBack, fault.Exhausted, false, "no room on the node")
		_ = d.Ack(p.ctx)
		return
	}
	done := p.keep(ctx, d)
	defer done()
	p.stage(a, job.Synthesizing)
	p.changed()
	h.mu.Lock()
	slow := h.slow
	h.mu.Unlock()
	spent := h.dice.between(2*time.Second, 15*time.Second)
	if slow {
		spent *= 4
	}
	if !p.busy(ctx, a, spent, !slow) || p.ask(a) == stale {
		p.free(a)
		_ = d.Ack(p.ctx)
		return
	}
	if p.gate() != nil {
		return
	}
	h.mu.Lock()
	if b := h.book[a]; b != nil {
		b.sealed = true
	}
	h.mu.Unlock()
	p.stage(a, job.Sealed)
	if p.handOver(&t) {
		_ = d.Ack(p.ctx)
	}
}

// again settles a task whose attempt has bytes already: it is in somebody's hands, or its worker died and they are not
// swept yet.
func (p *worker) again(d bus.Delivery, t *wire.SynthTask) bool {
	p.h.mu.Lock()
	held := p.h.book[t.Attempt]
	sealed := held != nil && held.sealed
	p.h.mu.Unlock()
	switch {
	case sealed:
		p.handOver(t)
		_ = d.Ack(p.ctx)
	case held != nil:
		_ = d.Nak(p.ctx, heartbeat)
	}
	return held != nil
}

func (p *worker) handOver(t *wire.SynthTask) bool {
	data, err := wire.Encode(&wire.ProveTask{
		Attempt: t.Attempt, Node: t.Node, Device: t.Device, Circuit: t.Circuit, Segment: t.Attempt.String(),
		Handoff: wire.HandoffSHM, Amounts: t.Amounts,
		TraceParent: t.Slice.SHA256, // which proof is the right one
	})
	if err != nil {
		p.h.w.fail("encode task: %v", err)
		return false
	}
	return p.publish(bus.Message{
		Subject: wire.ProveSubject(t.Node, t.Device), ID: t.Attempt.String(), Data: data,
	})
}

// prove takes one sealed attempt through the device, which does one at a time.
func (p *worker) prove(d bus.Delivery, turn chan struct{}) {
	var t wire.ProveTask
	if err := wire.Decode(d.Message().Data, &t); err != nil {
		p.h.w.fail("task: %v", err)
		return
	}
	a, h := t.Attempt, p.h
	said := p.ask(a)
	if said == unknown || p.gate() != nil {
		_ = d.Nak(p.ctx, time.Second)
		return
	}
	h.mu.Lock()
	b := h.book[a]
	mine := p.running[a] != nil
	if b != nil && !mine && said == current {
		b.owner = p
	}
	h.mu.Unlock()
	switch {
	case mine:
		_ = d.Nak(p.ctx, heartbeat)
		return
	case said == stale:
		if b != nil {
			p.free(a)
		}
		_ = d.Ack(p.ctx)
		return
	case b == nil:
		p.ended(a, job.OutcomeLost, fault.NotFound, false, "its segment is gone")
		_ = d.Ack(p.ctx)
		return
	}
	ctx, end, ok := p.begin(a, job.Sealed)
	if !ok {
		return
	}
	defer end()
	done := p.keep(ctx, d)
	defer done()
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		p.free(a)
		_ = d.Ack(p.ctx)
		return
	}
	proved := p.compute(ctx, a)
	<-turn
	p.settle(&t, proved)
	if p.ctx.Err() == nil {
		p.free(a)
		_ = d.Ack(p.ctx)
	}
}

// compute is the device's work. false: it was stopped, or has lost its fence.
func (p *worker) compute(ctx context.Context, a job.Attempt) bool {
	h := p.h
	p.stage(a, job.Proving)
	h.mu.Lock()
	slow := h.slow
	h.mu.Unlock()
	spent := h.dice.between(4*time.Second, 12*time.Second)
	if slow {
		spent *= 4
	}
	if !p.busy(ctx, a, spent, !slow) {
		return false
	}
	h.mu.Lock()
	b := h.book[a]
	var keeps ledger.Amounts
	if b != nil && h.dice.chance(0.7) {
		// a and b lie on the device by now.
		half := b.amounts[ledger.PoolSHM] / 2
		gone := ledger.Amounts{ledger.PoolSHM: half, ledger.PoolRAM: half}
		keep, err := b.amounts.Minus(gone)
		if err != nil {
			h.mu.Unlock()
			h.w.fail("attempt %s holds %v: %v", a, b.amounts, err)
			return false
		}
		b.amounts, keeps = keep, keep.Clone()
	}
	h.mu.Unlock()
	if len(keeps) > 0 {
		p.send(wire.ReportSubject(h.name), &wire.Report{Attempt: a, Node: h.name, Keeps: keeps})
	}
	return p.busy(ctx, a, 2*time.Second, true) && p.ask(a) != stale
}

// settle publishes the attempt's one outcome.
func (p *worker) settle(t *wire.ProveTask, proved bool) {
	h, a := p.h, t.Attempt
	if p.ctx.Err() != nil || !proved {
		return
	}
	h.mu.Lock()
	lies, lost := h.lies, h.lost
	h.mu.Unlock()
	proof := h.w.made.proofs[t.TraceParent]
	switch {
	case lost:
		p.ended(a, job.OutcomeFailed, fault.Device, true, "the device is lost")
		return
	case lies:
		proof = h.w.made.otherThan(t.TraceParent)
	}
	p.stage(a, job.Proved)
	p.result(&wire.Result{
		Attempt: a, Outcome: job.OutcomeOK, Proof: proof, ParamsDigest: "abcd", Handoff: wire.HandoffSHM,
		Seconds: map[string]float64{"synthesis": 5, "start": 8},
	})
}
