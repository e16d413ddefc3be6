package e2e_test

import (
	"syscall"
	"testing"

	"github.com/proofrack/proofrack/shared/job"
)

// lost counts a partition's attempts that were lost with their worker.
func lost(p *job.Partition) (count int) {
	for _, a := range p.Attempts {
		if a.Outcome == job.OutcomeLost {
			count++
		}
	}
	return count
}

// kill -9 of the synthesis worker at each point of its path. B71: its bytes come back; B83: what it left does not
// hinder the next one.
func TestB71B83SynthWorkerIsKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	// What is sealed is proved all the same.
	sealed := map[string]bool{"synth.after-seal": true, "synth.after-publish": true, "synth.before-ack": true}
	for _, point := range []string{
		"synth.after-claim", "handoff.after-create", "handoff.after-size", "synth.mid-write", "handoff.before-seal",
		"synth.after-seal", "synth.after-publish", "synth.before-ack",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			if sealed[point] {
				r.calm() // it is there again before the lease ends
			}
			r.startCoordinator()
			n := r.addNode("n1")
			n.startGPU()
			victim := n.startSynth(r.hooked("kill@" + point)...)
			r.ready()
			j := r.submit(1, 2)
			if pid := r.reached(point + "#1"); pid != victim.pid() {
				t.Fatalf("process %d came by %s, the worker is %d", pid, point, victim.pid())
			}
			victim.killed()
			n.startSynth()
			r.waitDone()
			sum := 0
			for _, p := range r.record(j).Partitions {
				sum += lost(&p)
				if lost(&p) > 1 {
					t.Errorf("one kill cost more than an attempt: %+v", p.Attempts)
				}
			}
			if sum > 1 || sealed[point] && sum > 0 {
				t.Errorf("one kill cost %d attempts: %+v", sum, r.record(j).Partitions)
			}
			r.checkQuiet()
		})
	}
}

// kill -9 of the engine in mid-proof: it costs one attempt, the worker goes on.
func TestEngineIsKilledInMidProof(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.startCoordinator()
	n := r.addNode("n1")
	n.startSynth()
	worker := n.startGPU(r.hooked("kill@gpu.mid-proof")...)
	r.ready()
	j := r.submit(1)
	if pid := r.reached("gpu.mid-proof#1"); pid == worker.pid() {
		t.Fatal("it was the worker that was killed, not its engine")
	}
	r.waitDone()
	if got := r.record(j).Partitions[0].Attempts; len(got) != 2 || got[0].Outcome == job.OutcomeOK || got[0].Fault == nil {
		t.Errorf("attempts %+v", got)
	}
	select {
	case <-worker.done:
		t.Error("the worker ended with its engine")
	default:
	}
	r.checkQuiet()
}

// kill -9 of the GPU worker in mid-proof: its engine goes too, its bytes come back (B71).
func TestB71GPUWorkerIsKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		"gpu.after-fetch", "handoff.before-map", "gpu.mid-proof", "gpu.after-proof", "gpu.after-result", "gpu.before-free",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			made := point == "gpu.after-result" || point == "gpu.before-free"
			if made {
				r.calm() // it is there again before the lease ends
			}
			r.startCoordinator()
			n := r.addNode("n1")
			n.startSynth()
			action := "kill@"
			if point == "gpu.mid-proof" {
				action = "pause@" // the engine is there; the worker is killed from outside
			}
			victim := n.startGPU(r.hooked(action + point)...)
			r.ready()
			j := r.submit(1, 2)
			pid := r.reached(point + "#1")
			engines := children(victim.pid())
			if action == "pause@" {
				victim.kill()
			}
			victim.killed()
			if action == "pause@" {
				until(t, "the engine is gone", func() bool { return syscall.Kill(pid, 0) != nil })
			}
			for _, engine := range engines {
				until(t, "no engine is left", func() bool { return syscall.Kill(engine, 0) != nil })
			}
			n.startGPU()
			r.waitDone()
			sum := 0
			for _, p := range r.record(j).Partitions {
				sum += lost(&p)
				if lost(&p) > 1 {
					t.Errorf("one kill cost more than an attempt: %+v", p.Attempts)
				}
			}
			// A proof that was made is sent by the next worker.
			if made && sum > 0 {
				t.Errorf("a proof that was made was lost: %+v", r.record(j).Partitions)
			}
			r.checkQuiet()
		})
	}
}

// B34: a worker is frozen past its lease and wakes up. Its bytes stay booked meanwhile, the other node does the work,
// and what the sleeper does afterwards changes nothing (invariants 1 and 5).
func TestB34FrozenWorkerWakesUp(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.startCoordinator()
	n1 := r.addNode("n1")
	n1.startSynth()
	n1.startGPU(r.hooked("pause@gpu.mid-proof")...)
	r.ready()
	j := r.submit(1)
	engine := r.reached("gpu.mid-proof#1")
	sleepers := []int{n1.gpu.pid(), engine}
	for _, pid := range sleepers {
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, pid := range sleepers {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	})
	r.letGo("gpu.mid-proof#1")
	n2 := r.addNode("n2")
	n2.startSynth()
	n2.startGPU()
	r.waitDone()
	record := r.record(j)
	if p := record.Partitions[0]; p.Node != "n2" || len(p.Attempts) != 2 || lost(&p) != 1 {
		t.Fatalf("partition %+v", p)
	}
	before, err := r.client.Result(t.Context(), record)
	r.check(err)
	until(t, "the sleeper's bytes are in limbo", func() bool {
		b := r.book("n1")
		if b != nil && b.Closed == "" && len(b.Entries) != 1 {
			t.Fatalf("the sleeper's bytes are not booked any more: %+v", b)
		}
		return b != nil && b.Closed == "" && b.Entries[0].Limbo
	})
	if attemptsIn(n1, "book") == "" || namesIn(n1, "seg") == "" {
		t.Error("the sleeper's booking or segment is gone while it sleeps")
	}
	for _, pid := range sleepers {
		r.check(syscall.Kill(pid, syscall.SIGCONT))
	}
	r.checkQuiet()
	after, err := r.client.Result(t.Context(), r.record(j))
	r.check(err)
	if string(before) != string(after) {
		t.Error("the stored proof changed after the job was done")
	}
}

// B84: both workers are killed by turns in mid-work; nothing piles up in the spill folder.
func TestB84KilledByTurnsNothingPilesUp(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.startCoordinator()
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU()
	r.ready()
	for i := range uint64(8) {
		r.hooks = t.TempDir() // hooks fire once for each folder
		victim, restart := n.synth, n.startSynth
		hooks := r.hooked("kill@synth.mid-write")
		if i%2 == 1 {
			victim, restart, hooks = n.gpu, n.startGPU, r.hooked("kill@gpu.after-proof")
		}
		victim.kill()
		victim = restart(hooks...)
		r.submit(i)
		victim.killed()
		restart()
		r.waitDone()
		until(t, "no more than some segments are left", func() bool {
			return len(entries(n, "seg"))+len(entries(n, "pool")) <= 4
		})
	}
	r.checkQuiet()
}
