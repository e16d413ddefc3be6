package dispatch

import (
	"context"
	"sync"
)

// lanes run slow work beside the loop: tasks of one key one after another, in their order, tasks of different keys side
// by side, at most workersMax at once.
type lanes struct {
	ctx        context.Context
	workersMax int

	mu      sync.Mutex
	queues  map[string][]func(context.Context)
	ready   []string // keys whose first task may run
	workers int
	closed  bool
	wg      sync.WaitGroup
}

func newLanes(ctx context.Context, workersMax int) *lanes {
	return &lanes{ctx: ctx, workersMax: workersMax, queues: map[string][]func(context.Context){}}
}

// do adds a task. After close it does nothing.
func (l *lanes) do(key string, task func(context.Context)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	queue, busy := l.queues[key]
	l.queues[key] = append(queue, task)
	if busy {
		return
	}
	l.ready = append(l.ready, key)
	if l.workers < l.workersMax {
		l.workers++
		l.wg.Go(l.work)
	}
}

// work runs tasks until none is ready.
func (l *lanes) work() {
	for {
		l.mu.Lock()
		if len(l.ready) == 0 || l.closed || l.ctx.Err() != nil {
			l.workers--
			l.mu.Unlock()
			return
		}
		key := l.ready[0]
		l.ready = l.ready[1:]
		task := l.queues[key][0]
		l.mu.Unlock()

		task(l.ctx)

		l.mu.Lock()
		rest := l.queues[key][1:]
		if len(rest) == 0 {
			delete(l.queues, key)
		} else {
			l.queues[key] = rest
			l.ready = append(l.ready, key)
		}
		l.mu.Unlock()
	}
}

// close drops what waits and returns when what runs has ended; the lanes' context should have ended before.
func (l *lanes) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.wg.Wait()
}

// inbox is what the loop is asked to do by others. It is bounded by what they have under way, each of them at most one.
type inbox struct {
	ready chan struct{}

	mu    sync.Mutex
	items []func()
}

func newInbox() *inbox { return &inbox{ready: make(chan struct{}, 1)} }

func (b *inbox) post(item func()) {
	b.mu.Lock()
	b.items = append(b.items, item)
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

func (b *inbox) take() []func() {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items = nil
	return items
}
