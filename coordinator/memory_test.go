package coordinator_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/coordinator/internal/sizes"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

// measuring has a node whose attempts have measured peaks, and keeps what the last one was booked with.
type measuring struct {
	w  *world
	mu sync.Mutex

	peaks ledger.Amounts
	last  ledger.Amounts
}

func (m *measuring) node(name job.Node) {
	m.w.node(name, 4, func(ctx context.Context, n *node, task *wire.SynthTask) {
		m.mu.Lock()
		m.last = task.Amounts
		peaks := wire.Peaks{job.Synthesizing: m.peaks}
		m.mu.Unlock()
		n.stage(ctx, task.Attempt, job.Sealed)
		n.stage(ctx, task.Attempt, job.Proving)
		n.publish(ctx, &wire.Result{
			Attempt: task.Attempt, Outcome: job.OutcomeOK, Proof: n.w.made.proofs[task.Slice.SHA256], ParamsDigest: "abcd",
			Handoff: wire.HandoffSHM, Peaks: peaks, Seconds: map[string]float64{"start": 2, "synthesis": 3},
		})
		n.free(ctx, task.Attempt)
	})
}

// books proves a job and gives what its one attempt was booked with.
func (m *measuring) books() ledger.Amounts {
	m.w.t.Helper()
	m.w.ends(m.w.submit(1), job.Done)
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

func memory(w *world, q *wire.MemoryRequest) *wire.MemoryReply {
	w.t.Helper()
	reply, err := ask[wire.MemoryReply](w, wire.AdminSubject(wire.AdminMemory), q)
	w.check(err)
	return reply
}

// What was measured outlives the leader that heard of it: the next one, and one that starts after all were gone, book
// by it. Drift is told as an event, once.
func TestWhatWasLearnedOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	const really bytesize.Bytes = segmentBytes * 10 / 7
	w := newWorld(t, func(c *coordinator.Config) { c.Memory.StoreEvery = tick })
	events := make(chan *wire.DriftEvent, 8)
	stop, err := w.bus.Subscribe(wire.DriftSubject, func(m bus.Message) {
		e := &wire.DriftEvent{}
		if err := wire.Decode(m.Data, e); err != nil {
			t.Error(err)
		}
		events <- e
	})
	w.check(err)
	t.Cleanup(stop)
	first := w.start()
	m := &measuring{w: w, peaks: ledger.Amounts{ledger.PoolSHM: really}}
	m.node("n1")
	w.ends(w.submit(7), job.Done)
	var told *wire.DriftEvent
	w.until("drift is told", func() bool {
		select {
		case told = <-events:
			return true
		default:
			return false
		}
	})
	if s := told.Size; s.Drift != wire.DriftOver || s.Pool != ledger.PoolSHM || s.P99 != really ||
		s.Computed != segmentBytes || s.Stage != job.Synthesizing || s.Circuit != toy.Circuit().ID() {
		t.Errorf("told: %+v", told)
	}
	var before *wire.MemoryReply
	w.until("all of it is stored", func() bool {
		before = memory(w, &wire.MemoryRequest{})
		stored, err := w.store.Learned(t.Context())
		w.check(err)
		table, err := sizes.Decode(sizes.DefaultConfig(), stored.Sizes, stored.Speeds)
		w.check(err)
		rows, speeds := table.Sizes(), table.Speeds()
		return before.StoredAt != nil && len(rows) == 1 && rows[0].Samples == 7 && len(speeds) == 1 && speeds[0].Samples == 7
	})
	if before.Drifts != 1 || before.Drifting != 1 || len(before.Speeds) != 1 || before.Speeds[0].Proof != 2*time.Second ||
		before.Speeds[0].Synthesis != 3*time.Second {
		t.Errorf("%+v", before)
	}
	first.kill()
	next := w.start()
	w.until("the next leader knows it", func() bool {
		reply := memory(w, &wire.MemoryRequest{Circuit: toy.Circuit().ID()})
		return len(reply.Sizes) == 1 && reply.Sizes[0].Samples == 7 && reply.Sizes[0].Drift == wire.DriftOver &&
			len(reply.Speeds) == 1 && reply.Drifting == 1
	})
	if got, want := m.books()[ledger.PoolSHM], really+really/10; got != want {
		t.Errorf("the next leader books %s of shm, not %s", got, want)
	}
	next.stop()
	w.start()
	w.until("one that starts alone knows it", func() bool {
		reply := memory(w, &wire.MemoryRequest{})
		return len(reply.Sizes) == 1 && reply.Sizes[0].Samples >= 7
	})
	if len(events) > 0 {
		t.Errorf("told again: %+v", <-events)
	}
	if reply := memory(w, &wire.MemoryRequest{Circuit: "another"}); len(reply.Sizes) > 0 || len(reply.Speeds) > 0 {
		t.Errorf("of another circuit: %+v", reply)
	}
}

// A pin is stored when it is answered: it holds although the leader dies at once, and until it is taken away.
func TestAPinOutlivesItsLeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *coordinator.Config) { c.Memory.StoreEvery = time.Hour })
	first := w.start()
	m := &measuring{w: w, peaks: ledger.Amounts{ledger.PoolSHM: segmentBytes}}
	m.node("n1")
	computed := m.books()
	pin := &wire.MemoryRequest{
		Do: wire.MemoryPin, Circuit: toy.Circuit().ID(), Stage: job.Synthesizing,
		Kind: memory(w, &wire.MemoryRequest{}).Sizes[0].Kind, Pool: ledger.PoolRAM, Bytes: 2 * scratchBytes,
	}
	if reply := memory(w, pin); reply.Fault != nil {
		t.Fatal(reply.Fault)
	}
	first.kill()
	second := w.start()
	w.leads()
	want := computed[ledger.PoolRAM] + scratchBytes
	w.until("the next leader has read it", func() bool {
		return slices.ContainsFunc(memory(w, &wire.MemoryRequest{}).Sizes, func(s wire.MemorySize) bool { return s.Pinned })
	})
	if got := m.books()[ledger.PoolRAM]; got != want {
		t.Errorf("the next leader books %s, not %s", got, want)
	}
	unpin := *pin
	unpin.Do, unpin.Bytes = wire.MemoryUnpin, 0
	if reply := memory(w, &unpin); reply.Fault != nil {
		t.Fatal(reply.Fault)
	}
	if got := m.books()[ledger.PoolRAM]; got != computed[ledger.PoolRAM] {
		t.Errorf("after unpin %s are booked, not %s", got, computed[ledger.PoolRAM])
	}
	for what, refused := range map[string]struct {
		edit func(*wire.MemoryRequest)
		kind fault.Kind
	}{
		"unpin twice":                  {func(q *wire.MemoryRequest) { q.Do, q.Bytes = wire.MemoryUnpin, 0 }, fault.NotFound},
		"a circuit that nobody proves": {func(q *wire.MemoryRequest) { q.Circuit = "mistyped" }, fault.NotFound},
		"a kind that nobody has":       {func(q *wire.MemoryRequest) { q.Kind = "mistyped" }, fault.NotFound},
		"no pool of sizes":             {func(q *wire.MemoryRequest) { q.Pool = "vram:gpu0" }, fault.Invalid},
		"less than a segment":          {func(q *wire.MemoryRequest) { q.Pool, q.Bytes = ledger.PoolSHM, 1 }, fault.Invalid},
	} {
		q := *pin
		refused.edit(&q)
		if reply := memory(w, &q); reply.Fault == nil || reply.Fault.FaultKind() != refused.kind {
			t.Errorf("%s: %+v", what, reply.Fault)
		}
	}
	second.stop()
}

// A pin does not wait for what earlier leaders learned to be read on a tick: it is read for it.
func TestAPinIsTakenAsSoonAsThereIsALeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *coordinator.Config) { c.Times.Tick = time.Hour })
	w.start()
	w.node("n1", 4, nil)
	reply := memory(w, &wire.MemoryRequest{
		Do: wire.MemoryPin, Circuit: toy.Circuit().ID(), Stage: job.Synthesizing,
		Pool: ledger.PoolRAM, Bytes: 2 * scratchBytes,
	})
	if reply.Fault != nil {
		t.Fatal(reply.Fault)
	}
}

// memory.margin, memory.drift_max and memory.slack: what a measured peak leads to (invariant 10).
func TestSettingsOfMeasuredMemory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit   func(*coordinator.MemoryConfig)
		booked bytesize.Bytes
		drift  string
	}{
		"defaults": {func(*coordinator.MemoryConfig) {}, 60*bytesize.MiB + 6*bytesize.MiB, wire.DriftOver},
		"margin": {
			func(c *coordinator.MemoryConfig) { c.Margin = 0.5 }, 60*bytesize.MiB + 30*bytesize.MiB, wire.DriftOver,
		},
		"drift_max": {func(c *coordinator.MemoryConfig) { c.DriftMax = 4 }, 60*bytesize.MiB + 6*bytesize.MiB, ""},
		"slack":     {func(c *coordinator.MemoryConfig) { c.Slack = 64 * bytesize.MiB }, scratchBytes, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *coordinator.Config) { test.edit(&c.Memory) })
			w.start()
			m := &measuring{w: w, peaks: ledger.Amounts{ledger.PoolRAM: 60 * bytesize.MiB}}
			m.node("n1")
			computed := m.books()
			w.ends(w.submit(6), job.Done)
			if got := m.books()[ledger.PoolRAM] - computed[ledger.PoolRAM] + scratchBytes; got != test.booked {
				t.Errorf("booked %s, not %s", got, test.booked)
			}
			if row := memory(w, &wire.MemoryRequest{}).Sizes[0]; row.Drift != test.drift || row.Booked != test.booked {
				t.Errorf("%+v", row)
			}
		})
	}
}
