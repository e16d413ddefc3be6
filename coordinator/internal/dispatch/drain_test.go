package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/coordinator/internal/assemble"
	"github.com/proofrack/proofrack/coordinator/internal/dispatch"
	"github.com/proofrack/proofrack/coordinator/internal/lead"
	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/memledger"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

// reign is a leader with one node, whose beats the test sends and whose work nobody does.
type reign struct {
	t      *testing.T
	bus    bus.Bus
	store  *store.Store
	nodes  *rack.Registry
	leader *dispatch.Leader
	seq    uint64
	// state is what the node's workers say of themselves; silent are roles that beat no more.
	state, reason string
	silent        map[string]bool
	logged        lines         // what the leader warns of
	every         time.Duration // between beats, as they say; 0 when they do not
	before        func()        // before each beat
	canary        *wire.Canary  // what the device proved last
}

// lines collects a log.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (r *reign) check(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// leading runs a test in virtual time.
func leading(t *testing.T, test func(*reign)) {
	leadingOn(t, func(b bus.Bus) bus.Bus { return b }, test)
}

// leadingOn does so on a bus that is not as usual.
func leadingOn(t *testing.T, change func(bus.Bus) bus.Bus, test func(*reign)) {
	leadingWith(t, change, func(l ledger.Ledger) ledger.Ledger { return l }, test)
}

// leadingWith does so with a ledger, too, that is not as usual.
func leadingWith(
	t *testing.T, change func(bus.Bus) bus.Bus, spoil func(ledger.Ledger) ledger.Ledger, test func(*reign),
) {
	synctest.Test(t, func(t *testing.T) {
		r := &reign{t: t, state: wire.StateReady}
		b := change(membus.New(membus.Config{}).Connect(bus.Events{}))
		defer b.Close()
		r.bus = b
		streams := coordinator.DefaultStreams()
		r.check(b.Setup(t.Context(), streams.Topology()))
		var err error
		r.store, err = store.Open(t.Context(), b, store.DefaultConfig(), zerolog.Nop())
		r.check(err)
		defer r.store.Close()
		r.nodes, err = rack.New(rack.DefaultConfig())
		r.check(err)
		verifier, err := assemble.New(assemble.Config{
			ParamsDir: t.TempDir(), Find: func(string) (circuit.Circuit, error) { return toy.Circuit(), nil }, InputsKept: 1,
		}, r.store)
		r.check(err)
		books, err := memledger.New(ledger.DefaultConfig(), time.Now)
		r.check(err)
		r.leader, err = dispatch.New(dispatch.DefaultConfig(), dispatch.Parts{
			Bus: b, Store: r.store, Nodes: r.nodes, Ledger: spoil(books.Open()), Verifier: verifier,
			Log: zerolog.New(&r.logged).Level(zerolog.WarnLevel),
		}, lead.Reign{Term: 1, Epoch: "e"})
		r.check(err)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- r.leader.Run(ctx) }()
		test(r)
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the leader ended: %v", err)
		}
	})
}

// beat sends the beats of the node's two workers.
func (r *reign) beat() {
	r.seq++
	if r.before != nil {
		r.before()
	}
	for _, role := range []string{wire.RoleSynth, wire.RoleGPU} {
		if r.silent[role] {
			continue
		}
		b := &wire.Beat{
			Node: "n1", Boot: "boot", Instance: role + "-1", Role: role, Seq: r.seq, State: r.state, Reason: r.reason,
			WireMin: 1, WireMax: 2, HeartbeatMS: r.every.Milliseconds(),
		}
		if role == wire.RoleSynth {
			b.Slots = 1
			b.Synth = []wire.SynthCircuit{{Circuit: toy.Circuit().ID(), SegmentBytes: bytesize.MiB, ScratchBytes: bytesize.MiB}}
		} else {
			b.Devices = []wire.DeviceState{{
				Device: "cpu", Healthy: true, Canary: r.canary,
				Circuits: []wire.DeviceCircuit{{Circuit: toy.Circuit().ID(), Ready: true, PendingBytes: bytesize.MiB}},
			}}
		}
		if role == wire.RoleSynth || r.silent[wire.RoleSynth] { // the first that lives speaks for the host
			b.Host = &wire.HostReport{
				Capacity: ledger.Amounts{ledger.PoolRAM: bytesize.GiB, ledger.PoolSHM: bytesize.GiB}, BookComplete: true,
				At: time.Now(),
			}
		}
		if err := b.Check(); err != nil {
			r.t.Fatal(err)
		}
		r.nodes.Beat(b, time.Now())
	}
}

// pass lets time go by, with beats in it.
func (r *reign) pass(d time.Duration) {
	for range d / time.Second {
		r.beat()
		time.Sleep(time.Second)
	}
}

func (r *reign) submit(partitions int) job.ID {
	r.t.Helper()
	id, err := job.NewID()
	r.check(err)
	record := &job.Record{
		ID: id, Tenant: job.MainTenant, InputHash: "aa", Kind: "toy", Circuit: toy.Circuit().ID(), State: job.Active,
		SubmittedAt: time.Now().UTC(), Output: job.OutputProof,
	}
	for i := range partitions {
		record.Partitions = append(record.Partitions, job.Partition{
			Stage: job.Waiting, StageAt: record.SubmittedAt,
			Slice: job.Object{Name: wire.SliceName(id, i), Bytes: 1, SHA256: fmt.Sprintf("%064d", i)},
		})
	}
	_, err = r.store.Create(r.t.Context(), record)
	r.check(err)
	return id
}

// stages counts a job's partitions by stage, and attempts that cost it something.
func (r *reign) stages(id job.ID) (stages map[job.Stage]int, cost int) {
	r.t.Helper()
	j, ok := r.store.Get(id)
	if !ok {
		r.t.Fatal("the job is gone")
	}
	stages = map[job.Stage]int{}
	for i := range j.Record.Partitions {
		p := &j.Record.Partitions[i]
		stages[p.Stage]++
		cost += p.FailedCount + p.LostCount
	}
	return stages, cost
}

// What was given to a node and not begun when the node stops taking tasks goes back to wait, at no cost: nobody there
// will take it, so a drain would never end and the job neither (invariant 3).
func TestWhatADrainingNodeHasNotBegunGoesBack(t *testing.T) {
	t.Parallel()
	for name, stop := range map[string]func(*reign){
		"drained by an operator": func(r *reign) {
			_, err := r.leader.Drain(r.t.Context(), &wire.DrainRequest{Node: "n1"})
			r.check(err)
			r.state = wire.StateDraining
		},
		"stopping": func(r *reign) { r.state = wire.StateDraining },
		"stopped": func(r *reign) { // its last word was that it leaves
			r.state = wire.StateDraining
			r.beat()
			r.silent = map[string]bool{wire.RoleSynth: true}
		},
		"not ready": func(r *reign) { r.state = wire.StateNotReady },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leading(t, func(r *reign) {
				r.pass(10 * time.Second)
				id := r.submit(3)
				r.pass(10 * time.Second)
				if before, _ := r.stages(id); before[job.Reserved] == 0 {
					t.Fatalf("nothing was given to the node: %v", before)
				}
				stop(r)
				r.pass(time.Minute)
				stages, cost := r.stages(id)
				if stages[job.Waiting] != 3 || cost != 0 {
					t.Errorf("a minute later: %v, %d attempts counted", stages, cost)
				}
				reply, err := r.leader.Drain(r.t.Context(), &wire.DrainRequest{Node: "n1"})
				r.check(err)
				if !reply.Drained {
					t.Errorf("the node is not drained: %+v", reply)
				}
				r.state, r.silent = wire.StateReady, nil
				_, err = r.leader.Drain(r.t.Context(), &wire.DrainRequest{Node: "n1", Undo: true})
				r.check(err)
				r.pass(10 * time.Second)
				if after, _ := r.stages(id); after[job.Reserved] == 0 {
					t.Errorf("nothing is given to the node after the drain: %v", after)
				}
			})
		})
	}
}

// The order that ends a drain is sent at most once, and the node was cut off: it is told again when it says that it
// still drains, and only then.
func TestANodeThatMissedTheEndOfItsDrainIsToldAgain(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) {
		var mu sync.Mutex
		kinds := map[string]int{}
		stop, err := r.bus.Subscribe(wire.ControlSubject("n1"), func(m bus.Message) {
			var c wire.Control
			if err := wire.Decode(m.Data, &c); err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			kinds[c.Kind]++
		})
		r.check(err)
		defer stop()
		r.pass(10 * time.Second)
		_, err = r.leader.Drain(r.t.Context(), &wire.DrainRequest{Node: "n1"})
		r.check(err)
		r.state = wire.StateDraining
		r.pass(20 * time.Second)
		mu.Lock()
		if kinds[wire.ControlUndrain] != 0 {
			t.Errorf("while it drains: %v", kinds)
		}
		mu.Unlock()
		_, err = r.leader.Drain(r.t.Context(), &wire.DrainRequest{Node: "n1", Undo: true})
		r.check(err)
		r.pass(20 * time.Second)
		mu.Lock()
		told := kinds[wire.ControlUndrain]
		mu.Unlock()
		if told < 2 {
			t.Errorf("told %d times that the drain has ended", told)
		}
		r.state = wire.StateReady
		r.pass(2 * time.Second)
		mu.Lock()
		told = kinds[wire.ControlUndrain]
		mu.Unlock()
		r.pass(20 * time.Second)
		mu.Lock()
		defer mu.Unlock()
		if kinds[wire.ControlUndrain] != told {
			t.Errorf("told %d times more although it has heard", kinds[wire.ControlUndrain]-told)
		}
		mu.Unlock()
		r.state, r.reason = wire.StateDraining, wire.ReasonStopping+"terminated"
		r.pass(20 * time.Second)
		mu.Lock()
		if kinds[wire.ControlUndrain] != told {
			t.Errorf("told %d times more although it stops", kinds[wire.ControlUndrain]-told)
		}
	})
}
