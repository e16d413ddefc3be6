package sim_test

import (
	"context"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/wire"
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

// link is a connection to the bus over a line.
type link struct {
	*line
	*membus.Bus
}

func (w *world) link(name string) *link {
	l := &link{line: w.line("link " + name), Bus: w.server.Connect(bus.Events{})}
	l.spoil(w.badness())
	return l
}

// end closes the connection as the death of its process does.
func (l *link) end() {
	l.kill()
	l.Bus.Close()
}

func (l *link) Close()          { l.end() }
func (l *link) Connected() bool { return l.isUp() && l.Bus.Connected() }

func (l *link) Publish(ctx context.Context, m bus.Message) (duplicate bool, err error) {
	return answer(ctx, l.line, func(ctx context.Context) (bool, error) {
		duplicate, err := l.Bus.Publish(ctx, m)
		if err == nil && l.dice.chance(l.state().twice) {
			l.counts.fault("publications twice")
			duplicate, err = l.Bus.Publish(ctx, m)
		}
		return duplicate, err
	})
}

// answer calls and keeps the answer apart from one that a late call has yet to give.
func answer[T any](ctx context.Context, l caller, do func(context.Context) (T, error)) (T, error) {
	out := make(chan T, 2)
	err := l.call(ctx, func(ctx context.Context) error {
		value, err := do(ctx)
		if err == nil {
			out <- value
		}
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return <-out, nil
}

// Send loses messages, or brings them twice or late, without a word.
func (l *link) Send(ctx context.Context, m bus.Message) error {
	l.hold()
	if l.isDead() {
		return errKilled
	}
	bad := l.state()
	if !l.isUp() {
		return nil
	}
	if l.dice.chance(2 * bad.lose) {
		l.counts.fault("messages lost")
		return nil
	}
	times := 1
	if l.dice.chance(bad.twice) {
		l.counts.fault("messages twice")
		times = 2
	}
	for range times {
		delay := l.dice.between(time.Millisecond, 20*time.Millisecond)
		if l.dice.chance(2 * bad.late) {
			l.counts.fault("messages late")
			delay = l.dice.between(time.Second, lateMax)
		}
		time.AfterFunc(delay, func() { _ = l.Bus.Send(context.WithoutCancel(ctx), m) })
	}
	return nil
}

// Subscribe hears nothing while the line is cut.
func (l *link) Subscribe(subject string, handle func(bus.Message)) (func(), error) {
	return l.hear(subject, func(m bus.Message) {
		l.counts.step(stepMessage)
		handle(m)
	})
}

// hear is Subscribe whose messages are no steps by themselves.
func (l *link) hear(subject string, handle func(bus.Message)) (func(), error) {
	return l.Bus.Subscribe(subject, func(m bus.Message) {
		l.hold()
		if l.isUp() {
			handle(m)
		}
	})
}

func (l *link) Queue(ctx context.Context, c bus.Consumer) (bus.Queue, error) {
	q, err := answer(ctx, l.line, func(ctx context.Context) (bus.Queue, error) { return l.Bus.Queue(ctx, c) })
	if err != nil {
		return nil, err
	}
	return &queue{q, l}, nil
}

type queue struct {
	bus.Queue
	l *link
}

func (q *queue) Fetch(ctx context.Context) (bus.Delivery, error) {
	for {
		if err := q.l.wait(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, err
		}
		d, err := q.Queue.Fetch(ctx)
		if err != nil {
			return nil, err
		}
		q.l.hold()
		if q.l.isUp() && !q.l.dice.chance(q.l.state().lose) {
			q.l.counts.step(stepDelivery)
			return &delivery{d, q.l}, nil
		}
		q.l.counts.fault("deliveries lost")
		// Lost on the way: it comes again when its ack wait is over.
	}
}

type delivery struct {
	bus.Delivery
	l *link
}

func (d *delivery) Ack(ctx context.Context) error { return d.l.call(ctx, d.Delivery.Ack) }
func (d *delivery) Nak(ctx context.Context, delay time.Duration) error {
	return d.l.call(ctx, func(ctx context.Context) error { return d.Delivery.Nak(ctx, delay) })
}
func (d *delivery) Term(ctx context.Context, reason string) error {
	return d.l.call(ctx, func(ctx context.Context) error { return d.Delivery.Term(ctx, reason) })
}
func (d *delivery) InProgress(ctx context.Context) error { return d.l.call(ctx, d.Delivery.InProgress) }

func (l *link) Log(ctx context.Context, stream string) (bus.Log, error) {
	return answer(ctx, l.line, func(ctx context.Context) (bus.Log, error) { return l.Bus.Log(ctx, stream) })
}

func (l *link) KV(ctx context.Context, bucket string) (bus.KV, error) {
	inner, err := answer(ctx, l.line, func(ctx context.Context) (bus.KV, error) { return l.Bus.KV(ctx, bucket) })
	r := &records{inner, l, l.line}
	if bucket == wire.BucketLead {
		r.by = idle{l.line}
	}
	return r, err
}

// records is a bucket behind a line.
type records struct {
	bus.KV
	l  *link
	by caller
}

func (k *records) Get(ctx context.Context, key string) (bus.Entry, error) {
	return answer(ctx, k.by, func(ctx context.Context) (bus.Entry, error) { return k.KV.Get(ctx, key) })
}

func (k *records) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	return answer(ctx, k.by, func(ctx context.Context) (uint64, error) { return k.KV.Create(ctx, key, value) })
}

func (k *records) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return answer(ctx, k.by, func(ctx context.Context) (uint64, error) {
		return k.KV.Update(ctx, key, value, revision)
	})
}

func (k *records) Delete(ctx context.Context, key string, revision uint64) error {
	return k.by.call(ctx, func(ctx context.Context) error { return k.KV.Delete(ctx, key, revision) })
}

func (k *records) Keys(ctx context.Context, prefix string) ([]string, error) {
	return answer(ctx, k.by, func(ctx context.Context) ([]string, error) { return k.KV.Keys(ctx, prefix) })
}

// Watch lags while the line is cut, and catches up.
func (k *records) Watch(
	ctx context.Context, prefix string, see func(bus.Entry), ready func(),
) (func(), error) {
	if err := k.l.wait(ctx); err != nil {
		return nil, err
	}
	stopping, cancel := context.WithCancel(ctx)
	end, err := k.KV.Watch(ctx, prefix, func(e bus.Entry) {
		k.l.hold()
		if k.l.wait(stopping) == nil && sleep(stopping, k.l.dice.between(time.Millisecond, 5*time.Millisecond)) == nil {
			k.l.counts.step(stepRecord)
			see(e)
		}
	}, ready)
	return func() { cancel(); end() }, err
}

func (l *link) Objects(ctx context.Context, bucket string) (bus.Objects, error) {
	inner, err := answer(
		ctx,
		l.line,
		func(ctx context.Context) (bus.Objects, error) { return l.Bus.Objects(ctx, bucket) },
	)
	return &files{inner, l}, err
}

// files is a bucket of objects behind a line.
type files struct {
	bus.Objects
	l *link
}

func (f *files) Put(ctx context.Context, name string, r io.Reader, meta map[string]string) (bus.ObjectInfo, error) {
	f.l.hold()
	if err := f.l.wait(ctx); err != nil {
		return bus.ObjectInfo{}, err
	}
	return f.Objects.Put(ctx, name, r, meta)
}

func (f *files) Get(ctx context.Context, name string, bytesMax int64) (io.ReadCloser, bus.ObjectInfo, error) {
	f.l.hold()
	if err := f.l.wait(ctx); err != nil {
		return nil, bus.ObjectInfo{}, err
	}
	return f.Objects.Get(ctx, name, bytesMax)
}
