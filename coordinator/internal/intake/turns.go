package intake

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/proofrack/proofrack/shared/job"
)

// turns shares a few places among tenants: who waits gets one in the order of asking within its tenant, and tenants get
// theirs one after the other. So a tenant waits for at most one turn of each other one, however many those have asked
// for.
type turns struct {
	mu      sync.Mutex
	free    int
	order   []job.Tenant // those who wait, the next one first
	waiting map[job.Tenant][]chan struct{}
}

func newTurns(count int) *turns {
	return &turns{free: count, waiting: map[job.Tenant][]chan struct{}{}}
}

// acquire waits for a turn until ctx ends.
func (t *turns) acquire(ctx context.Context, name job.Tenant) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("wait for a turn to check the input: %w", err)
	}
	t.mu.Lock()
	if t.free > 0 { // then nobody waits
		t.free--
		t.mu.Unlock()
		return nil
	}
	mine := make(chan struct{})
	if len(t.waiting[name]) == 0 {
		t.order = append(t.order, name)
	}
	t.waiting[name] = append(t.waiting[name], mine)
	t.mu.Unlock()
	select {
	case <-mine:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if i := slices.Index(t.waiting[name], mine); i >= 0 {
		t.remove(name, i)
	} else {
		t.pass() // it was given a moment ago
	}
	return fmt.Errorf("wait for a turn to check the input: %w", ctx.Err())
}

// release ends a turn.
func (t *turns) release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pass()
}

// pass gives a turn to who is next.
func (t *turns) pass() {
	if len(t.order) == 0 {
		t.free++
		return
	}
	name := t.order[0]
	next := t.waiting[name][0]
	t.order = append(t.order[1:], name)
	t.remove(name, 0)
	close(next)
}

// remove takes one out of those who wait.
func (t *turns) remove(name job.Tenant, i int) {
	t.waiting[name] = slices.Delete(t.waiting[name], i, i+1)
	if len(t.waiting[name]) == 0 {
		delete(t.waiting, name)
		t.order = slices.DeleteFunc(t.order, func(other job.Tenant) bool { return other == name })
	}
}

// aheadBytes is how much of a source is read before a turn is taken: a sector's C1 output of 32 GiB takes some dozen
// turns, and what a request holds meanwhile counts in its tenant's bytes in flight.
const aheadBytes = 2 << 20

// turnReader reads a source without holding the turn that its reader computes with: it gives the turn up, reads a good
// piece, and takes a turn again. A source that is slow, or never goes on, keeps nobody from computing.
type turnReader struct {
	ctx    context.Context //nolint:containedctx // a reader has no other way to be ended
	turns  *turns
	tenant job.Tenant
	source io.Reader
	held   bool

	buffer []byte
	rest   []byte // of the buffer, not given out yet
	err    error  // of the source, once the rest is given out
}

func (r *turnReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 && r.err == nil {
		if err := r.fill(); err != nil {
			return 0, err
		}
	}
	if len(r.rest) == 0 {
		return 0, r.err
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// fill reads the next piece without a turn, and returns with one. It also begins the reader.
func (r *turnReader) fill() error {
	r.end()
	n := 0
	for n < len(r.buffer) && r.err == nil && r.ctx.Err() == nil {
		var more int
		more, r.err = r.source.Read(r.buffer[n:])
		n += more
	}
	r.rest = r.buffer[:n]
	if err := r.turns.acquire(r.ctx, r.tenant); err != nil {
		return err
	}
	r.held = true
	return nil
}

// end gives the turn up, if it is held.
func (r *turnReader) end() {
	if r.held {
		r.held = false
		r.turns.release()
	}
}
