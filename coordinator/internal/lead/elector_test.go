package lead_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/coordinator/internal/lead"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const lease = 200 * time.Millisecond

// rack is a bus with electors, and notes who leads.
type rack struct {
	t      *testing.T
	server *membus.Server

	mu     sync.Mutex
	now    map[string]lead.Reign // who leads at this moment
	most   int
	reigns []lead.Reign
}

func newRack(t *testing.T) *rack {
	t.Helper()
	r := &rack{t: t, server: membus.New(membus.Config{}), now: map[string]lead.Reign{}}
	b := r.server.Connect(bus.Events{})
	t.Cleanup(b.Close)
	err := b.Setup(t.Context(), bus.Topology{Buckets: []bus.Bucket{{Name: wire.BucketLead, BytesMax: bytesize.MiB}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// elector runs one; kill ends it without a word, stop in order.
func (r *rack) elector(name string, work func(context.Context, lead.Reign) error) (kill, stop func()) {
	r.t.Helper()
	b := r.server.Connect(bus.Events{})
	kv, err := b.KV(r.t.Context(), wire.BucketLead)
	if err != nil {
		r.t.Fatal(err)
	}
	e, err := lead.New(kv, lead.Config{Instance: name, Lease: lease}, zerolog.Nop())
	if err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := e.Run(ctx, func(ctx context.Context, reign lead.Reign) error {
			r.begin(name, reign)
			defer r.end(name)
			return work(ctx, reign)
		}); !errors.Is(err, context.Canceled) {
			r.t.Errorf("%s ended: %v", name, err)
		}
	}()
	var once sync.Once
	stop = func() { once.Do(func() { cancel(); <-done; b.Close() }) }
	kill = func() { once.Do(func() { b.Close(); cancel(); <-done }) }
	r.t.Cleanup(stop)
	return kill, stop
}

func (r *rack) begin(name string, reign lead.Reign) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now[name] = reign
	r.most = max(r.most, len(r.now))
	r.reigns = append(r.reigns, reign)
}

func (r *rack) end(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.now, name)
}

// waits until the one that leads is as wanted, and tells how long that took.
func (r *rack) until(ok func(now map[string]lead.Reign) bool) time.Duration {
	r.t.Helper()
	began := time.Now()
	for time.Since(began) < 20*time.Second {
		r.mu.Lock()
		good := ok(r.now)
		r.mu.Unlock()
		if good {
			return time.Since(began)
		}
		time.Sleep(time.Millisecond)
	}
	r.t.Fatal("not in time")
	return 0
}

func leads(name string) func(map[string]lead.Reign) bool {
	return func(now map[string]lead.Reign) bool { _, ok := now[name]; return ok }
}

func wait(ctx context.Context, _ lead.Reign) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestOneLeadsAndAnotherTakesOverWhenItDies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRack(t)
		kill, _ := r.elector("a", wait)
		r.until(leads("a"))
		r.elector("b", wait)
		time.Sleep(2 * lease) // b must not take what a renews
		r.mu.Lock()
		if len(r.reigns) != 1 {
			t.Errorf("%d reigns while the leader lived", len(r.reigns))
		}
		r.mu.Unlock()
		kill()
		if took := r.until(leads("b")); took > 2*lease {
			t.Errorf("taken over after %s, with a lease of %s", took, lease)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		first, second := r.reigns[0], r.reigns[1]
		if second.Term != first.Term+1 || second.Epoch != first.Epoch || first.Epoch == "" {
			t.Errorf("reigns %+v, %+v: terms rise, the epoch stays", first, second)
		}
		if r.most != 1 {
			t.Errorf("%d led at once", r.most)
		}
	})
}

func TestALeaderThatStopsLetsOthersGoAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRack(t)
		_, stop := r.elector("a", wait)
		r.until(leads("a"))
		r.elector("b", wait)
		stop()
		if took := r.until(leads("b")); took > lease {
			t.Errorf("taken over after %s although the lead was released", took)
		}
	})
}

func TestALeaderStepsDownWhenItCannotRenew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRack(t)
		r.elector("a", wait)
		r.until(leads("a"))
		r.server.Cut()
		if took := r.until(func(now map[string]lead.Reign) bool { return len(now) == 0 }); took > lease+lease/2 {
			t.Errorf("stepped down after %s, with a lease of %s", took, lease)
		}
		r.server.Heal()
		r.until(leads("a"))
	})
}

func TestWorkThatFailsGivesTheLeadUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRack(t)
		fails := make(chan struct{})
		r.elector("a", func(ctx context.Context, _ lead.Reign) error {
			select {
			case <-fails:
				return errors.New("cannot work")
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		r.until(leads("a"))
		r.elector("b", wait)
		close(fails)
		r.until(leads("b"))
	})
}

// The key's store lost its disks and the ledger did not: it has seen thousands of terms, and counting up to them one
// reign at a time would take hours.
func TestALeaderWhoseTermWasPassedElsewhereBeginsAboveIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRack(t)
		const seen = 5000
		r.elector("a", func(ctx context.Context, reign lead.Reign) error {
			if reign.Term <= seen {
				return fmt.Errorf("begin: %w", ledger.TermOver(ledger.Call{Term: reign.Term, Epoch: reign.Epoch}, seen))
			}
			return wait(ctx, reign)
		})
		r.until(leads("a"))
		r.until(func(now map[string]lead.Reign) bool { return now["a"].Term == seen+1 })
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.reigns) != 2 || r.reigns[0].Term != 1 {
			t.Errorf("reigns %+v, want terms 1 and %d", r.reigns, seen+1)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []lead.Config{{}, {Instance: "a"}, {Instance: "a", Lease: time.Hour}, {Lease: lease}} {
		if err := c.Validate(); err == nil {
			t.Errorf("%+v is taken", c)
		}
	}
}
