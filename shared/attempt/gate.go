package attempt

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
)

// GateDrain is the gate's reason while a worker drains.
const GateDrain = "drain"

// Gate tells whether new work may be fetched: it is open while nobody has a reason against it.
type Gate struct {
	changed func()

	mu      sync.Mutex
	reasons map[string]string
	opened  chan struct{} // closed while the gate is open
	closed  chan struct{} // closed while it is not
}

// NewGate makes an open gate; changed is called after every change.
func NewGate(changed func()) *Gate {
	g := &Gate{changed: changed, reasons: map[string]string{}, opened: make(chan struct{}), closed: make(chan struct{})}
	close(g.opened)
	return g
}

// Set gives a reason under a key against new work; "" takes it back.
func (g *Gate) Set(key, reason string) {
	g.mu.Lock()
	before := len(g.reasons)
	same := g.reasons[key] == reason
	if reason == "" {
		delete(g.reasons, key)
	} else {
		g.reasons[key] = reason
	}
	switch now := len(g.reasons); {
	case before == 0 && now > 0:
		g.opened = make(chan struct{})
		close(g.closed)
	case before > 0 && now == 0:
		g.closed = make(chan struct{})
		close(g.opened)
	}
	g.mu.Unlock()
	if !same {
		g.changed()
	}
}

// Reasons are all reasons in words, "" while the gate is open.
func (g *Gate) Reasons() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []string
	for _, key := range slices.Sorted(maps.Keys(g.reasons)) {
		all = append(all, g.reasons[key])
	}
	return strings.Join(all, "; ")
}

// Has tells whether there is a reason under a key.
func (g *Gate) Has(key string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.reasons[key] != ""
}

// Opened is closed while the gate is open.
func (g *Gate) Opened() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.opened
}

// WhileOpen gives a context that ends when the gate closes.
func (g *Gate) WhileOpen(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	g.mu.Lock()
	closed := g.closed
	g.mu.Unlock()
	go func() {
		select {
		case <-closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
