package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/redisledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// watch is what is looked at all through a test, whatever fault happens in it.
type watch struct {
	mu sync.Mutex
	// finished are partitions that were seen finished, with their proof and how many attempts that took.
	finished map[job.Attempt]finish
	// tasks counts the synthesis tasks that were published, by attempt.
	tasks map[job.Attempt]int
	// beats are the last ones of each process, and when they came.
	beats map[string]seenBeat
	// nodes are those whose own books and segments are looked at.
	nodes []*node
	// backwards tells that the ledger went back: then it may count what nodes have given back meanwhile, beside what they
	// hold, until leases end.
	backwards atomic.Bool
}

type seenBeat struct {
	wire.Beat
	at time.Time
}

type finish struct {
	proof    []byte
	attempts int
}

func newWatch() *watch {
	return &watch{finished: map[job.Attempt]finish{}, tasks: map[job.Attempt]int{}, beats: map[string]seenBeat{}}
}

// watchAll begins to watch: the books in Redis and what nodes hold twenty times a second, and every task that is
// published.
func (r *rack) watchAll() {
	r.t.Helper()
	stop, err := r.bus.Subscribe(wire.AllSynth, func(m bus.Message) {
		var task wire.SynthTask
		if err := wire.Decode(m.Data, &task); err == nil {
			r.watch.mu.Lock()
			r.watch.tasks[task.Attempt]++
			r.watch.mu.Unlock()
		}
	})
	r.check(err)
	deaf, err := r.bus.Subscribe(wire.AllBeats, func(m bus.Message) {
		var beat wire.Beat
		if err := wire.DecodeBeat(m.Data, &beat); err == nil {
			r.watch.mu.Lock()
			r.watch.beats[beat.Instance] = seenBeat{beat, time.Now()}
			r.watch.mu.Unlock()
		}
	})
	r.check(err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	held := make(chan struct{})
	go func() {
		defer close(ended)
		r.watch.watchBooks(ctx, r.t, r.redis.listen)
	}()
	go func() {
		defer close(held)
		r.watch.watchHoldings(ctx, r.t)
	}()
	r.t.Cleanup(func() { stop(); deaf(); cancel(); <-ended; <-held })
}

// buffers lists what the flight recorders of a node's live processes have beyond assets, and what they counted wrongly.
func (w *watch) buffers(name job.Node) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	left := ""
	for _, beat := range w.beats {
		if beat.Node != name || time.Since(beat.at) > lease {
			continue // it is gone
		}
		for i := range beat.Flight {
			if r := &beat.Flight[i]; !r.Idle() || r.Defects > 0 {
				left += fmt.Sprintf(" %+v", *r)
			}
		}
	}
	return left
}

// watchBooks sees to it that no pool ever holds more than its capacity (invariant 1), and that sums are those of their
// entries. While Redis is away there is nothing to see.
func (w *watch) watchBooks(ctx context.Context, t *testing.T, address string) {
	config := redisledger.DefaultConfig()
	config.Address = address
	l, err := redisledger.Open(config)
	if err != nil {
		t.Errorf("watch books: %v", err)
		return
	}
	defer l.Close()
	last := map[job.Node]*ledger.NodeBook{}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		names, err := l.Nodes(ctx)
		if err != nil {
			continue
		}
		for _, name := range names {
			b, err := l.Node(ctx, name)
			if err != nil || b.Closed != "" {
				continue
			}
			for _, pool := range b.Over() {
				if w.backwards.Load() && b.Used[pool]-w.givenBack(b, pool) <= b.Capacity[pool] {
					continue
				}
				// Where the capacity itself fell below what is held, nothing more is granted.
				if before := last[name]; before == nil || b.Used[pool] > before.Used[pool] {
					t.Errorf("node %s holds more %s than there is (invariant 1): %s of %s", name, pool, b.Used[pool], b.Capacity[pool])
					return
				}
			}
			last[name] = b
			if wrong := b.Mismatch(); len(wrong) > 0 {
				t.Errorf("node %s: sums of %v are not those of the entries: %+v", name, wrong, b)
				return
			}
		}
	}
}

// givenBack adds up the entries of a node's book in Redis that the node itself does not hold.
func (w *watch) givenBack(b *ledger.NodeBook, pool ledger.Pool) (sum bytesize.Bytes) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.nodes {
		if n.name != b.Node {
			continue
		}
		held := attemptsIn(n, "book")
		for _, e := range b.Entries {
			if !strings.Contains(held, e.Attempt.String()) {
				sum += e.Amounts[pool]
			}
		}
	}
	return sum
}

// saw notes which partitions of a record are finished.
func (w *watch) saw(record *job.Record) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range record.Partitions {
		at := job.Attempt{Job: record.ID, Partition: i}
		if _, known := w.finished[at]; !known && len(p.Proof) > 0 {
			w.finished[at] = finish{bytes.Clone(p.Proof), len(p.Attempts)}
		}
	}
}

// kept tells what is wrong with a record, now that its job has ended: a finished partition that was begun again, or
// whose proof changed (invariant 6), and tasks of attempts that never were (invariant 5).
func (w *watch) kept(record *job.Record) (wrong []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, p := range record.Partitions {
		f, known := w.finished[job.Attempt{Job: record.ID, Partition: i}]
		switch {
		case !known:
		case !bytes.Equal(f.proof, p.Proof):
			wrong = append(wrong, fmt.Sprintf("partition %d has another proof than when it was finished", i))
		case f.attempts != len(p.Attempts):
			wrong = append(wrong, fmt.Sprintf("partition %d was finished after %d attempts and has %+v", i, f.attempts,
				p.Attempts))
		}
	}
	for a := range w.tasks {
		if a.Job == record.ID && (a.Partition >= len(record.Partitions) || a.Fence > record.Partitions[a.Partition].Fence) {
			wrong = append(wrong, fmt.Sprintf("a task of attempt %s was published, which the record does not know", a))
		}
	}
	return wrong
}

// published is how many tasks of a job's attempts were published.
func (w *watch) published(id job.ID) (count int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a, times := range w.tasks {
		if a.Job == id {
			count += times
		}
	}
	return count
}
