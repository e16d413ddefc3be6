package memledger_test

import (
	"sync"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/ledgertest"
	"github.com/proofrack/proofrack/shared/ledger/memledger"
)

var rewrite = ledgertest.RewriteFlag()

type backend struct {
	store *memledger.Store
	mu    sync.Mutex
	now   time.Time
}

func newBackend(t testing.TB) ledgertest.Backend {
	b := &backend{now: ledgertest.Start()}
	store, err := memledger.New(ledger.Config{Lease: ledgertest.Lease}, func() time.Time {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.now
	})
	if err != nil {
		t.Fatal(err)
	}
	b.store = store
	return b
}

func (b *backend) Open(testing.TB) ledger.Ledger { return b.store.Open() }
func (b *backend) Restart(testing.TB)            { b.store.Restart(b.store.Snapshot()) }
func (b *backend) Wipe(testing.TB)               { b.store.Wipe() }

func (b *backend) Advance(_ testing.TB, by time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(by)
}

func (b *backend) Snapshot(testing.TB) func() {
	snapshot := b.store.Snapshot()
	return func() { b.store.RollBack(snapshot) }
}

func TestConformance(t *testing.T) {
	if *rewrite {
		ledgertest.Rewrite(t, "../ledgertest", newBackend)
		return
	}
	ledgertest.Run(t, newBackend)
}
