package lead_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator/internal/lead"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/wire"
)

// house is electors in virtual time, with a note of who leads.
type house struct {
	t      *testing.T
	server *membus.Server
	leader atomic.Pointer[string] // nil when nobody leads
	term   atomic.Uint64
	reigns atomic.Int64
	kills  []func()
}

// inHouse runs a test in virtual time.
func inHouse(t *testing.T, test func(*house)) {
	synctest.Test(t, func(t *testing.T) {
		h := &house{t: t, server: membus.New(membus.Config{})}
		b := h.server.Connect(bus.Events{})
		defer b.Close()
		err := b.Setup(t.Context(), bus.Topology{Buckets: []bus.Bucket{{Name: wire.BucketLead, BytesMax: bytesize.MiB}}})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			for _, kill := range h.kills {
				kill()
			}
		}()
		test(h)
	})
}

// elector starts one; kill ends it without a word.
func (h *house) elector(name string, unable func() string) (kill func()) {
	h.t.Helper()
	b := h.server.Connect(bus.Events{})
	kv, err := b.KV(h.t.Context(), wire.BucketLead)
	if err != nil {
		h.t.Fatal(err)
	}
	e, err := lead.New(kv, lead.Config{Instance: name, Lease: lease, Unable: unable}, zerolog.Nop())
	if err != nil {
		h.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := e.Run(ctx, func(ctx context.Context, reign lead.Reign) error {
			if !h.leader.CompareAndSwap(nil, &name) {
				h.t.Errorf("%s leads while %s does", name, *h.leader.Load())
			}
			h.reigns.Add(1)
			h.term.Store(reign.Term)
			defer h.leader.Store(nil)
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			h.t.Errorf("%s ended: %v", name, err)
		}
	}()
	kill = sync.OnceFunc(func() { b.Close(); cancel(); <-done })
	h.kills = append(h.kills, kill)
	return kill
}

func (h *house) leads() string {
	if name := h.leader.Load(); name != nil {
		return *name
	}
	return "nobody"
}

// until waits until one leads, and tells how long that took.
func (h *house) until(name string, most time.Duration) {
	h.t.Helper()
	began := time.Now()
	for h.leads() != name {
		if time.Since(began) > most {
			h.t.Fatalf("%s leads after %s, not %s", h.leads(), most, name)
		}
		time.Sleep(time.Millisecond)
	}
}

// The next one leads a lease after the last renewal of a leader that was killed, not at some later look.
func TestTheNextLeaderLosesNoTime(t *testing.T) {
	t.Parallel()
	for ahead := range 10 { // when in its rhythm the leader dies
		inHouse(t, func(h *house) {
			first := h.elector("a", nil)
			h.until("a", lease)
			time.Sleep(lease/3 + time.Duration(ahead)*7*time.Millisecond)
			second := h.elector("b", nil)
			time.Sleep(2*lease + time.Duration(ahead)*lease/40)
			first()
			h.until("b", lease+5*time.Millisecond)
			second()
		})
	}
}

// The bus was away for longer than the lease and nobody else led meanwhile: the old leader leads again as soon as it is
// back, in the next term.
func TestALoneLeaderLeadsAgainAtOnceAfterAnOutage(t *testing.T) {
	t.Parallel()
	inHouse(t, func(h *house) {
		kill := h.elector("a", nil)
		h.until("a", lease)
		h.server.Cut()
		time.Sleep(lease + time.Millisecond)
		if h.leads() != "nobody" {
			h.t.Errorf("%s leads although it cannot renew", h.leads())
		}
		time.Sleep(lease)
		h.server.Heal()
		h.until("a", lease/4+time.Millisecond)
		if h.term.Load() != 2 {
			h.t.Errorf("it leads in term %d", h.term.Load())
		}
		kill()
	})
}

// A leader that could not do all of its work gives way to an instance that can; one that is alone leads.
func TestAnUnableLeaderGivesWayToAnAbleOne(t *testing.T) {
	t.Parallel()
	inHouse(t, func(h *house) {
		var aUnable, bUnable atomic.Value
		aUnable.Store("no key")
		bUnable.Store("no key either")
		killA := h.elector("a", func() string { return aUnable.Load().(string) })
		h.until("a", 3*lease) // half a leader is better than none
		killB := h.elector("b", func() string { return bUnable.Load().(string) })
		time.Sleep(10 * lease)
		if h.leads() != "a" || h.reigns.Load() != 1 {
			h.t.Errorf("%s leads, %d reigns, although nobody is better", h.leads(), h.reigns.Load())
		}
		bUnable.Store("")
		h.until("b", 2*lease)
		time.Sleep(10 * lease)
		if h.leads() != "b" || h.reigns.Load() != 2 {
			h.t.Errorf("%s leads after %d reigns", h.leads(), h.reigns.Load())
		}
		aUnable.Store("")
		bUnable.Store("its key is gone")
		h.until("a", 2*lease)
		time.Sleep(10 * lease)
		if h.leads() != "a" || h.reigns.Load() != 3 {
			h.t.Errorf("%s leads after %d reigns", h.leads(), h.reigns.Load())
		}
		killA()
		h.until("b", 3*lease)
		killB()
	})
}

// A leader that ends in order is followed at once.
func TestAReleasedLeadIsTakenAtOnce(t *testing.T) {
	t.Parallel()
	inHouse(t, func(h *house) {
		var unable atomic.Value
		unable.Store("")
		h.elector("a", func() string { return unable.Load().(string) })
		h.until("a", lease)
		h.elector("b", nil)
		time.Sleep(3*lease + lease/3)
		unable.Store("its key is gone")
		for h.leads() == "a" {
			time.Sleep(100 * time.Microsecond)
		}
		h.until("b", 5*time.Millisecond)
	})
}

// Of two that start together the able one leads, whichever looks first; a challenge of long ago moves nobody.
func TestTheAbleOneLeadsFromTheStart(t *testing.T) {
	t.Parallel()
	inHouse(t, func(h *house) {
		killA := h.elector("a", func() string { return "no key" })
		time.Sleep(lease / 2)
		killB := h.elector("b", nil)
		h.until("b", lease)
		killB()
		h.until("a", 4*lease)
		reigns := h.reigns.Load()
		time.Sleep(20 * lease)
		if h.leads() != "a" || h.reigns.Load() != reigns {
			h.t.Errorf("%s leads, in reign %d after %d", h.leads(), h.reigns.Load(), reigns)
		}
		killA()
	})
}
