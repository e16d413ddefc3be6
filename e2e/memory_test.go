package e2e_test

import (
	"context"
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

	var told *wire.DriftEvent
	for told == nil {
		select {
		case e := <-drifts:
			if e.Size.Stage == job.Synthesizing && e.Size.Pool == ledger.PoolRAM {
				told = e
			}
		case <-time.After(patience):
			t.Fatalf("no drift is told: %+v", r.memory())
		}
	}
	s := told.Size
	if s.Drift != wire.DriftOver || s.Computed != said || s.P99 < really || s.P99 > really*5/4 || s.Booked < s.P99 {
		t.Errorf("told: %+v", s)
	}
	// The segments, and what the engine has, are within what is said of them.
	measured := map[string]bool{}
	for _, s := range r.memory().Sizes {
		t.Logf("%s %s: computed %s, p50 %s, p99 %s of %d, booked %s", s.Stage, s.Pool, s.Computed, s.P50, s.P99, s.Samples,
			s.Booked)
		measured[string(s.Stage)+" "+string(s.Pool)] = true
		if (s.Stage != told.Size.Stage || s.Pool != told.Size.Pool) && (s.P99 == 0 || s.Booked != s.Computed) {
			t.Errorf("%+v", s)
		}
	}
	for _, what := range []string{"synthesizing ram", "synthesizing shm", "proving ram"} {
		if !measured[what] {
			t.Errorf("%s is not measured", what)
		}
	}

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
