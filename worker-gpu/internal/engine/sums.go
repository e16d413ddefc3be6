package engine

import (
	"slices"
	"sync"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// sums counts what the device works with while a proof is started or finished. It is booked once, since calls take
// turns on the device: however many are in it, one buffer is counted, as that of the first.
type sums struct {
	flight *flight.Recorder

	mu      sync.Mutex
	callers []*caller // in the order in which they came; the first has the buffer
	buffer  *flight.Buffer
}

// caller is one call that is in the device.
type caller struct {
	attempt job.Attempt
	bytes   bytesize.Bytes
}

// enter counts a call until the function that it gives is called.
func (s *sums) enter(attempt job.Attempt, bytes bytesize.Bytes) (leave func()) {
	c := &caller{attempt, bytes}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callers = append(s.callers, c)
	if len(s.callers) == 1 {
		s.begin()
	}
	return func() { s.leave(c) }
}

func (s *sums) leave(c *caller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.callers, c)
	s.callers = slices.Delete(s.callers, i, i+1)
	if i > 0 {
		return
	}
	s.buffer.Release()
	s.buffer.Gone()
	s.buffer = nil
	if len(s.callers) > 0 {
		s.begin()
	}
}

// begin counts the first caller's buffer.
func (s *sums) begin() {
	first := s.callers[0]
	s.buffer = s.flight.Allocate(ledger.ClassScratch, first.bytes, flight.Declared, first.attempt.String())
}

// working counts what the device works with for a proof until the function that it gives is called.
func (s *server) working(p *proof) (done func()) {
	s.deviceMu.RLock()
	m := s.device.Memory(p.params.Artifact.Totals)
	s.deviceMu.RUnlock()
	return s.sums.enter(p.attempt, bytesize.Bytes(m.WorkingBytes))
}
