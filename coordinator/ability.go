package coordinator

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/proof/catalog"
)

// ability keeps whether this instance could verify what a leader has to: the proofs of all jobs that are under way, or,
// when there is none, of any circuit. Looking may read files, and the election asks often.
type ability struct {
	ready func(ctx context.Context, circuitID string) error
	any   func(ctx context.Context, circuitIDs []string) error
	live  func() []store.Job
	known []string // all circuits

	missing atomic.Pointer[string] // nil for nothing
}

func newAbility(c *coordinator) *ability {
	a := &ability{ready: c.verifier.Ready, any: c.verifier.AnyReady, live: c.store.Live}
	for _, known := range catalog.Circuits() {
		a.known = append(a.known, known.ID())
	}
	return a
}

// check looks, and is why this instance is not able.
func (a *ability) check(ctx context.Context) error {
	var wanted []string
	for _, j := range a.live() {
		if !slices.Contains(wanted, j.Record.Circuit) {
			wanted = append(wanted, j.Record.Circuit)
		}
	}
	if len(wanted) == 0 {
		return a.any(ctx, a.known)
	}
	slices.Sort(wanted)
	for _, id := range wanted {
		if err := a.ready(ctx, id); err != nil {
			return fmt.Errorf("proofs of circuit %s cannot be verified, and a job waits for that: %w", id, err)
		}
	}
	return nil
}

// look takes note of what check finds.
func (a *ability) look(ctx context.Context) {
	err := a.check(ctx)
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		a.missing.Store(nil)
		return
	}
	text := err.Error()
	a.missing.Store(&text)
}

// run looks from time to time.
func (a *ability) run(ctx context.Context, every time.Duration) {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		a.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// unable is what was found last, "" for nothing.
func (a *ability) unable() string {
	if missing := a.missing.Load(); missing != nil {
		return *missing
	}
	return ""
}
