package e2e_test

import (
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/metrics"
	"github.com/proofrack/proofrack/shared/wire"
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

// struck are the settings of a fault in the midst of a job: the worker stops at the second visit of a point, and the
// room of a node is for two segments.
func (r *rack) struck(point string) []string {
	r.room = 2
	return r.hooked("pause@" + point + "#2")
}

// kill -9 of the synthesis worker at each point of its path, in the second partition, when the first one is finished.
// B71: its bytes come back; B83: what it left does not hinder the next one.
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
			hooks := r.struck(point)
			r.startCoordinator()
			n := r.addNode("n1")
			n.startGPU()
			victim := n.startSynth(hooks...)
			r.ready()
			j := r.submit(1, 2, 3)
			if pid := r.reached(point + "#2"); pid != victim.pid() {
				t.Fatalf("process %d came by %s, the worker is %d", pid, point, victim.pid())
			}
			r.oneFinished(j)
			victim.kill()
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

// kill -9 of the engine in mid-proof: it costs one attempt of what it proved, the worker goes on.
func TestEngineIsKilledInMidProof(t *testing.T) {
	t.Parallel()
	r, j := pausedInProof(t)
	worker := r.nodes[0].gpu
	engine := r.reached(heldProof)
	if engine == worker.pid() {
		t.Fatal("it is the worker that is held, not its engine")
	}
	r.check(syscall.Kill(engine, syscall.SIGKILL))
	r.waitDone()
	got := r.record(j).Partitions[j.held].Attempts
	if len(got) != 2 || got[0].Outcome == job.OutcomeOK || got[0].Fault == nil {
		t.Errorf("attempts %+v", got)
	}
	select {
	case <-worker.done:
		t.Error("the worker ended with its engine")
	default:
	}
	r.checkQuiet()
}

// kill -9 of the GPU worker at each point of its path, in the second partition, when the first one is finished: its
// engine goes too, its bytes come back (B71).
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
			hooks := r.struck(point)
			r.startCoordinator()
			n := r.addNode("n1")
			n.startSynth(r.hooked("pause@" + secondClaim)...)
			victim := n.startGPU(hooks...)
			r.ready()
			j := r.submit(1, 2, 3)
			r.firstAlone(j)
			pid := r.reached(point + "#2")
			engines := children(victim.pid())
			wanted := []int{victim.pid()}
			if point == "gpu.mid-proof" {
				wanted = engines
			}
			if !slices.Contains(wanted, pid) {
				t.Fatalf("process %d came by %s, the worker is %d, its engines %v", pid, point, victim.pid(), engines)
			}
			victim.kill()
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

// B34: a worker is frozen past its lease and wakes up, with a finished partition in the job. Its bytes stay booked all
// the while, the other node does the work, and what the sleeper does afterwards is refused and changes nothing
// (invariants 1 and 5).
func TestB34FrozenWorkerWakesUp(t *testing.T) {
	t.Parallel()
	for role, point := range map[string]string{wire.RoleSynth: "synth.mid-write", wire.RoleGPU: "gpu.mid-proof"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			page := scraped{role, freePort(t)}
			hooks := append(r.struck(point), "metrics.listen="+page.address)
			r.startCoordinator()
			n1 := r.addNode("n1")
			if role == wire.RoleSynth {
				n1.startSynth(hooks...)
				n1.startGPU()
			} else {
				n1.startSynth(r.hooked("pause@" + secondClaim)...)
				n1.startGPU(hooks...)
			}
			r.ready()
			j := r.submit(1, 2)
			if role == wire.RoleGPU {
				r.firstAlone(j)
			}
			point += "#2"
			sleeper, inside := n1.gpu, r.reached(point)
			if role == wire.RoleSynth {
				sleeper = n1.synth
			}
			r.oneFinished(j)
			stale := r.record(j).Attempt(1)
			r.frozenPastItsLease(j, stale, func() { r.letGo(point) }, sleeper.pid(), inside)
			until(t, "what the sleeper went on with is refused", func() bool {
				return page.value(t, metrics.FencesRefused) > 0
			})
			r.checkQuiet()
			select {
			case <-sleeper.done:
				t.Errorf("%s ended", sleeper.name)
			default:
			}
		})
	}
}

// frozenPastItsLease stops processes of the first node that hold an attempt, until the second node has done the job and
// the attempt is in limbo, and lets them go on.
func (r *rack) frozenPastItsLease(j *submitted, stale job.Attempt, let func(), sleepers ...int) {
	r.t.Helper()
	signal := func(s syscall.Signal) (err error) {
		for _, pid := range sleepers {
			err = errors.Join(err, syscall.Kill(pid, s))
		}
		return err
	}
	r.check(signal(syscall.SIGSTOP))
	r.t.Cleanup(func() { _ = signal(syscall.SIGCONT) })
	let()
	n1, n2 := r.nodes[0], r.addNode("n2")
	n2.startSynth()
	n2.startGPU()
	limbo := false
	look := func() { // is all that it holds still booked?
		r.t.Helper()
		book, seg := attemptsIn(n1, "book"), namesIn(n1, "seg")
		if !strings.Contains(book, stale.String()) || !strings.Contains(seg, stale.String()) {
			r.t.Fatalf("the sleeper's booking or segment is gone while it sleeps: %q, %q", book, seg)
		}
		if b := r.book(n1.name); b != nil && b.Closed == "" {
			e := b.Entry(stale)
			if e == nil {
				r.t.Fatalf("the sleeper's bytes are not booked any more: %+v", b)
			}
			limbo = e.Limbo
		}
	}
	until(r.t, "the other node has done the job, and the sleeper's bytes are in limbo", func() bool {
		look()
		return r.record(j).State.Ended() && limbo
	})
	record := r.record(j)
	if p := record.Partitions[stale.Partition]; p.Node != "n2" || len(p.Attempts) != 2 || lost(&p) != 1 {
		r.t.Fatalf("partition %+v", p)
	}
	before, err := r.client.Result(r.t.Context(), record)
	r.check(err)
	look()
	r.check(signal(syscall.SIGCONT))
	r.gone("the sleeper gives its bytes back", func() string { return attemptsIn(n1, "book") })
	after, err := r.client.Result(r.t.Context(), r.record(j))
	r.check(err)
	if string(before) != string(after) {
		r.t.Error("the stored proof changed after the job was done")
	}
}

// B84: both workers are killed by turns in mid-work; nothing piles up in the spill folder.
func TestB84KilledByTurnsNothingPilesUp(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.room = 2
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
