package sim_test

import (
	"context"
	"hash/fnv"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
)

// dice are one component's random numbers, from the seed and its name.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newDice(seed uint64, name string) *dice {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return &dice{r: rand.New(rand.NewPCG(seed, h.Sum64()))} //nolint:gosec // a simulation wants the same numbers again
}

// chance is true with the given probability.
func (d *dice) chance(p float64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.Float64() < p
}

// between is a time from low up to high.
func (d *dice) between(low, high time.Duration) time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return low + time.Duration(d.r.Int64N(int64(high-low)))
}

func (d *dice) pick(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// trouble is how bad a line is: probabilities for each call.
type trouble struct {
	lose, loseAnswer, twice, late float64
}

// line is somebody's way to a server: it takes time, loses, delays, and may be cut.
type line struct {
	dice   *dice
	counts *counts

	mu      sync.Mutex
	up      bool
	dead    bool
	paused  bool
	pauses  int
	bad     trouble
	changed chan struct{}
}

func (w *world) line(name string) *line {
	return &line{dice: newDice(w.seed, name), counts: w.counts, up: true, changed: make(chan struct{})}
}

func (l *line) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *line) cut()               { l.set(func() { l.up = false }) }
func (l *line) heal()              { l.set(func() { l.up = true }) }
func (l *line) kill()              { l.set(func() { l.dead = true }) }
func (l *line) pause()             { l.set(func() { l.paused = true; l.pauses++ }) }
func (l *line) resume()            { l.set(func() { l.paused = false }) }
func (l *line) spoil(bad trouble)  { l.set(func() { l.bad = bad }) }
func (l *line) isUp() (ok bool)    { l.mu.Lock(); defer l.mu.Unlock(); return l.up && !l.dead }
func (l *line) isPaused() bool     { l.mu.Lock(); defer l.mu.Unlock(); return l.paused }
func (l *line) isDead() (ok bool)  { l.mu.Lock(); defer l.mu.Unlock(); return l.dead }
func (l *line) state() (b trouble) { l.mu.Lock(); defer l.mu.Unlock(); return l.bad }

var (
	errKilled = fault.New(fault.Cancelled, "the process was killed")
	errNoLine = fault.New(fault.Transient, "no answer in time")
)

const callTimeout = 5 * time.Second

// lateMax is the longest that a message is under way.
const lateMax = 10 * time.Second

// wait returns when the line is up, or with an error when the call's time is over.
func (l *line) wait(ctx context.Context) error {
	for {
		l.mu.Lock()
		up, dead, changed := l.up, l.dead, l.changed
		l.mu.Unlock()
		switch {
		case dead:
			return errKilled
		case ctx.Err() != nil:
			return errNoLine
		case up:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// hold returns when the process that uses the line is not stopped, and tells how often it was.
func (l *line) hold() (pauses int) {
	for {
		l.mu.Lock()
		stopped, changed := l.paused && !l.dead, l.changed
		pauses = l.pauses
		l.mu.Unlock()
		if !stopped {
			return pauses
		}
		<-changed
	}
}

// lose waits for an answer that does not come.
func (l *line) lose(ctx context.Context) error {
	for {
		l.mu.Lock()
		dead, changed := l.dead, l.changed
		l.mu.Unlock()
		switch {
		case dead:
			return errKilled
		case ctx.Err() != nil:
			return errNoLine
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// caller carries calls.
type caller interface {
	call(ctx context.Context, do func(context.Context) error) error
}

func (l *line) call(ctx context.Context, do func(context.Context) error) error {
	return l.carry(ctx, l.counts, do)
}

// idle is a line whose calls are idle ticks.
type idle struct{ *line }

func (l idle) call(ctx context.Context, do func(context.Context) error) error {
	return l.carry(ctx, newCounts(), do)
}

// carry carries a call: there, and its answer back. A late one has its effect although the caller has given up by then.
func (l *line) carry(ctx context.Context, counts *counts, do func(context.Context) error) error {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, callTimeout)
		defer cancel()
	}
	pauses := l.hold()
	if err := l.wait(ctx); err != nil {
		return err
	}
	bad := l.state()
	if sleep(ctx, l.dice.between(time.Millisecond, 10*time.Millisecond)) != nil {
		return errNoLine
	}
	if l.hold() > pauses && ctx.Err() != nil {
		return l.afterPause(ctx, counts, do)
	}
	if l.isDead() {
		return errKilled
	}
	switch {
	case l.dice.chance(bad.lose):
		counts.fault("calls lost")
		return l.lose(ctx)
	case l.dice.chance(bad.late):
		counts.fault("calls late")
		delay, rest := l.dice.between(100*time.Millisecond, 8*time.Second), context.WithoutCancel(ctx)
		done := make(chan error, 1)
		go func() {
			time.Sleep(delay)
			rest, cancel := context.WithTimeout(rest, callTimeout)
			defer cancel()
			counts.step(stepCall)
			done <- do(rest)
		}()
		select {
		case err := <-done:
			counts.step(stepAnswer)
			return err
		case <-ctx.Done():
			return errNoLine
		}
	}
	counts.step(stepCall)
	err := do(ctx)
	if l.isDead() {
		return errKilled
	}
	if l.dice.chance(bad.loseAnswer) {
		counts.fault("answers lost")
		return l.lose(ctx)
	}
	if sleep(ctx, l.dice.between(time.Millisecond, 10*time.Millisecond)) != nil {
		return errNoLine
	}
	l.hold()
	if l.isDead() {
		return errKilled
	}
	counts.step(stepAnswer)
	return err
}

// afterPause is the call of a process that was stopped just before it, and for longer than the call may take. It may go
// out all the same, before the process looks at its clock.
func (l *line) afterPause(ctx context.Context, counts *counts, do func(context.Context) error) error {
	if l.isDead() {
		return errKilled
	}
	if l.isUp() && l.dice.chance(0.5) {
		counts.fault("calls after a pause")
		rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTimeout)
		defer cancel()
		counts.step(stepCall)
		_ = do(rest)
	}
	return errNoLine
}
