package host

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/wire"
)

// firsts notes in which order a process began to listen for orders and to beat.
type firsts struct {
	bus.Bus

	mu   sync.Mutex
	did  []string
	beat chan struct{}
}

func (f *firsts) note(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.did = append(f.did, what)
}

func (f *firsts) Subscribe(subject string, handle func(bus.Message)) (func(), error) {
	time.Sleep(100 * time.Millisecond) // whoever beats without waiting for this has the time to
	f.note("listen")
	return f.Bus.Subscribe(subject, handle)
}

func (f *firsts) Send(ctx context.Context, m bus.Message) error {
	if strings.HasSuffix(m.Subject, ".beat") {
		f.note("beat")
		select {
		case f.beat <- struct{}{}:
		default:
		}
	}
	return f.Bus.Send(ctx, m)
}

// jobsBus is a bus with the bucket that workers wait for.
func jobsBus(t *testing.T) bus.Bus {
	t.Helper()
	b := membus.New(membus.Config{}).Connect(bus.Events{})
	t.Cleanup(b.Close)
	err := b.Setup(t.Context(), bus.Topology{
		Buckets: []bus.Bucket{{Name: wire.BucketJobs, BytesMax: bytesize.MiB}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Orders are sent once, and whoever sends one has heard a beat: a process listens before it beats.
func TestAProcessListensBeforeItBeats(t *testing.T) {
	t.Parallel()
	memory := jobsBus(t)
	f := &firsts{Bus: memory, beat: make(chan struct{}, 1)}
	c := DefaultConfig()
	c.Node, c.Role, c.Spill.Path = "n1", wire.RoleSynth, t.TempDir()
	c.Memory.Claims = t.TempDir()
	c.Connect = func(context.Context) (bus.Bus, error) { return f, nil }
	h, err := Open(t.Context(), c, inventory.NewHostAt(twoSockets()))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	control := service.NewControl()
	err = h.Run(t.Context(), control, func(*wire.Beat) {}, nil, func(context.Context) error { <-f.beat; return nil })
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.did[0] != "listen" {
		t.Errorf("it did %v", f.did)
	}
}

// leaving is a bus that seems to be away at times.
type leaving struct {
	bus.Bus

	mu    sync.Mutex
	away  bool
	asked chan struct{} // somebody saw that it is away
	beats chan struct{}
}

func (l *leaving) setAway(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
}

func (l *leaving) Connected() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		select {
		case l.asked <- struct{}{}:
		default:
		}
	}
	return !l.away
}

func (l *leaving) Send(ctx context.Context, m bus.Message) error {
	if strings.HasSuffix(m.Subject, ".beat") {
		l.beats <- struct{}{}
	}
	return l.Bus.Send(ctx, m)
}

// B62: the beats of an outage are lost. Coordinators hear of a worker when it is back, not a heartbeat later.
func TestB62WorkerBeatsWhenTheBusIsBack(t *testing.T) {
	t.Parallel()
	memory := jobsBus(t)
	b := &leaving{Bus: memory, asked: make(chan struct{}, 1), beats: make(chan struct{}, 100)}
	c := DefaultConfig()
	c.Node, c.Role, c.Spill.Path = "n1", wire.RoleSynth, t.TempDir()
	c.Memory.Claims = t.TempDir()
	c.Worker.Heartbeat, c.Worker.RetryMin = time.Hour, time.Millisecond
	c.Connect = func(context.Context) (bus.Bus, error) { return b, nil }
	h, err := Open(t.Context(), c, inventory.NewHostAt(twoSockets()))
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	wait := func(what string, c <-chan struct{}) {
		select {
		case <-c:
		case <-time.After(time.Minute):
			t.Errorf("not within a minute: %s", what)
		}
	}
	err = h.Run(t.Context(), service.NewControl(), func(*wire.Beat) {}, nil, func(context.Context) error {
		wait("the first beat", b.beats)
		for done := false; !done; { // others that are due at the start
			select {
			case <-b.beats:
			case <-time.After(500 * time.Millisecond):
				done = true
			}
		}
		b.setAway(true)
		wait("it sees that the bus is away", b.asked)
		b.setAway(false)
		wait("a beat", b.beats)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
