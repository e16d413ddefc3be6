package engine

import (
	"context"
	"fmt"
	"os"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/prover"
)

// register makes room for a proof that is about to start; its start is its first use.
func (s *server) register(id uint64) {
	p := &proof{gone: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.active.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.proofs[id] = p
}

// start maps a segment, checks it and starts its proof; it is kept under the request's ID.
func (s *server) start(r *request, file *os.File) (err error) {
	s.mu.Lock()
	p := s.proofs[r.ID]
	s.mu.Unlock()
	defer func() { s.done(r.ID, p, err != nil) }()
	if r.Work == nil || file == nil {
		if file != nil {
			_ = file.Close() // nobody can use it
		}
		return fault.New(fault.Internal, "start without work or segment")
	}
	mapped, err := handoff.FromFile(file, handoff.Want{Attempt: r.Work.Attempt, Circuit: r.Work.Circuit})
	if err != nil {
		return err
	}
	s.mu.Lock()
	p.mapped = mapped
	s.mu.Unlock()
	if err := s.startProof(p, r.Work); err != nil {
		return fmt.Errorf("prove attempt %s: %w", r.Work.Attempt, err)
	}
	return nil
}

func (s *server) startProof(p *proof, w *Work) error {
	segment, err := compact.Open(p.mapped.Memory())
	if err != nil {
		return err
	}
	if segment.CircuitID() != w.Circuit || segment.Partition() != w.Attempt.Partition {
		return fault.New(fault.Corrupt, "segment is of partition %d of circuit %s, asked to prove partition %d of %s",
			segment.Partition(), segment.CircuitID(), w.Attempt.Partition, w.Circuit)
	}
	s.step("check segment")
	if err := segment.Verify(s.setup.Workers); err != nil {
		return err
	}
	res, release, err := s.set.Acquire(p.ctx, w.Circuit)
	if err != nil {
		return err
	}
	s.mu.Lock()
	p.release = release
	s.mu.Unlock()
	s.step("start")
	s.deviceMu.RLock()
	device := s.device
	s.deviceMu.RUnlock()
	pending, err := device.Start(p.ctx, prover.Source{Segment: segment}, res.Params)
	if err != nil {
		return err
	}
	s.mu.Lock()
	p.pending = pending
	s.mu.Unlock()
	s.step("released")
	return nil
}

// finish ends a started proof.
func (s *server) finish(id uint64) (*Proved, error) {
	s.mu.Lock()
	p, ok := s.proofs[id]
	if !ok || p.pending == nil || p.dropped {
		s.mu.Unlock()
		return nil, fault.New(fault.Internal, "finish proof %d: it was not started", id)
	}
	p.active.Add(1)
	s.mu.Unlock()
	s.step("finish")
	made, err := p.pending.Finish(p.ctx)
	defer s.done(id, p, true)
	s.step("finished")
	if err != nil {
		return nil, err
	}
	data := made.Bytes()
	t := p.pending.Timings()
	return &Proved{Proof: data[:], Seconds: map[string]float64{
		"quotient": t.Quotient.Seconds(), "msm_h": t.H.Seconds(), "msm_l": t.L.Seconds(), "msm_a": t.A.Seconds(),
		"msm_b_g1": t.B1.Seconds(), "msm_b_g2": t.B2.Seconds(), "assemble": t.Assemble.Seconds(),
		"verify": t.Verify.Seconds(),
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
}
