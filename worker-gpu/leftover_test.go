//go:build toy

package workergpu_test

import (
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// patient has messages of dead workers come again so late that no test waits for them.
const patient = "worker.ack_wait=10m"

// kill ends a program at once and waits until it is gone.
func (p *process) kill(t *testing.T) {
	t.Helper()
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-p.done
}

// kill -9 of a GPU worker in mid-proof: the next one goes on from the sealed segments, those that waited beside it too,
// long before the messages come again. Nothing is synthesized anew.
func TestKilledWorkersSegmentsAreProvedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth("test.folder="+r.hooks, "test.hooks=mark@synth.after-seal#1,mark@synth.after-seal#4")
	victim := r.startGPU(patient, "test.folder="+r.hooks, "test.hooks=pause@gpu.mid-proof")
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	seeds := map[job.Attempt]uint64{}
	for seed := range uint64(3) {
		seeds[r.claim(r.job(seed))] = seed
	}
	r.wait("the proof has begun", func() bool { return r.reached("gpu.mid-proof#1") })
	r.wait("all three are held by the worker", func() bool { return len(r.beat(wire.RoleGPU).Running) == 3 })
	victim.kill(t)
	began := time.Now()
	r.startGPU(patient)
	for range 3 {
		result := r.result()
		r.wantProof(result, result.Attempt, seeds[result.Attempt])
		delete(seeds, result.Attempt)
	}
	t.Logf("from the start of the next worker to three proofs: %s (messages come again after 10 min)", time.Since(began))
	if len(seeds) != 0 || r.reached("synth.after-seal#4") {
		t.Errorf("left: %v; synthesized anew: %v", seeds, r.reached("synth.after-seal#4"))
	}
	r.wait("no booking and no segment is left", func() bool { return len(r.bookings())+len(r.segments()) == 0 })
	r.noResult()
}

// When the message comes again later, it is only acknowledged.
func TestMessageOfAKilledWorkerJoinsTheNextOnesRun(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	victim := r.startGPU("test.folder="+r.hooks, "test.hooks=pause@gpu.mid-proof")
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	a := r.claim(r.job(1))
	r.wait("the proof has begun", func() bool { return r.reached("gpu.mid-proof#1") })
	victim.kill(t)
	r.startGPU()
	r.wantProof(r.result(), a, 1)
	r.clean()
	r.noResult()
}

// kill -9 of the synthesis worker between seal and message: nobody has to announce the segment.
func TestSealedSegmentOfAKilledSynthesisIsProvedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	victim := r.startSynth(patient, "test.folder="+r.hooks, "test.hooks=kill@synth.after-seal")
	r.startGPU()
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	a := r.claim(r.job(1))
	<-victim.done
	r.wantProof(r.result(), a, 1)
	r.wait("no booking and no segment is left", func() bool { return len(r.bookings())+len(r.segments()) == 0 })
}

// Invariant 5: what a dead worker left is not proved when the fence was raised meanwhile.
func TestStaleSegmentOfAKilledWorkerIsNotProved(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	victim := r.startGPU(patient, "test.folder="+r.hooks, "test.hooks=pause@gpu.mid-proof")
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	id := r.job(1)
	a := r.claim(id)
	r.wait("the proof has begun", func() bool { return r.reached("gpu.mid-proof#1") })
	victim.kill(t)
	r.change(id, func(record *job.Record) {
		if err := record.Lose(a, "its lease ended", job.DefaultPolicy(), time.Now()); err != nil {
			t.Fatal(err)
		}
	})
	r.startGPU(patient, "test.folder="+r.hooks, "test.hooks=mark@gpu.after-proof#1")
	r.wait("no booking and no segment is left", func() bool { return len(r.bookings())+len(r.segments()) == 0 })
	r.noResult()
	if r.reached("gpu.after-proof#1") {
		t.Error("it was proved")
	}
}

// B45: a segment that kills each worker that goes on from it is lost after the second, and told.
func TestB45SegmentThatKillsItsWorkersIsLost(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	r.ready(wire.RoleSynth)
	a := r.claim(r.job(1))
	for range 2 {
		victim := r.startGPU(patient, "test.folder="+t.TempDir(), "test.hooks=kill@gpu.after-proof")
		<-victim.done
	}
	r.startGPU(patient)
	result := r.result()
	if result.Attempt != a || result.Outcome != job.OutcomeLost || !strings.Contains(faultText(result), "2 workers died") {
		t.Errorf("result %s of %s: %s", result.Outcome, result.Attempt, faultText(result))
	}
}
