package engine

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/prover"
)

// register makes room for a proof that is about to be prepared; that is its first use.
func (s *server) register(id uint64) {
	p := &proof{gone: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.active.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proofs[id] = p
}

// prepareProof maps a segment, checks it and makes its circuit's parameters resident, so that its start has nothing to
// wait for. The proof is kept under the request's ID.
func (s *server) prepareProof(r *request, file *os.File) (err error) {
	s.mu.Lock()
	p := s.proofs[r.ID]
	s.mu.Unlock()
	defer func() { s.done(r.ID, p, err != nil) }()
	if r.Work == nil || file == nil {
		if file != nil {
			_ = file.Close() // nobody can use it
		}
		return fault.New(fault.Internal, "prepare without work or segment")
	}
	w := r.Work
	mapped, err := handoff.FromFile(file, handoff.Want{
		Attempt: w.Attempt, Circuit: w.Circuit, Flight: s.flight,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	p.mapped, p.attempt = mapped, w.Attempt
	s.mu.Unlock()
	segment, err := compact.Open(mapped.Memory())
	if err != nil {
		return err
	}
	if segment.CircuitID() != w.Circuit || segment.Partition() != w.Attempt.Partition {
		return fault.New(fault.Corrupt, "segment is of partition %d of circuit %s, asked to prove partition %d of %s",
			segment.Partition(), segment.CircuitID(), w.Attempt.Partition, w.Circuit)
	}
	if err := segment.Verify(s.setup.Workers); err != nil {
		return fmt.Errorf("check segment of attempt %s: %w", w.Attempt, err)
	}
	res, release, err := s.set.Acquire(p.ctx, w.Circuit)
	if err != nil {
		return err
	}
	s.mu.Lock()
	p.release, p.params, p.source = release, res.Params, prover.Source{Segment: segment}
	s.mu.Unlock()
	s.steps.Add(1)
	return nil
}

// use finds a proof for one more use; done must follow. ready tells what state it must be in.
func (s *server) use(id uint64, ready func(*proof) bool) (*proof, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.proofs[id]
	if !ok || p.dropped || !ready(p) {
		return nil, fault.New(fault.Internal, "proof %d is not there, or not so far", id)
	}
	p.active.Add(1)
	return p, nil
}

// start starts a prepared proof.
func (s *server) start(id uint64) (err error) {
	p, err := s.use(id, func(p *proof) bool { return p.source.Segment != nil && p.pending == nil })
	if err != nil {
		return err
	}
	defer func() { s.done(id, p, err != nil) }()
	s.step("start")
	s.deviceMu.RLock()
	device := s.device
	s.deviceMu.RUnlock()
	s.mu.Lock()
	if !s.released.IsZero() {
		p.idle = time.Since(s.released)
	}
	s.mu.Unlock()
	worked := s.working(p)
	pending, err := device.Start(p.ctx, p.source, p.params)
	worked()
	s.mu.Lock()
	p.pending, s.released = pending, time.Now()
	s.mu.Unlock()
	if err != nil {
		return fmt.Errorf("prove attempt %s: %w", p.attempt, err)
	}
	p.mapped.OnDevice()
	s.step("released")
	return nil
}

// finish ends a started proof.
func (s *server) finish(id uint64) (*Proved, error) {
	p, err := s.use(id, func(p *proof) bool { return p.pending != nil })
	if err != nil {
		return nil, err
	}
	defer s.done(id, p, true)
	s.step("finish")
	worked := s.working(p)
	made, err := p.pending.Finish(p.ctx)
	worked()
	s.step("finished")
	if err != nil {
		return nil, fmt.Errorf("prove attempt %s: %w", p.attempt, err)
	}
	data := made.Bytes()
	t := p.pending.Timings()
	return &Proved{Proof: data[:], Seconds: map[string]float64{
		"quotient": t.Quotient.Seconds(), "msm_h": t.H.Seconds(), "msm_l": t.L.Seconds(), "msm_a": t.A.Seconds(),
		"msm_b_g1": t.B1.Seconds(), "msm_b_g2": t.B2.Seconds(), "assemble": t.Assemble.Seconds(),
		"verify": t.Verify.Seconds(), "device_idle": p.idle.Seconds(),
	}}, nil
}

// drop gives up a proof and waits until its segment is unmapped.
func (s *server) drop(id uint64) {
	s.mu.Lock()
	p, ok := s.proofs[id]
	if ok {
		p.active.Add(1)
	}
	s.mu.Unlock()
	if ok {
		s.done(id, p, true)
		<-p.gone
	}
}

// done ends one use of a proof. After the last use of a dropped one its mapping and parameters go.
func (s *server) done(id uint64, p *proof, drop bool) {
	s.mu.Lock()
	p.dropped = p.dropped || drop
	if p.dropped {
		p.cancel()
	}
	last := p.active.Add(-1) == 0 && p.dropped && s.proofs[id] == p
	if last {
		delete(s.proofs, id)
	}
	s.mu.Unlock()
	if !last {
		return
	}
	if p.release != nil {
		p.release()
	}
	if p.mapped != nil {
		if err := p.mapped.Close(); err != nil {
			panic(fmt.Sprintf("engine: %v", err))
		}
	}
	close(p.gone)
	s.report()
}
