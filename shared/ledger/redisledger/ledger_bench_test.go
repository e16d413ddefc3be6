package redisledger_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/redisledger"
)

// BenchmarkLedgerReserveRelease measures pairs of reserve and release by clients at once on one Redis with AOF
// everysec, each client on a node of its own and all on one node. The bar is 8,000 pairs/s with 8 clients.
func BenchmarkLedgerReserveRelease(b *testing.B) {
	for _, nodes := range []int{1, 8} {
		b.Run(fmt.Sprintf("clients=8/nodes=%d", nodes), func(b *testing.B) { benchPairs(b, 8, nodes) })
	}
}

func benchPairs(b *testing.B, clients, nodes int) {
	s := startServer(b)
	l := open(b, s, nil)
	ctx := context.Background()
	call, err := l.Begin(ctx, 1, "e1")
	if err != nil {
		b.Fatal(err)
	}
	asset := ledger.Asset{Name: "srs:x", Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: 44 * bytesize.GiB}
	for n := range nodes {
		if _, err := l.Declare(ctx, call, declaration(job.Node(fmt.Sprint("n", n)), 1)); err != nil {
			b.Fatal(err)
		}
	}
	before := s.processorTime()
	b.ResetTimer()
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			node := job.Node(fmt.Sprint("n", c%nodes))
			for i := c; i < b.N; i += clients {
				r := reservation(node, c+1, i%job.PartitionsMax, 1)
				r.Assets = []ledger.Asset{asset}
				if err := l.Reserve(ctx, call, r); err != nil {
					b.Error(err)
					return
				}
				if released, err := l.Release(ctx, call, node, r.Attempt); err != nil || !released {
					b.Errorf("released %t, %v", released, err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
	b.ReportMetric((s.processorTime()-before).Seconds()*1e6/float64(b.N), "redis-µs/pair")
	for n := range min(nodes, b.N) {
		book, err := l.Node(ctx, job.Node(fmt.Sprint("n", n)))
		if err != nil || len(book.Entries) > 0 || book.Used[ledger.PoolRAM] != asset.Bytes || len(book.Mismatch()) > 0 {
			b.Fatalf("after all: %v, %+v", err, book)
		}
	}
}

// BenchmarkPlainPairs measures what the same server and client do in pairs of one SET and one DEL: what the machine
// leaves for eight clients that wait for each answer, without a script.
func BenchmarkPlainPairs(b *testing.B) {
	const clients = 8
	b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
		rdb := startServer(b).client()
		defer rdb.Close()
		ctx := context.Background()
		b.ResetTimer()
		var wg sync.WaitGroup
		for c := range clients {
			wg.Go(func() {
				key := fmt.Sprint("plain", c)
				for i := c; i < b.N; i += clients {
					if err := errors.Join(rdb.Set(ctx, key, "x", 0).Err(), rdb.Del(ctx, key).Err()); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pairs/s")
	})
}

// open gives a client of a server, with what edit changes.
func open(t testing.TB, s *server, edit func(*redisledger.Config)) *redisledger.Ledger {
	t.Helper()
	cfg := redisledger.DefaultConfig()
	cfg.Address = s.socket()
	if edit != nil {
		edit(&cfg)
	}
	l, err := redisledger.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func declaration(node job.Node, seq uint64, holdings ...ledger.Holding) *ledger.Declaration {
	return &ledger.Declaration{
		Node: node, Boot: "b1", Instance: "i1", Seq: seq, Holdings: holdings,
		Capacity: ledger.Amounts{ledger.PoolRAM: 64 * bytesize.GiB, ledger.PoolSHM: 16 * bytesize.GiB},
	}
}

func reservation(node job.Node, number, partition int, fence uint64) *ledger.Reservation {
	return &ledger.Reservation{
		Attempt: job.Attempt{
			Job: job.ID(fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", number)), Partition: partition, Fence: fence,
		},
		Node:    node,
		Amounts: ledger.Amounts{ledger.PoolRAM: 800 * bytesize.MiB, ledger.PoolSHM: 300 * bytesize.MiB},
	}
}
