package e2e_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// A synthesis worker that is told 30 % too little scratch memory: what its process really has is measured, later
// attempts are booked with that and a margin, and drift is told as an event.
func TestEstimate30PercentTooLowIsCorrectedAndTold(t *testing.T) {
	t.Parallel()
	const (
		really = 200 * bytesize.MiB
		said   = really * 7 / 10
	)
	r := newRack(t)
	drifts := make(chan *wire.DriftEvent, 16)
	stop, err := r.bus.Subscribe(wire.DriftSubject, func(m bus.Message) {
		e := &wire.DriftEvent{}
		if err := wire.Decode(m.Data, e); err != nil {
			t.Error(err)
		}
		drifts <- e
	})
	r.check(err)
	t.Cleanup(stop)
	r.startCoordinator("memory.store_every=100ms")
	n := r.addNode("n1")
	settings := []string{"synth.scratch_bytes=140MiB", "synth.ballast_bytes=200MiB"}
	n.startSynth(settings...)
	n.startGPU()
	r.ready()
	for seed := uint64(1); seed <= 6; seed += 2 {
		r.submit(seed, seed+1)
	}
	r.waitDone()

	s := r.drifted(drifts)
	if s.Drift != wire.DriftOver || s.Computed != said || s.P99 < really || s.P99 > really*5/4 || s.Booked < s.P99 {
		t.Errorf("told: %+v", s)
	}
	r.checkMeasured()
	// A worker that starts anew is held in an attempt, so that the ledger shows what that is booked with.
	n.synth.kill()
	n.startSynth(append(settings, r.hooked("pause@synth.before-seal#1")...)...)
	j := r.submit(7)
	r.reached("synth.before-seal#1")
	var booked bytesize.Bytes
	for _, e := range r.book("n1").Entries {
		if e.Attempt.Job == j.id {
			booked = e.Amounts[ledger.PoolRAM]
		}
	}
	if booked < really {
		t.Errorf("%s of ram are booked, %s are taken", booked, really)
	}
	r.letGo("synth.before-seal#1")
	r.waitDone()
}

// memory is what the rack learned.
func (r *rack) memory() *wire.MemoryReply {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	reply := &wire.MemoryReply{}
	r.check(client.Ask(ctx, r.bus, wire.AdminSubject(wire.AdminMemory), &wire.MemoryRequest{}, reply, time.Second))
	return reply
}

// drifted waits until drift of the memory of syntheses is told.
func (r *rack) drifted(drifts <-chan *wire.DriftEvent) wire.MemorySize {
	r.t.Helper()
	for {
		select {
		case e := <-drifts:
			if e.Size.Stage == job.Synthesizing && e.Size.Pool == ledger.PoolRAM {
				return e.Size
			}
		case <-time.After(patience):
			r.t.Fatalf("no drift is told: %+v", r.memory())
		}
	}
}

// checkMeasured demands that all that a rack without GPUs takes was measured, and that segments and engines are within
// what is said of them.
func (r *rack) checkMeasured() {
	r.t.Helper()
	measured := map[string]bool{}
	for _, s := range r.memory().Sizes {
		what := string(s.Stage) + " " + string(s.Pool)
		r.t.Logf("%s: computed %s, p50 %s, p99 %s of %d, booked %s", what, s.Computed, s.P50, s.P99, s.Samples, s.Booked)
		measured[what] = true
		if what != "synthesizing ram" && (s.P99 == 0 || s.Booked != s.Computed) {
			r.t.Errorf("%+v", s)
		}
	}
	for _, what := range []string{"synthesizing ram", "synthesizing shm", "proving ram"} {
		if !measured[what] {
			r.t.Errorf("%s is not measured", what)
		}
	}
}

// B43: a second node on the same host, with a spill folder of its own, does not get the memory that the first has: its
// worker ends and names who has it. With parts that fit together both work.
func TestB43TwoNodesOfAHostDoNotClaimTheSameMemory(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.startCoordinator()
	shared := "memory.claims=" + filepath.Join(t.TempDir(), "claims")
	part := []string{shared, "memory.ram_max=1500MiB", "memory.shm_max=64MiB"}
	first, second := r.addNode("n1"), r.addNode("n2")
	first.startSynth(part...)
	first.startGPU(part...)
	until(t, "the first node is ready", func() bool {
		v := r.view()
		return v != nil && v.Ready
	})
	refused := second.startSynth(shared)
	select {
	case <-refused.done:
	case <-time.After(patience):
		t.Fatal("the second node's worker does not end")
	}
	if text := refused.log.String(); !strings.Contains(text, "node n2 cannot claim all of ram") ||
		!strings.Contains(text, "node n1") || !strings.Contains(text, first.spill) {
		t.Errorf("it says %s", text)
	}
	second.startSynth(part...)
	second.startGPU(part...)
	r.ready()
	r.submit(1, 2, 3)
	r.waitDone()
}
