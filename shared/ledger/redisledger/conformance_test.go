package redisledger_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/ledgertest"
	"github.com/proofrack/proofrack/shared/ledger/redisledger"
)

// fakeClock reads the time from a key, in place of TIME.
const fakeClock = `local function clock() return tonumber(redis.call('GET', 'clock')) end`

// backend is a store with its time in a key.
type backend struct {
	address string
	admin   *redis.Client
	now     time.Time
	// restart begins another life of the store with its content.
	restart func(testing.TB)
}

func (b *backend) setClock(t testing.TB) {
	t.Helper()
	if err := b.admin.Set(context.Background(), "clock", b.now.UnixMilli(), 0).Err(); err != nil {
		t.Fatal(err)
	}
}

func (b *backend) Open(t testing.TB) ledger.Ledger {
	t.Helper()
	cfg := redisledger.DefaultConfig()
	cfg.Address, cfg.Ledger.Lease, cfg.Timeout = b.address, ledgertest.Lease, 10*time.Second
	l, err := redisledger.OpenWithClock(cfg, fakeClock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func (b *backend) Advance(t testing.TB, by time.Duration) {
	b.now = b.now.Add(by)
	b.setClock(t)
}

func (b *backend) Restart(t testing.TB) { b.restart(t) }

func (b *backend) Wipe(t testing.TB) {
	if err := b.admin.FlushDB(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
	b.setClock(t)
}

// Snapshot copies all keys of the ledger, by type, as both stores can.
func (b *backend) Snapshot(t testing.TB) func() {
	ctx := context.Background()
	keys, err := b.admin.Keys(ctx, "c2:*").Result()
	if err != nil {
		t.Fatal(err)
	}
	var restore []func(redis.Pipeliner)
	for _, key := range keys {
		switch kind := b.admin.Type(ctx, key).Val(); kind {
		case "hash":
			all := b.admin.HGetAll(ctx, key).Val()
			restore = append(restore, func(p redis.Pipeliner) { p.HSet(ctx, key, all) })
		case "zset":
			all := b.admin.ZRangeWithScores(ctx, key, 0, -1).Val()
			restore = append(restore, func(p redis.Pipeliner) { p.ZAdd(ctx, key, all...) })
		case "set":
			all := b.admin.SMembers(ctx, key).Val()
			restore = append(restore, func(p redis.Pipeliner) { p.SAdd(ctx, key, all) })
		case "string":
			text := b.admin.Get(ctx, key).Val()
			restore = append(restore, func(p redis.Pipeliner) { p.Set(ctx, key, text, 0) })
		default:
			t.Fatalf("key %s is a %s", key, kind)
		}
	}
	return func() {
		_, err := b.admin.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.FlushDB(ctx)
			for _, r := range restore {
				r(p)
			}
			p.Set(ctx, "clock", b.now.UnixMilli(), 0)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func realBackend(t testing.TB) ledgertest.Backend {
	s := startServer(t)
	b := &backend{address: s.socket(), admin: s.client(), now: ledgertest.Start()}
	t.Cleanup(func() { _ = b.admin.Close() })
	b.restart = func(testing.TB) {
		// everysec syncs once a second at least; a clean end syncs too.
		_ = b.admin.Shutdown(context.Background()).Err()
		<-s.exited
		s.start()
	}
	b.setClock(t)
	return b
}

func embeddedBackend(t testing.TB) ledgertest.Backend {
	m := miniredis.NewMiniRedis()
	if err := m.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	b := &backend{
		address: m.Addr(), now: ledgertest.Start(),
		admin: redis.NewClient(&redis.Options{Addr: m.Addr(), Protocol: 2, MaxRetries: -1}),
	}
	t.Cleanup(func() { _ = b.admin.Close() })
	b.restart = func(t testing.TB) { // it can't keep what it holds; so another life is made by hand
		ctx := context.Background()
		if err := b.admin.Del(ctx, "c2:ledger:run").Err(); err != nil {
			t.Fatal(err)
		}
		if err := b.admin.ScriptFlush(ctx).Err(); err != nil {
			t.Fatal(err)
		}
	}
	b.setClock(t)
	return b
}

func TestConformanceOnRedis(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, realBackend)
}

func TestConformanceOnTheEmbeddedStore(t *testing.T) {
	t.Parallel()
	ledgertest.Run(t, embeddedBackend)
}

// A book may be full: no operation has more arguments than a store takes.
func TestFullBooks(t *testing.T) {
	t.Parallel()
	for name, backend := range map[string]func(testing.TB) ledgertest.Backend{
		"redis": realBackend, "embedded": embeddedBackend,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := backend(t)
			l, ctx := b.Open(t), context.Background()
			call, err := l.Begin(ctx, 1, "e1")
			if err != nil {
				t.Fatal(err)
			}
			d := declaration(node, 1)
			d.Capacity = ledger.Amounts{ledger.PoolRAM: ledger.EntriesMax + ledger.AssetsMax}
			for i := range ledger.AssetsMax {
				d.Assets = append(d.Assets, ledger.Asset{
					Name: fmt.Sprint("srs:", i), Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: 1,
				})
			}
			var attempts []job.Attempt
			for i := range ledger.EntriesMax {
				a := reservation(node, i/job.PartitionsMax, i%job.PartitionsMax, 1).Attempt
				attempts = append(attempts, a)
				d.Holdings = append(d.Holdings, ledger.Holding{Attempt: a, Amounts: ledger.Amounts{ledger.PoolRAM: 1}})
			}
			if _, err := l.Declare(ctx, call, d); err != nil {
				t.Fatal(err)
			}
			if lost, err := l.Renew(ctx, call, node, attempts); err != nil || len(lost) > 0 {
				t.Fatalf("%d of %d lost, %v", len(lost), len(attempts), err)
			}
			one := reservation(node, 99, 0, 1)
			one.Amounts = ledger.Amounts{ledger.PoolRAM: 1}
			one.Assets = d.Assets
			if err := l.Reserve(ctx, call, one); fault.KindOf(err) != fault.Exhausted {
				t.Errorf("a full book took one more: %v", err)
			}
			b.Advance(t, ledgertest.Lease)
			limbo, err := l.Expire(ctx, call, node)
			if err != nil || len(limbo) != len(attempts) {
				t.Fatalf("%d in limbo, %v", len(limbo), err)
			}
			if _, err := l.Release(ctx, call, node, attempts[0]); err != nil {
				t.Fatal(err)
			}
			if err := l.Reserve(ctx, call, one); err != nil {
				t.Fatal(err)
			}
			if _, err := l.Release(ctx, call, node, one.Attempt); err != nil {
				t.Fatal(err)
			}
			book, err := l.Node(ctx, node)
			if err != nil || len(book.Entries) != len(attempts)-1 || len(book.Mismatch()) > 0 || book.Closed != "" ||
				len(book.Assets) != ledger.AssetsMax {
				t.Errorf("%v, %d entries, %d assets, %v", err, len(book.Entries), len(book.Assets), book.Mismatch())
			}
		})
	}
}
