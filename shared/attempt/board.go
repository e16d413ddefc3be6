package attempt

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// settledMax is how many ended attempts are remembered, so that a message that comes again is only acknowledged.
const settledMax = 4096

// Board is what this process works on.
type Board struct {
	changed func()

	mu      sync.Mutex
	running map[job.Attempt]*Run
	settled map[job.Attempt]bool
	order   []job.Attempt // of settled, oldest first
	empty   chan struct{} // closed while nothing runs
}

// NewBoard makes an empty board; changed is called after every change.
func NewBoard(changed func()) *Board {
	b := &Board{
		changed: changed, running: map[job.Attempt]*Run{}, settled: map[job.Attempt]bool{}, empty: make(chan struct{}),
	}
	close(b.empty)
	return b
}

// Run is one attempt that is worked on.
type Run struct {
	board   *Board
	attempt job.Attempt
	cancel  context.CancelCauseFunc
	steps   atomic.Uint64
	loop    *loop
	task    Task
	mark    *mark
	trace   trail

	mu       sync.Mutex
	delivery bus.Delivery
	source   func() uint64 // progress that others count
	stage    job.Stage
	handoff  string
	why      string // it lies there
}

// claim puts an attempt on the board. When it is there already the delivery joins it and known is true; so it is when
// the attempt has ended here, with a nil run.
func (b *Board) claim(
	a job.Attempt, stage job.Stage, d bus.Delivery, cancel context.CancelCauseFunc,
) (r *Run, known bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r, ok := b.running[a]; ok {
		r.join(d)
		return r, true
	}
	if b.settled[a] {
		return nil, true
	}
	r = &Run{board: b, attempt: a, cancel: cancel, delivery: d, stage: stage}
	if len(b.running) == 0 {
		b.empty = make(chan struct{})
	}
	b.running[a] = r
	return r, false
}

// end takes a run off the board. One that has settled its attempt is remembered.
func (b *Board) end(r *Run, settled bool) {
	b.mu.Lock()
	delete(b.running, r.attempt)
	if len(b.running) == 0 {
		close(b.empty)
	}
	b.mu.Unlock()
	if settled {
		b.remember(r.attempt)
	}
	b.changed()
}

// remember has an attempt count as settled.
func (b *Board) remember(a job.Attempt) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.settled[a] {
		return
	}
	b.settled[a] = true
	b.order = append(b.order, a)
	if len(b.order) > settledMax {
		delete(b.settled, b.order[0])
		b.order = b.order[1:]
	}
}

// Running lists what is worked on, for beats.
func (b *Board) Running() []wire.Running {
	b.mu.Lock()
	runs := make([]*Run, 0, len(b.running))
	for _, r := range b.running {
		runs = append(runs, r)
	}
	b.mu.Unlock()
	slices.SortFunc(runs, func(x, y *Run) int { return cmp.Compare(x.attempt.String(), y.attempt.String()) })
	var list []wire.Running
	for _, r := range runs {
		progress := r.Progress()
		r.mu.Lock()
		list = append(list, wire.Running{
			Attempt: r.attempt, Stage: r.stage, Progress: progress, Handoff: r.handoff, HandoffReason: r.why,
		})
		r.mu.Unlock()
	}
	return list
}

// Has tells whether an attempt is worked on.
func (b *Board) Has(a job.Attempt) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.running[a] != nil
}

// Cancel ends a run for a cause and tells whether there was one.
func (b *Board) Cancel(a job.Attempt, cause error) bool {
	b.mu.Lock()
	r := b.running[a]
	b.mu.Unlock()
	if r == nil {
		return false
	}
	r.cancel(cause)
	return true
}

// CancelAll ends all runs.
func (b *Board) CancelAll(cause error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range b.running {
		r.cancel(cause)
	}
}

// Idle is closed while nothing runs; ask again after it.
func (b *Board) Idle() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.empty
}

// Attempt is whose run it is.
func (r *Run) Attempt() job.Attempt { return r.attempt }

// Step tells that the work advances.
func (r *Run) Step() { r.steps.Add(1) }

// Follow has progress counted elsewhere as well, e.g. by an engine; nil stops that. The sum must not fall.
func (r *Run) Follow(source func() uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.source != nil {
		r.steps.Add(r.source())
	}
	r.source = source
}

// Progress rises as long as the work advances.
func (r *Run) Progress() uint64 {
	r.mu.Lock()
	source := r.source
	r.mu.Unlock()
	n := r.steps.Load()
	if source != nil {
		n += source()
	}
	return n
}

// SetHandoff records where the segment lies and, when that is not the preferred place, why.
func (r *Run) SetHandoff(kind, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handoff, r.why = kind, why
}

// Handoff is where the segment lies, and why when that is not the preferred place.
func (r *Run) Handoff() (kind, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.handoff, r.why
}

// join makes a later delivery of the same message the one that is kept and acknowledged.
func (r *Run) join(d bus.Delivery) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delivery = d
}

func (r *Run) current() bus.Delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.delivery
}
