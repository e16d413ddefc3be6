package prove

import (
	"context"
	"sync"
)

// lane orders the proofs of one device: one at a time is started, first come first served, while earlier ones finish.
type lane struct {
	turn chan struct{} // has a token while nobody starts

	mu       sync.Mutex
	finished chan struct{} // closed and renewed at each leave
	inside   int           // started and not finished
}

func newLane() *lane {
	l := &lane{turn: make(chan struct{}, 1), finished: make(chan struct{})}
	l.turn <- struct{}{}
	return l
}

// enter waits for the turn; with alone also until nobody else is inside. pass or leave must follow.
func (l *lane) enter(ctx context.Context, alone bool) error {
	select {
	case <-l.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	for alone {
		l.mu.Lock()
		inside, finished := l.inside, l.finished
		l.mu.Unlock()
		if inside == 0 {
			break
		}
		select {
		case <-finished:
		case <-ctx.Done():
			l.turn <- struct{}{}
			return ctx.Err()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside++
	return nil
}

// pass gives the turn on; who passed it stays inside until leave.
func (l *lane) pass() { l.turn <- struct{}{} }

// leave ends a stay.
func (l *lane) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inside--
	close(l.finished)
	l.finished = make(chan struct{})
}
