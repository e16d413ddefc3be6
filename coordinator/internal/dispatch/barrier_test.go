package dispatch_test

import (
	"context"
	"errors"
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

// tight is a rack of one node on which one attempt fits. Its workers beat and never begin anything, so all that was
// granted stays in the queue, where no host can speak for it.
type tight struct {
	*reign

	books *memledger.Store
	stop  func()
	freed []job.Attempt // on the node, whose records need not say so yet
}

// onTight runs a test on it in virtual time, without a leader.
func onTight(t *testing.T, test func(*tight)) {
	synctest.Test(t, func(t *testing.T) {
		r := &tight{reign: &reign{t: t, state: wire.StateReady}}
		b := membus.New(membus.Config{}).Connect(bus.Events{})
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
		r.books, err = memledger.New(ledger.DefaultConfig(), time.Now)
		r.check(err)
		test(r)
	})
}

// lead begins a reign, which knows nothing but records, beats that came, and the ledger.
func (r *tight) lead(term uint64) {
	r.t.Helper()
	verifier, err := assemble.New(assemble.Config{
		ParamsDir: r.t.TempDir(), Find: func(string) (circuit.Circuit, error) { return toy.Circuit(), nil }, InputsKept: 1,
	}, r.store)
	r.check(err)
	config := dispatch.DefaultConfig()
	config.Scheduler.GuessDefault = time.Second // so that a device wants many attempts ahead
	leader, err := dispatch.New(config, dispatch.Parts{
		Bus: r.bus, Store: r.store, Nodes: r.nodes, Ledger: r.books.Open(), Verifier: verifier, Log: zerolog.Nop(),
	}, lead.Reign{Term: term, Epoch: "e"})
	r.check(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- leader.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			r.t.Errorf("the leader of term %d ended: %v", term, err)
		}
	}
}

// report sends both workers' beats, with an empty book.
func (r *tight) report() {
	r.seq++
	for _, role := range []string{wire.RoleSynth, wire.RoleGPU} {
		b := &wire.Beat{
			Node: "n1", Boot: "boot", Instance: role + "-1", Role: role, Seq: r.seq, State: wire.StateReady, WireMin: 1,
			WireMax: 2, Slots: 1,
		}
		if role == wire.RoleSynth {
			b.Synth = []wire.SynthCircuit{{Circuit: toy.Circuit().ID(), SegmentBytes: bytesize.MiB, ScratchBytes: bytesize.MiB}}
			b.Host = &wire.HostReport{
				Capacity: ledger.Amounts{ledger.PoolRAM: 2 * bytesize.MiB, ledger.PoolSHM: bytesize.MiB}, BookComplete: true,
				At: time.Now(), Freed: r.freed,
			}
		} else {
			b.Devices = []wire.DeviceState{{
				Device: "cpu", Healthy: true, Circuits: []wire.DeviceCircuit{{Circuit: toy.Circuit().ID(), Ready: true}},
			}}
		}
		r.check(b.Check())
		r.nodes.Beat(b, time.Now())
	}
}

// Invariant 1 when the ledger forgets: a task that waits in the queue is on no host and not in the new book, and yet
// its bytes must not be granted a second time, by whomever leads.
func TestWhatMayStillBeginIsCountedWhenALostBookIsOpened(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(s *memledger.Store, early memledger.Snapshot){
		"wiped":        func(s *memledger.Store, _ memledger.Snapshot) { s.Wipe() },
		"an older log": func(s *memledger.Store, early memledger.Snapshot) { s.Restart(early) },
		"rolled back":  func(s *memledger.Store, early memledger.Snapshot) { s.RollBack(early) },
	} {
		for who, next := range map[string]func(*tight){
			"same leader": func(*tight) {}, "next leader": func(r *tight) { r.stop(); r.lead(2) },
		} {
			t.Run(name+"/"+who, func(t *testing.T) {
				t.Parallel()
				onTight(t, func(r *tight) {
					r.lead(1)
					for range 10 {
						r.report()
						time.Sleep(time.Second)
					}
					early := r.books.Snapshot()
					id := r.submit(2)
					for second := range 90 {
						r.report()
						time.Sleep(time.Second)
						stages, _ := r.stages(id)
						if stages[job.Reserved] > 1 || second == 10 && stages[job.Reserved] != 1 {
							r.t.Fatalf("after %d seconds, on a node on which one fits: %v", second, stages)
						}
						if second == 10 {
							harm(r.books, early)
							next(r)
						}
					}
					r.stop()
				})
			})
		}
	}
}

// Invariant 1 when the leader is lost: what has ended on its node gave its bytes to the next one, while its record says
// that it runs, since the result has yet to be looked at. The next leader does not count it again.
func TestWhatHasEndedOnItsNodeIsNotCountedByTheNextLeader(t *testing.T) {
	t.Parallel()
	onTight(t, func(r *tight) {
		r.lead(1)
		pass := func() {
			for range 10 {
				r.report()
				time.Sleep(time.Second)
			}
		}
		pass()
		id := r.submit(2)
		pass()
		j, _ := r.store.Get(id)
		for i := range j.Record.Partitions {
			if j.Record.Partitions[i].Stage == job.Reserved {
				r.freed = append(r.freed, j.Record.Attempt(i))
			}
		}
		if len(r.freed) != 1 {
			t.Fatalf("given at first: %v", r.freed)
		}
		for _, report := range []*wire.Report{
			{Attempt: r.freed[0], Node: "n1", Stage: job.Proving}, {Attempt: r.freed[0], Node: "n1", Freed: true},
		} {
			data, err := wire.Encode(report)
			r.check(err)
			r.check(r.bus.Send(t.Context(), bus.Message{Subject: wire.ReportSubject("n1"), Data: data}))
			time.Sleep(time.Second)
		}
		r.stop()
		r.lead(2)
		pass()
		defer r.stop()
		if stages, _ := r.stages(id); stages[job.Reserved] != 1 || stages[job.Proving] != 1 {
			t.Fatalf("before the results came: %v", stages)
		}
		read, err := r.books.Open().Node(t.Context(), "n1")
		r.check(err)
		if len(read.Entries) != 1 || read.Entries[0].Attempt == r.freed[0] {
			t.Errorf("booked on a node on which one fits: %v", read.Entries)
		}
	})
}

// A leader that begins grants nothing by reports that came before its reign: other leaders may have granted and
// released since, and the reports may be from before the ledger lost its books.
func TestANewLeaderWaitsForAReportOfItsReign(t *testing.T) {
	t.Parallel()
	onTight(t, func(r *tight) {
		r.report()
		time.Sleep(time.Second)
		r.lead(1)
		id := r.submit(1)
		time.Sleep(4 * time.Second)
		if stages, _ := r.stages(id); stages[job.Reserved] != 0 {
			t.Errorf("granted by a report from before the reign: %v", stages)
		}
		r.report()
		time.Sleep(time.Second)
		if stages, _ := r.stages(id); stages[job.Reserved] != 1 {
			t.Errorf("not granted by a report of the reign: %v", stages)
		}
		r.stop()
	})
}
