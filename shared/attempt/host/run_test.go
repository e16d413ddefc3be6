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

// Orders are sent once, and whoever sends one has heard a beat: a process listens before it beats.
func TestAProcessListensBeforeItBeats(t *testing.T) {
	t.Parallel()
	memory := membus.New(membus.Config{}).Connect(bus.Events{})
	defer memory.Close()
	err := memory.Setup(t.Context(), bus.Topology{
		Buckets: []bus.Bucket{{Name: wire.BucketJobs, BytesMax: bytesize.MiB}},
	})
	if err != nil {
		t.Fatal(err)
	}
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
