package attempt_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/wire"
)

// mortalBus is the bus as one process sees it: when that is dead, nothing of it arrives.
type mortalBus struct {
	*fakeBus

	dead atomic.Bool
}

type mortalQueue struct {
	bus.Queue

	bus *mortalBus
}

type mortalDelivery struct {
	bus.Delivery

	bus *mortalBus
}

func (b *mortalBus) Queue(ctx context.Context, c bus.Consumer) (bus.Queue, error) {
	q, err := b.fakeBus.Queue(ctx, c)
	return mortalQueue{Queue: q, bus: b}, err
}

func (b *mortalBus) Publish(ctx context.Context, m bus.Message) (bool, error) {
	if b.dead.Load() {
		return false, errAway
	}
	return b.fakeBus.Publish(ctx, m)
}

func (q mortalQueue) Fetch(ctx context.Context) (bus.Delivery, error) {
	d, err := q.Queue.Fetch(ctx)
	return mortalDelivery{Delivery: d, bus: q.bus}, err
}

func (d mortalDelivery) Ack(ctx context.Context) error {
	if d.bus.dead.Load() {
		return errAway
	}
	return d.Delivery.Ack(ctx)
}

// life is one worker process of a node whose processes come and go.
type life struct {
	bus     *mortalBus
	worker  *attempt.Worker
	control *service.Control
	kill    context.CancelFunc
	done    chan struct{}
	works   atomic.Int32
}

// live starts one. Its work begins, says so and does what do says.
func live(
	t *testing.T, shared *fakeBus, folder string, do func(ctx context.Context, r *attempt.Run) error,
) *life {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	l := &life{bus: &mortalBus{fakeBus: shared}, control: service.NewControl(), kill: kill, done: make(chan struct{})}
	config, log := attempt.DefaultConfig(), zerolog.Nop()
	l.worker = &attempt.Worker{
		Config: config, Bus: l.bus,
		Fences: attempt.NewFences(fakeKV{bus: shared}, func() bool { return true }, time.Second),
		Board:  attempt.NewBoard(func() {}), Gate: attempt.NewGate(func() {}), Notes: attempt.NewGate(func() {}),
		Outbox: attempt.NewOutbox(ctx, l.bus, config, "", -1, log), Marks: attempt.NewMarks(folder, -1, log),
		Node: node, Build: "test", Log: log,
	}
	b := &bench{work: func(ctx context.Context, r *attempt.Run) error {
		l.works.Add(1)
		return do(ctx, r)
	}}
	go func() {
		defer close(l.done)
		_ = l.worker.Serve(ctx, l.control, attempt.Source{Slots: 1, Decode: b.decode})
	}()
	return l
}

// die ends the process as kill -9 does.
func (l *life) die() {
	l.bus.dead.Store(true)
	l.worker.Board.Die()
	l.kill()
	<-l.done
	l.worker.Outbox.Wait()
}

// leave ends it in good order.
func (l *life) leave(level service.Level) {
	l.control.Stop(level, "test")
	<-l.done
	l.worker.Outbox.Wait()
	l.kill()
}

func (b *fakeBus) outcomes(t *testing.T) (all []job.Outcome) {
	t.Helper()
	for _, m := range b.messages(wire.ResultSubject(node)) {
		var r wire.Result
		if err := wire.Decode(m.Data, &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Outcome)
	}
	return all
}

func hang(ctx context.Context, _ *attempt.Run) error { <-ctx.Done(); return ctx.Err() }

func idle(ctx context.Context, r *attempt.Run) error {
	return r.Idle(func() error { return hang(ctx, r) })
}

func succeed(context.Context, *attempt.Run) error { return nil }

// What may happen to a worker with an attempt whose message has come, and what it must cost.
func TestOnlyDeathsAtWorkAreCharged(t *testing.T) {
	t.Parallel()
	type event struct {
		do  func(context.Context, *attempt.Run) error
		end func(*life)
	}
	crash := event{hang, (*life).die}
	crashIdle := event{idle, (*life).die}
	ackLost := event{succeed, (*life).die} // the work is done, its acknowledgement does not arrive
	handBack := event{hang, func(l *life) { l.leave(service.HandBack) }}
	killed := event{hang, func(l *life) { l.leave(service.Kill) }}
	drained := event{succeed, func(l *life) { l.leave(service.Drain) }}
	for name, c := range map[string]struct {
		events []event
		want   []job.Outcome
		works  bool // the attempt is worked on once more afterwards
	}{
		"delivered often, never started":    {nil, nil, true},
		"one death":                         {[]event{crash}, nil, true},
		"two deaths":                        {[]event{crash, crash}, []job.Outcome{job.OutcomeLost}, false},
		"deaths while it waited":            {[]event{crashIdle, crashIdle, crashIdle}, nil, true},
		"a death and many while it waited":  {[]event{crashIdle, crash, crashIdle}, nil, true},
		"two deaths among others":           {[]event{crash, crashIdle, crash}, []job.Outcome{job.OutcomeLost}, false},
		"acknowledgements lost":             {[]event{ackLost, ackLost, ackLost}, nil, true},
		"a death before lost acks":          {[]event{crash, ackLost, crash}, nil, true},
		"handed back by SIGTERM":            {[]event{handBack}, []job.Outcome{job.OutcomeHandedBack}, true},
		"ended by the third signal":         {[]event{killed}, []job.Outcome{job.OutcomeHandedBack}, true},
		"restarted in good order, repeated": {[]event{drained, drained, drained}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "work")
			synctest.Test(t, func(t *testing.T) {
				shared := newFakeBus()
				shared.setFence(id, 1)
				data, err := json.Marshal(try(1))
				if err != nil {
					t.Fatal(err)
				}
				count := 7 // deliveries that came to nothing
				for _, e := range c.events {
					l := live(t, shared, folder, e.do)
					shared.putAgain(data, count)
					count += 3
					synctest.Wait()
					if l.works.Load() != 1 {
						t.Fatal("not worked on")
					}
					e.end(l)
				}
				last := live(t, shared, folder, succeed)
				d := shared.putAgain(data, count)
				<-d.end
				last.leave(service.Drain)
				if got := last.works.Load() == 1; got != c.works {
					t.Errorf("worked on again: %v, want %v", got, c.works)
				}
				if got := shared.outcomes(t); !slices.Equal(got, c.want) {
					t.Errorf("outcomes %v, want %v", got, c.want)
				}
				if left, _ := os.ReadDir(folder); len(left) != 0 {
					t.Errorf("marks are left: %v", left)
				}
			})
		})
	}
}

// The same for any sequence: an attempt is lost when, and only when, DeathsMax workers in a row died at work on it.
func TestB45DeathsAreCountedThroughAnySequence(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		kinds := []string{"crash", "idle", "ack lost", "drain"}
		events := rapid.SliceOfN(rapid.SampledFrom(kinds), 0, 8).Draw(rt, "events")
		deliveries := rapid.IntRange(0, 9).Draw(rt, "deliveries")
		var problem string
		synctest.Test(t, func(t *testing.T) { problem = playDeaths(t, folder, events, deliveries) })
		if problem != "" {
			rt.Fatal(problem)
		}
		if err := os.RemoveAll(folder); err != nil {
			rt.Fatal(err)
		}
	})
}

// playDeaths has one process after another take the attempt and end as events say; it tells what is wrong.
func playDeaths(t *testing.T, folder string, events []string, deliveries int) string {
	t.Helper()
	shared := newFakeBus()
	shared.setFence(id, 1)
	data, err := json.Marshal(try(1))
	if err != nil {
		t.Fatal(err)
	}
	deaths := 0
	for i, what := range events {
		l := live(t, shared, folder, map[string]func(context.Context, *attempt.Run) error{
			"crash": hang, "idle": idle, "ack lost": succeed, "drain": succeed,
		}[what])
		shared.putAgain(data, i*deliveries)
		synctest.Wait()
		works := l.works.Load()
		if what == "drain" {
			l.leave(service.Drain)
		} else {
			l.die()
		}
		lost := slices.Contains(shared.outcomes(t), job.OutcomeLost)
		if over := deaths >= attempt.DeathsMax; lost != over || (works == 0) != over {
			return fmt.Sprintf("event %d, after %d deaths: worked on %d times, lost: %v", i, deaths, works, lost)
		}
		switch {
		case lost:
			return ""
		case what == "crash":
			deaths++
		case what != "idle":
			deaths = 0
		}
	}
	return ""
}

// The last of too many deaths is told in words, as lost with its workers.
func TestB45MessageThatKillsItsWorkersIsLost(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		shared := newFakeBus()
		shared.setFence(id, 1)
		data, err := json.Marshal(try(1))
		if err != nil {
			t.Fatal(err)
		}
		for range attempt.DeathsMax {
			l := live(t, shared, folder, hang)
			shared.putAgain(data, 0)
			synctest.Wait()
			l.die()
		}
		l := live(t, shared, folder, succeed)
		<-shared.putAgain(data, 0).end
		l.leave(service.Drain)
		messages := shared.messages(wire.ResultSubject(node))
		var r wire.Result
		if len(messages) != 1 || wire.Decode(messages[0].Data, &r) != nil || r.Outcome != job.OutcomeLost ||
			!strings.Contains(r.Fault.Message, "2 workers died") {
			t.Errorf("results %+v", r)
		}
	})
}

// Without room for marks work goes on; what two processes work on at once is not charged to either.
func TestMarksThatCannotBeKeptCostNothing(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, folder := range map[string]string{"no folder": file, "shared": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				shared := newFakeBus()
				shared.setFence(id, 1)
				data, err := json.Marshal(try(1))
				if err != nil {
					t.Fatal(err)
				}
				first := live(t, shared, folder, hang)
				shared.putAgain(data, 0)
				synctest.Wait()
				for range 3 { // frozen as the first is, it does not die
					second := live(t, shared, folder, succeed)
					<-shared.putAgain(data, 1).end
					second.leave(service.Drain)
					if second.works.Load() != 1 {
						t.Error("not worked on")
					}
				}
				first.die()
				if got := shared.outcomes(t); len(got) != 0 {
					t.Errorf("outcomes %v", got)
				}
			})
		})
	}
}

// Invariant 9: a mark goes when nobody wants its attempt any more, unless somebody is at work on it.
func TestMarksAreSwept(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		shared := newFakeBus()
		for i := range 3 {
			shared.setFence(numbered(i), 1)
			data, err := json.Marshal(job.Attempt{Job: numbered(i), Fence: 1})
			if err != nil {
				t.Fatal(err)
			}
			l := live(t, shared, folder, hang)
			shared.putAgain(data, 0)
			synctest.Wait()
			if i < 2 {
				l.die()
				continue
			}
			defer l.die() // at work during the sweep
		}
		if err := os.WriteFile(filepath.Join(folder, "foreign"), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		marks := attempt.NewMarks(folder, -1, zerolog.Nop())
		sweep := func(current func(context.Context, job.Attempt) (bool, error)) []string {
			if err := marks.Sweep(t.Context(), current); err != nil {
				t.Fatal(err)
			}
			entries, err := os.ReadDir(folder)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, e := range entries {
				names = append(names, e.Name())
			}
			return names
		}
		unknown := func(context.Context, job.Attempt) (bool, error) { return false, fault.New(fault.Transient, "away") }
		if got := sweep(unknown); len(got) != 4 {
			t.Errorf("left when nobody knows: %v", got)
		}
		got := sweep(func(_ context.Context, a job.Attempt) (bool, error) { return a.Job == numbered(1), nil })
		want := []string{
			job.Attempt{Job: numbered(1), Fence: 1}.String(), job.Attempt{Job: numbered(2), Fence: 1}.String(), "foreign",
		}
		if !slices.Equal(got, want) {
			t.Errorf("left %v, want %v", got, want)
		}
	})
}

// What a dead worker left half done goes on at once, in the slots that there are, and its message joins.
func TestLeftoversGoOnWithoutTheirMessages(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{t: t, bus: newFakeBus(), ctl: service.NewControl(), done: make(chan error, 1)}
		release := make(chan struct{})
		b.work = func(ctx context.Context, r *attempt.Run) error {
			<-release
			r.Settle(ctx, okResult())
			return nil
		}
		config, log := attempt.DefaultConfig(), zerolog.Nop()
		b.worker = &attempt.Worker{
			Config: config, Bus: b.bus,
			Fences: attempt.NewFences(fakeKV{bus: b.bus}, func() bool { return true }, time.Second),
			Board:  attempt.NewBoard(func() {}), Gate: attempt.NewGate(func() {}), Notes: attempt.NewGate(func() {}),
			Outbox: attempt.NewOutbox(t.Context(), b.bus, config, "", -1, log), Node: node, Build: "test", Log: log,
		}
		var all []attempt.Task
		for i := range 4 {
			fence := uint64(1)
			if i == 3 {
				fence = 2 // the fourth is stale
			}
			b.bus.setFence(numbered(i), fence)
			all = append(all, &benchTask{bench: b, attempt: job.Attempt{Job: numbered(i), Fence: 1}, node: node})
		}
		looks, gate := 0, attempt.NewGate(func() {})
		gate.Set("device", "not ready")
		b.worker.Gate.Set(attempt.GateDrain, "new work is not taken, what was begun goes on")
		left := func(context.Context) ([]attempt.Task, error) {
			if looks++; looks == 1 {
				return nil, errors.New("book is locked")
			}
			return all, nil
		}
		go func() {
			b.done <- b.worker.Serve(t.Context(), b.ctl, attempt.Source{Slots: 3, Decode: b.decode, Gate: gate, Left: left})
		}()
		time.Sleep(time.Minute)
		if looks != 0 {
			t.Error("taken up although the device is not ready")
		}
		gate.Set("device", "")
		time.Sleep(2 * time.Second)
		if got := b.works.Load(); got != 2 { // one slot waits for a message
			t.Errorf("%d at work in 3 slots", got)
		}
		b.worker.Gate.Set(attempt.GateDrain, "")
		again := b.put(job.Attempt{Job: numbered(0), Fence: 1})
		synctest.Wait()
		close(release)
		<-again.end
		time.Sleep(10 * time.Second)
		b.end()
		b.wantSettled(again, "ack")
		if b.works.Load() != 3 || len(b.results()) != 3 {
			t.Errorf("%d runs, %d results; want 3: the stale one changes nothing", b.works.Load(), len(b.results()))
		}
	})
}
