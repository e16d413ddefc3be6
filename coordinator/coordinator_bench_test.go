package coordinator_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// BenchmarkFreedToBegun measures how long a node waits from "bytes freed" until it has the next partition in hands,
// where only one fits: report, transfer in the ledger, claim, publish, fetch and the worker's look at the fence.
func BenchmarkFreedToBegun(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		gaps := freedToBegun(b)
		b.ReportMetric(gaps[len(gaps)/2].Seconds()*1e3, "p50-ms")
		b.ReportMetric(gaps[len(gaps)*99/100].Seconds()*1e3, "p99-ms")
		b.StartTimer()
	}
}

func freedToBegun(b *testing.B) (gaps []time.Duration) {
	b.Helper()
	w := newNATSWorld(b)
	w.onRedis(startRedis(b))
	w.start()
	var mu sync.Mutex
	var freed time.Time
	w.node("n1", 1, func(ctx context.Context, n *node, task *wire.SynthTask) {
		mu.Lock()
		if !freed.IsZero() {
			gaps = append(gaps, time.Since(freed))
		}
		mu.Unlock()
		prove(ctx, n, task)
		mu.Lock()
		freed = time.Now()
		mu.Unlock()
	}, func(n *node) { n.slots = 1 })
	var ids []job.ID
	for range 30 {
		ids = append(ids, w.submit(10)) // as 32 GiB sectors
	}
	for _, id := range ids {
		w.ends(id, job.Done)
	}
	slices.Sort(gaps)
	return gaps
}
