package gateway

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
)

// lane bounds how many requests of one kind are in memory at once. What waits for its turn was not read: HTTP/2 holds
// it back at its client. Turns are given in the order of asking. Lanes do not know each other, so no kind waits for
// another one.
type lane struct {
	turns   chan struct{}
	waiting atomic.Int64
}

func newLane(turns int) *lane { return &lane{turns: make(chan struct{}, turns)} }

// turn is the right to have a request in memory.
type turn struct {
	lane *lane
	once sync.Once
}

// take waits for a turn.
func (l *lane) take(ctx context.Context) (*turn, error) {
	l.waiting.Add(1)
	defer l.waiting.Add(-1)
	select {
	case l.turns <- struct{}{}:
		return &turn{lane: l}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// end gives the turn back; a second call does nothing.
func (t *turn) end() {
	if t != nil {
		t.once.Do(func() { <-t.lane.turns })
	}
}

// lanes are all lanes.
type lanes struct {
	byKind  map[cuzkv1.ProofKind]*lane
	unclear *lane // kind 0, kinds without a name, and requests whose kind is not where encoders write it
}

func newLanes(c *Config) *lanes {
	all := &lanes{byKind: map[cuzkv1.ProofKind]*lane{}, unclear: newLane(1)}
	for number := range cuzkv1.ProofKind_name {
		if kind := cuzkv1.ProofKind(number); kind != cuzkv1.ProofKind_PROOF_KIND_UNSPECIFIED {
			all.byKind[kind] = newLane(c.Forward.BodiesMax)
		}
	}
	all.byKind[cuzkv1.ProofKind_POREP_SEAL_COMMIT] = newLane(c.Gateway.BodiesMax)
	return all
}

func (l *lanes) of(h head) *lane {
	if lane, ok := l.byKind[h.kind]; ok && h.clear {
		return lane
	}
	return l.unclear
}

// held is what a call has with it: its turn, until somebody takes it over.
type held struct {
	mu   sync.Mutex
	turn *turn
}

type heldKey struct{}

// take takes the turn over; nil when somebody has, or there was none.
func (h *held) take() *turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.turn
	h.turn = nil
	return t
}

// takeTurn takes over the turn of a call, so that it ends with the work and not with the call; nil if there is none.
func takeTurn(ctx context.Context) *turn {
	if h, ok := ctx.Value(heldKey{}).(*held); ok {
		return h.take()
	}
	return nil
}
