package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// CheckWithin bounds the wait for one answer of all checks together; a check that has not answered counts as failed.
const CheckWithin = 500 * time.Millisecond

// Check asks whether something works; the error says why not, for people.
type Check func(ctx context.Context) error

// Health is the registry of what has to hold for a process to be ready, and for it to be alive. It is safe for
// concurrent use.
type Health struct {
	mu     sync.Mutex
	states map[string]error // what was told with Set
	checks map[string]*probe
}

// NewHealth makes a registry without checks: ready and alive.
func NewHealth() *Health { return &Health{states: map[string]error{}, checks: map[string]*probe{}} }

// probe is a registered check. At most one call of it runs at any time, so one that hangs costs one goroutine.
type probe struct {
	check    Check
	liveness bool

	mu     sync.Mutex
	flight chan struct{} // closed when the present call ends; nil while none runs
	since  time.Time     // when the present call began
	err    error         // answer of the last call
}

// Set tells the state of something that reports by itself: nil is ready, an error why it is not.
func (h *Health) Set(name string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.states[name] = err
}

// Ready adds a check that has to pass before the process takes work. A name registered before is replaced.
func (h *Health) Ready(name string, check Check) { h.add(name, &probe{check: check}) }

// Live adds a check whose failure means that only a restart helps. It counts for readiness too.
func (h *Health) Live(name string, check Check) { h.add(name, &probe{check: check, liveness: true}) }

func (h *Health) add(name string, p *probe) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks[name] = p
}

// Answer is what one check says.
type Answer struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"` // why not
}

// State is what all checks say.
type State struct {
	OK     bool     `json:"ok"`
	Checks []Answer `json:"checks"` // by name
}

// Reason names what does not hold, "" when all does.
func (s State) Reason() string {
	var text string
	for _, a := range s.Checks {
		if !a.OK {
			if text != "" {
				text += "; "
			}
			text += a.Name + ": " + a.Reason
		}
	}
	return text
}

// Readiness asks everything. It answers within CheckWithin.
func (h *Health) Readiness(ctx context.Context) State { return h.ask(ctx, false) }

// Liveness asks the liveness checks. It answers within CheckWithin.
func (h *Health) Liveness(ctx context.Context) State { return h.ask(ctx, true) }

func (h *Health) ask(ctx context.Context, liveness bool) State {
	ctx, cancel := context.WithTimeout(ctx, CheckWithin)
	defer cancel()
	state := State{OK: true, Checks: []Answer{}}
	answers := make(chan Answer)
	asked := 0
	h.mu.Lock()
	for name, p := range h.checks {
		if p.liveness || !liveness {
			asked++
			p.begin()
			go func() { answers <- answer(name, p.wait(ctx)) }()
		}
	}
	for name, err := range h.states {
		if !liveness {
			state.Checks = append(state.Checks, answer(name, err))
		}
	}
	h.mu.Unlock()
	for range asked {
		state.Checks = append(state.Checks, <-answers)
	}
	slices.SortFunc(state.Checks, func(a, b Answer) int { return cmp.Compare(a.Name, b.Name) })
	for _, a := range state.Checks {
		state.OK = state.OK && a.OK
	}
	return state
}

func answer(name string, err error) Answer {
	if err != nil {
		return Answer{Name: name, Reason: err.Error()}
	}
	return Answer{Name: name, OK: true}
}

// begin calls the check unless a call is still running.
func (p *probe) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.flight != nil {
		return
	}
	flight := make(chan struct{})
	p.flight, p.since = flight, time.Now()
	go func() {
		// The call is shared by all who ask at the time, so it ends with none of them.
		ctx, cancel := context.WithTimeout(context.Background(), CheckWithin)
		err := p.check(ctx)
		cancel()
		p.mu.Lock()
		p.err, p.flight = err, nil
		p.mu.Unlock()
		close(flight)
	}()
}

// wait is the answer of the running call, or that there is none.
func (p *probe) wait(ctx context.Context) error {
	p.mu.Lock()
	flight, since := p.flight, p.since
	if flight == nil {
		defer p.mu.Unlock()
		return p.err
	}
	p.mu.Unlock()
	select {
	case <-flight:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.err
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return fmt.Errorf("not waited for: %w", ctx.Err())
		}
		return fmt.Errorf("no answer for %s", time.Since(since).Round(100*time.Millisecond))
	}
}
