package drill

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// Rack is what a drill asks of a rack. Errors are of kind Transient, or time-outs, while it cannot answer.
type Rack interface {
	// Submit has a job accepted, the same input each time, under a key of its own.
	Submit(ctx context.Context, key string) (job.ID, error)
	Record(ctx context.Context, id job.ID) (*job.Record, error)
	// Result is the proof of a job that is done.
	Result(ctx context.Context, r *job.Record) ([]byte, error)
	Nodes(ctx context.Context) (*wire.NodesReply, error)
	Books(ctx context.Context) ([]wire.LedgerNode, error)
	Letters(ctx context.Context) ([]wire.DeadLetter, error)
	// Buffers tells whether no large buffer but assets is anywhere, and names those that should be gone or were counted
	// wrongly.
	Buffers(ctx context.Context) (none bool, wrong []string, err error)
	Close()
}

// watch asks the rack for all that a drill looks at, again and again, and connects anew whenever it does not answer.
type watch struct {
	connect func(ctx context.Context) (Rack, error)
	every   time.Duration // between samples
	limit   time.Duration // of one question

	mu   sync.Mutex
	rack Rack
	jobs []job.ID
	seen seen
}

// seen is what a watch saw so far.
type seen struct {
	records map[job.ID]*job.Record
	gone    map[job.ID]bool // the last answer was that there is no such job
	// finished is how many attempts a partition had made when it was first seen finished.
	finished map[job.Attempt]int
	nodes    *wire.NodesReply
	books    []wire.LedgerNode
	booked   map[string]ledger.Amounts // by node, the last look
	at       time.Time                 // of the last whole answer
	samples  int
	silent   time.Duration // the longest time without a whole answer
	wrong    []string
	trace    trace
}

func newWatch(connect func(ctx context.Context) (Rack, error), every, limit time.Duration) *watch {
	w := &watch{connect: connect, every: every, limit: limit}
	w.seen = seen{
		records: map[job.ID]*job.Record{}, gone: map[job.ID]bool{}, finished: map[job.Attempt]int{},
		booked: map[string]ledger.Amounts{}, at: time.Now(),
	}
	return w
}

// run samples until ctx ends.
func (w *watch) run(ctx context.Context) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		w.sample(ctx)
		select {
		case <-ctx.Done():
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.rack != nil {
				w.rack.Close()
				w.rack = nil
			}
			return
		case <-ticker.C:
		}
	}
}

// follow adds a job to what is looked at.
func (w *watch) follow(id job.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.jobs = append(w.jobs, id)
}

// sample looks once. Whatever fails, the rack is away.
func (w *watch) sample(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, w.limit)
	defer cancel()
	w.mu.Lock()
	rack, jobs := w.rack, slices.Clone(w.jobs)
	w.mu.Unlock()
	if rack == nil {
		var err error
		if rack, err = w.connect(ctx); err != nil {
			w.note(func(s *seen) { s.trace.unanswered++ })
			return
		}
	}
	whole := w.look(ctx, rack, jobs)
	w.mu.Lock()
	defer w.mu.Unlock()
	if !whole {
		w.seen.trace.unanswered++
		rack.Close()
		rack = nil
	} else {
		now := time.Now()
		w.seen.silent = max(w.seen.silent, now.Sub(w.seen.at))
		w.seen.trace.silent = max(w.seen.trace.silent, now.Sub(w.seen.at))
		w.seen.at = now
		w.seen.samples++
	}
	w.rack = rack
}

// look asks everything, and tells whether all was answered.
func (w *watch) look(ctx context.Context, rack Rack, jobs []job.ID) bool {
	for _, id := range jobs {
		record, err := rack.Record(ctx, id)
		if fault.KindOf(err) == fault.NotFound {
			w.note(func(s *seen) {
				s.gone[id] = true
				s.trace.lookForJob(id)
			})
			continue
		}
		if err != nil {
			return false
		}
		w.note(func(s *seen) { s.record(record) })
	}
	books, err := rack.Books(ctx)
	if err != nil {
		return false
	}
	w.note(func(s *seen) { s.look(books) })
	nodes, err := rack.Nodes(ctx)
	if err != nil {
		return false
	}
	w.note(func(s *seen) {
		s.nodes = nodes
		s.trace.lookAtNodes(nodes)
	})
	return true
}

func (w *watch) note(f func(*seen)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.seen)
}

// record notes what is finished, and what was begun again although it was (invariant 6).
func (s *seen) record(r *job.Record) {
	s.gone[r.ID] = false
	s.records[r.ID] = r
	s.trace.lookAtRecord(r)
	for i := range r.Partitions {
		p := &r.Partitions[i]
		at := job.Attempt{Job: r.ID, Partition: i}
		attempts, known := s.finished[at]
		switch {
		case !known && p.Stage == job.Verified:
			s.finished[at] = len(p.Attempts)
		case known && (p.Stage != job.Verified || len(p.Attempts) != attempts):
			s.blame("partition %d of job %s was finished and is %s after %d more attempts", i, r.ID, p.Stage,
				len(p.Attempts)-attempts)
			delete(s.finished, at)
		}
	}
}

// look notes pools that hold more than there is (invariant 1). Where the capacity itself fell below what is held,
// nothing more may be booked.
func (s *seen) look(books []wire.LedgerNode) {
	for _, b := range books {
		if b.Declared {
			for pool, held := range b.Held {
				if held > b.Capacity[pool] && held > s.booked[string(b.Node)][pool] {
					s.blame("node %s holds %s of %s of %s", b.Node, held, b.Capacity[pool], pool)
				}
			}
		}
		s.booked[string(b.Node)] = b.Held
	}
	s.trace.lookAtBooks(books)
	s.books = books
}

// blamesMax bounds what is listed as wrong.
const blamesMax = 20

func (s *seen) blame(format string, args ...any) {
	if len(s.wrong) < blamesMax {
		s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	}
}

// until waits until something holds of what was seen, and tells whether it did before ctx ended.
func (w *watch) until(ctx context.Context, holds func(*seen) bool) bool {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for {
		w.mu.Lock()
		ok := holds(&w.seen)
		w.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}
