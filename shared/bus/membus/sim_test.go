package membus_test

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/fault"
)

// clock runs what is due, in order, on the test's own goroutine.
type clock struct {
	now   time.Time
	count int
	due   events
}

type event struct {
	at    time.Time
	order int
	f     func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at.Before(e[j].at) || e[i].at.Equal(e[j].at) && e[i].order < e[j].order
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) } //nolint:errcheck // only events are pushed
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

func (c *clock) Now() time.Time { return c.now }

func (c *clock) AfterFunc(d time.Duration, f func()) {
	c.count++
	heap.Push(&c.due, event{c.now.Add(d), c.count, f})
}

func (c *clock) advance(d time.Duration) {
	end := c.now.Add(d)
	for len(c.due) > 0 && !c.due[0].at.After(end) {
		e := heap.Pop(&c.due).(event) //nolint:errcheck // only events are pushed
		c.now = e.at
		e.f()
	}
	c.now = end
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

// story runs a small random history of two workers on one queue and tells what happened.
func story(t *testing.T, seed uint64) string {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a seed must give the same run
	c := newClock()
	server := membus.New(membus.Config{Clock: c, Fault: func(call membus.Call) membus.Verdict {
		switch rng.IntN(8) {
		case 0:
			return membus.Verdict{Lose: true}
		case 1:
			return membus.Verdict{LoseAnswer: true}
		case 2:
			return membus.Verdict{Twice: call.Kind == membus.Send, Delay: time.Duration(rng.IntN(50)) * time.Millisecond}
		}
		return membus.Verdict{}
	}})
	b := server.Connect(bus.Events{})
	defer b.Close()
	ctx := context.Background()
	for b.Setup(ctx, topology()) != nil {
	}
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	hear := func(m bus.Message) { say("beat %s at %s", m.Data, c.now.Format("05.000")) }
	if _, err := b.Subscribe("beat", hear); err != nil {
		t.Fatal(err)
	}
	var queue bus.Queue
	for queue == nil {
		queue, _ = b.Queue(ctx, bus.Consumer{Stream: "Q", Name: "w", Subject: "q", AckWait: 300 * time.Millisecond})
	}
	q := queue.(*membus.Queue) //nolint:errcheck // that is its type
	want, done := 0, map[string]bool{}
	for step := 0; step < 200 || len(done) < want; step++ {
		if step > 5000 {
			t.Fatalf("seed %d: %d of %d messages", seed, len(done), want)
		}
		if step < 200 && rng.IntN(4) == 0 {
			id := fmt.Sprint(want)
			for {
				if _, err := b.Publish(ctx, bus.Message{Subject: "q", ID: id, Data: []byte(id)}); err == nil {
					break
				}
			}
			want++
		}
		if d, ok := q.TryFetch(); ok {
			id := string(d.Message().Data)
			say("fetch %s (%d)", id, d.Count())
			if err := d.Ack(ctx); err == nil {
				done[id] = true
			} else if fault.KindOf(err) != fault.Transient {
				t.Fatal(err)
			} else if d.Count() > 1 {
				done[id] = true // its removal may have been answered into the void
			}
		}
		_ = b.Send(ctx, bus.Message{Subject: "beat", Data: []byte(fmt.Sprint(step))}) // at most once
		c.advance(10 * time.Millisecond)
		if step > 400 && len(done) < want {
			break // messages whose acknowledgement was done without an answer never come again
		}
	}
	return strings.Join(lines, "\n")
}

func topology() bus.Topology {
	return bus.Topology{
		Streams: []bus.Stream{{Name: "Q", Subjects: []string{"q"}, Retention: bus.WorkQueue}},
		Buckets: []bus.Bucket{{Name: "b"}},
	}
}

// TestSameSeedSameRun: with a clock nothing depends on goroutines or on the order of maps.
func TestSameSeedSameRun(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		first := story(t, seed)
		for range 3 {
			if diff := cmp.Diff(first, story(t, seed)); diff != "" {
				t.Fatalf("seed %d: %s", seed, diff)
			}
		}
		if !strings.Contains(first, "(2)") {
			t.Errorf("seed %d spoiled no acknowledgement", seed)
		}
	}
	if story(t, 1) == story(t, 2) {
		t.Error("seeds make no difference")
	}
}

func TestVerdicts(t *testing.T) {
	t.Parallel()
	var verdict membus.Verdict
	c := newClock()
	server := membus.New(membus.Config{Clock: c, Fault: func(membus.Call) membus.Verdict { return verdict }})
	b := server.Connect(bus.Events{})
	defer b.Close()
	ctx := t.Context()
	if err := b.Setup(ctx, topology()); err != nil {
		t.Fatal(err)
	}
	var heard []string
	if _, err := b.Subscribe(">", func(m bus.Message) { heard = append(heard, string(m.Data)) }); err != nil {
		t.Fatal(err)
	}
	send := func(data string, v membus.Verdict) error {
		verdict = v
		return b.Send(ctx, bus.Message{Subject: "x", Data: []byte(data)})
	}
	refused := errors.New("refused")
	if err := send("lost", membus.Verdict{Lose: true}); err != nil {
		t.Error(err)
	}
	if err := send("refused", membus.Verdict{Err: refused}); !errors.Is(err, refused) {
		t.Error(err)
	}
	_ = send("late", membus.Verdict{Delay: time.Second})
	_ = send("twice", membus.Verdict{Twice: true})
	c.advance(0)
	if diff := cmp.Diff([]string{"twice", "twice"}, heard); diff != "" {
		t.Error(diff)
	}
	c.advance(time.Second)
	if diff := cmp.Diff([]string{"twice", "twice", "late"}, heard); diff != "" {
		t.Error(diff)
	}

	publish := func(v membus.Verdict) (bool, error) {
		verdict = v
		return b.Publish(ctx, bus.Message{Subject: "q", ID: "1"})
	}
	if _, err := publish(membus.Verdict{Lose: true}); fault.KindOf(err) != fault.Transient {
		t.Error(err)
	}
	if duplicate, err := publish(membus.Verdict{LoseAnswer: true}); fault.KindOf(err) != fault.Transient || duplicate {
		t.Error(duplicate, err)
	}
	if duplicate, err := publish(membus.Verdict{}); err != nil || !duplicate {
		t.Errorf("a publish whose answer was lost was not stored: %v, %v", duplicate, err)
	}

	server.Cut()
	if _, err := publish(membus.Verdict{}); fault.KindOf(err) != fault.Transient || b.Connected() {
		t.Error(err)
	}
	server.Heal()
	server.Wipe()
	if _, err := publish(membus.Verdict{}); fault.KindOf(err) != fault.Transient {
		t.Errorf("the wiped server has a stream: %v", err)
	}
}
