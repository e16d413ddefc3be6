package dispatch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheKindOfAFaultDecides(t *testing.T) {
	t.Parallel()
	want := map[fault.Kind]verdict{
		fault.Invalid: final, fault.NotFound: final, fault.Conflict: again, fault.Exhausted: again, fault.Transient: again,
		fault.Lost: handBack, fault.Corrupt: again, fault.Device: again, fault.Internal: again, fault.Cancelled: handBack,
	}
	for _, kind := range fault.Kinds() {
		v, ok := want[kind]
		if !ok {
			t.Errorf("kind %s has no wanted verdict", kind)
		}
		for outcome, w := range map[job.Outcome]verdict{
			job.OutcomeFailed: v, job.OutcomeOK: v, job.OutcomeLost: lost, job.OutcomeHandedBack: handBack,
			job.OutcomeCancelled: nothing,
		} {
			if got := verdictOf(outcome, kind); got != w {
				t.Errorf("%s with %s: verdict %d, want %d", outcome, kind, got, w)
			}
		}
	}
}

func TestLanesKeepTheOrderOfAKeyAndRunKeysSideBySide(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	l := newLanes(ctx, 3)
	var mu sync.Mutex
	order := map[string][]int{}
	var running, most atomic.Int64
	var wg sync.WaitGroup
	for i := range 50 {
		for k := range 8 {
			wg.Add(1)
			key := fmt.Sprint(k)
			l.do(key, func(context.Context) {
				defer wg.Done()
				now := running.Add(1)
				for {
					old := most.Load()
					if now <= old || most.CompareAndSwap(old, now) {
						break
					}
				}
				mu.Lock()
				order[key] = append(order[key], i)
				mu.Unlock()
				running.Add(-1)
			})
		}
	}
	wg.Wait()
	for key, got := range order {
		if !slices.IsSorted(got) || len(got) != 50 {
			t.Errorf("key %s ran in order %v", key, got)
		}
	}
	if most.Load() > 3 {
		t.Errorf("%d ran at once", most.Load())
	}
	began := make(chan struct{})
	l.do("a", func(ctx context.Context) { close(began); <-ctx.Done() })
	l.do("a", func(context.Context) { t.Error("ran after close") })
	<-began
	cancel()
	l.close()
	l.do("b", func(context.Context) { t.Error("ran after close") })
}

func TestAClosedBookIsNotALedgerThatIsAway(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err               error
		transient, closed bool
	}{
		"none":        {nil, false, false},
		"closed book": {fmt.Errorf("reserve: %w", &ledger.Refusal{Closed: ledger.ClosedEpoch}), false, true},
		"full pool":   {&ledger.Refusal{Pool: ledger.PoolRAM}, false, false},
		"away":        {fault.New(fault.Transient, "away"), true, false},
		"too slow":    {context.DeadlineExceeded, true, false},
		"deposed":     {fault.New(fault.Lost, "term is over"), false, false},
	} {
		if transient(c.err) != c.transient || closed(c.err) != c.closed {
			t.Errorf("%s: transient %v, closed %v", name, transient(c.err), closed(c.err))
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := DefaultConfig()
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Config){
		"lease":     func(c *Config) { c.Lease = c.Heartbeat },
		"tick":      func(c *Config) { c.Tick = 0 },
		"workers":   func(c *Config) { c.Workers = 0 },
		"hand back": func(c *Config) { c.HandBackPause = -time.Second },
		"scheduler": func(c *Config) { c.Scheduler.AdmitsMax = 0 },
		"policy":    func(c *Config) { c.Policy.LostMax = 0 },
	} {
		c := DefaultConfig()
		spoil(&c)
		if err := c.Validate(); err == nil {
			t.Errorf("a bad %s is taken", name)
		}
	}
}
