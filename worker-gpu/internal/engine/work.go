package engine

import (
	"context"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/prover"
)

// start maps a segment, checks it and starts its proof; it is kept under the request's ID.
func (s *server) start(ctx context.Context, r *request, file *os.File) error {
	if r.Work == nil || file == nil {
		return fault.New(fault.Internal, "start without work or segment")
	}
	memory, err := mapSegment(file, r.Work)
	if err != nil {
		return err
	}
	p := &proof{memory: memory}
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.active.Add(1)
	s.mu.Lock()
	s.proofs[r.ID] = p
	s.mu.Unlock()
	if err := s.startProof(p, r.Work); err != nil {
		s.done(r.ID, p, true)
		return fmt.Errorf("prove attempt %s: %w", r.Work.Attempt, err)
	}
	s.done(r.ID, p, false)
	return nil
}

func (s *server) startProof(p *proof, w *Work) error {
	segment, err := compact.Open(p.memory[w.Offset:][:w.Bytes])
	if err != nil {
		return err
	}
	if segment.CircuitID() != w.Circuit || segment.Partition() != w.Partition {
		return fault.New(fault.Corrupt, "segment is of partition %d of circuit %s, asked to prove partition %d of %s",
			segment.Partition(), segment.CircuitID(), w.Partition, w.Circuit)
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

// mapSegment maps the whole file, which must hold what the work says.
func mapSegment(file *os.File, w *Work) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("look at segment of attempt %s: %w", w.Attempt, err)
	}
	size := info.Size()
	if w.Offset < 0 || w.Bytes < compact.HeaderBytes || w.Offset > size || w.Bytes > size-w.Offset || w.Offset%8 != 0 {
		return nil, fault.New(fault.Corrupt, "segment of attempt %s: bytes %d to %d of a file of %d",
			w.Attempt, w.Offset, w.Offset+w.Bytes, size)
	}
	memory, err := unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map segment of attempt %s: %w", w.Attempt, err)
	}
	return memory, nil
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

// drop gives up a proof; what runs of it ends soon.
func (s *server) drop(id uint64) {
	s.mu.Lock()
	p, ok := s.proofs[id]
	if ok {
		p.active.Add(1)
	}
	s.mu.Unlock()
	if ok {
		s.done(id, p, true)
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
	if err := unix.Munmap(p.memory); err != nil {
		panic(fmt.Sprintf("engine: unmap segment: %v", err))
	}
}
