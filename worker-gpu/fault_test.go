//go:build toy

package workergpu_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

// B01, second part: bytes put straight on the queue, and an input that only synthesis finds bad.
func TestB01BadInputOnTheQueueIsTriedOnce(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.startSynth()
	r.ready(wire.RoleSynth)
	if _, err := r.bus.Publish(t.Context(), bus.Message{
		Subject: wire.SynthSubject(node), ID: "raw", Data: []byte(`{"SectorNum": 1, "SectorSize": 2048}x`),
	}); err != nil {
		t.Fatal(err)
	}
	dead, err := r.bus.Log(t.Context(), wire.StreamDLQ)
	if err != nil {
		t.Fatal(err)
	}
	r.wait("the message is a dead letter", func() bool {
		m, err := dead.Next(t.Context(), wire.DLQSubject("message"), 1)
		return err == nil && strings.Contains(string(m.Data), "SectorNum") && m.Header["Reason"] != ""
	})
	for name, data := range map[string][]byte{
		"cut": toy.Slice(1)[:100], "not canonical": append([]byte{0xff}, toy.Slice(1)[1:]...), "none": {},
	} {
		id := r.job(1)
		slice := r.putSlice(id, data)
		a := r.claimWith(id, device, func(task *wire.SynthTask) { task.Slice = slice })
		result := r.result()
		if result.Attempt != a || result.Outcome != job.OutcomeFailed || result.Fault.Kind != fault.Invalid ||
			!strings.Contains(result.Fault.Message, "bad input") {
			t.Errorf("%s: result %s, %s", name, result.Outcome, faultText(result))
		}
		r.change(id, func(record *job.Record) {
			if err := record.Fail(a, result.Fault, job.DefaultPolicy(), time.Now()); err != nil {
				t.Fatal(err)
			}
			if record.State != job.Failed {
				t.Errorf("%s: the job is %s after one attempt", name, record.State)
			}
		})
	}
	// A slice that is not what the job says is another matter: it is damaged, not bad (B78).
	id := r.job(1)
	a := r.claimWith(id, device, func(task *wire.SynthTask) { task.Slice.SHA256 = strings.Repeat("0", 64) })
	if result := r.result(); result.Attempt != a || result.Fault.Kind != fault.Corrupt {
		t.Errorf("wrong digest: %s", faultText(result))
	}
	r.clean()
}

// Each worker is killed at each of its points and started again; the same message ends the job, and nothing is left.
func TestWorkersKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for point, role := range map[string]string{
		"synth.after-claim": wire.RoleSynth, "synth.mid-write": wire.RoleSynth, "synth.before-seal": wire.RoleSynth,
		"synth.after-seal": wire.RoleSynth, "synth.after-publish": wire.RoleSynth, "synth.before-ack": wire.RoleSynth,
		"handoff.after-create": wire.RoleSynth, "handoff.after-size": wire.RoleSynth, "handoff.before-seal": wire.RoleSynth,
		"gpu.after-fetch": wire.RoleGPU, "handoff.after-map": wire.RoleGPU, "gpu.after-proof": wire.RoleGPU,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			r.makeParams()
			hooks := []string{"test.folder=" + r.hooks, "test.hooks=kill@" + point}
			start := map[string]func(...string) *process{wire.RoleSynth: r.startSynth, wire.RoleGPU: r.startGPU}
			victim := start[role](hooks...)
			other := wire.RoleGPU
			if role == wire.RoleGPU {
				other = wire.RoleSynth
			}
			start[other]()
			r.ready(wire.RoleSynth)
			r.ready(wire.RoleGPU)
			a := r.claim(r.job(1))
			r.wait("the worker is killed", func() bool {
				select {
				case <-victim.done:
					return true
				default:
					return false
				}
			})
			if _, ok := hook.ReachedBy(r.hooks, point+"#1"); !ok {
				t.Fatalf("the point was not reached: %v", victim.err)
			}
			if got := engines(victim); len(got) != 0 {
				r.wait("its engine is gone", func() bool { return len(engines(victim)) == 0 })
			}
			start[role]() // with the hook off: B83, the same names come again
			r.wantProof(r.result(), a, 1)
			r.clean()
			r.noResult()
		})
	}
}

// After the result is out the rest is cleaning: another process of the host does it.
func TestWorkerKilledAfterItsResult(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"gpu.after-result", "gpu.before-free"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			r.makeParams()
			r.startSynth()
			gpu := r.startGPU("test.folder="+r.hooks, "test.hooks=kill@"+point)
			r.ready(wire.RoleGPU)
			id := r.job(1)
			a := r.claim(id)
			result := r.result()
			r.wantProof(result, a, 1)
			r.change(id, func(record *job.Record) {
				if err := record.Accept(a, result.Proof, time.Now()); err != nil {
					t.Fatal(err)
				}
			})
			<-gpu.done
			r.startGPU()
			r.clean() // the message that comes again is stale by its fence, and the sealed segment has no owner
			r.noResult()
		})
	}
}

func TestFenceRaisedMeanwhileStopsTheAttempt(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"synth.after-claim", "synth.before-seal", "gpu.after-proof"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			r.makeParams()
			hooks := []string{"test.folder=" + r.hooks, "test.hooks=pause@" + point}
			r.startSynth(hooks...)
			r.startGPU(hooks...)
			r.ready(wire.RoleSynth)
			r.ready(wire.RoleGPU)
			id := r.job(1)
			old := r.claim(id)
			r.wait("the attempt pauses", func() bool { _, ok := hook.ReachedBy(r.hooks, point+"#1"); return ok })
			r.change(id, func(record *job.Record) {
				if err := record.Lose(old, "paused", job.DefaultPolicy(), time.Now()); err != nil {
					t.Fatal(err)
				}
			})
			next := r.claim(id)
			if err := hook.LetGo(r.hooks, point+"#1"); err != nil {
				t.Fatal(err)
			}
			r.wantProof(r.result(), next, 1) // not the old one's (invariant 5)
			r.clean()
			r.noResult()
		})
	}
}

// SIGSTOP for longer than the ack wait, while the fence is raised: what wakes up changes nothing, and its bytes stayed
// booked meanwhile (design section 6).
func TestStoppedWorkerWakesUpAndDropsItsWork(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	synth := r.startSynth("test.folder="+r.hooks, "test.hooks=pause@synth.before-seal")
	r.startGPU()
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	id := r.job(1)
	old := r.claim(id)
	r.wait("the attempt pauses", func() bool { _, ok := hook.ReachedBy(r.hooks, "synth.before-seal#1"); return ok })
	if err := synth.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := hook.LetGo(r.hooks, "synth.before-seal#1"); err != nil {
		t.Fatal(err)
	}
	r.change(id, func(record *job.Record) {
		if err := record.Lose(old, "lease expired", job.DefaultPolicy(), time.Now()); err != nil {
			t.Fatal(err)
		}
	})
	r.startSynth()
	next := r.claim(id)
	r.wantProof(r.result(), next, 1)
	if got := r.bookings(); len(got) != 1 || got[0] != old.String() {
		t.Errorf("bookings %v, want that of the stopped worker's attempt", got)
	}
	if err := synth.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	r.clean()
	r.noResult()
}

// NATS goes away in the middle of a proof and comes back on the same store: the proof is finished meanwhile, kept, and
// published then (design section 6).
func TestResultIsKeptWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	gpu := r.startGPU("test.folder="+r.hooks, "test.hooks=pause@gpu.mid-proof,mark@gpu.before-free")
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	id := r.job(1)
	a := r.claim(id)
	r.wait("the proof has begun", func() bool { _, ok := hook.ReachedBy(r.hooks, "gpu.mid-proof#1"); return ok })
	r.server.Stop()
	if err := hook.LetGo(r.hooks, "gpu.mid-proof#1"); err != nil {
		t.Fatal(err)
	}
	r.wait("the segment is given back although nobody has the result", func() bool { return len(r.bookings()) == 0 })
	if err := r.server.Start(); err != nil {
		t.Fatal(err)
	}
	result := r.result()
	r.wantProof(result, a, 1)
	r.clean()
	r.noResult()
	if pid, _ := hook.ReachedBy(r.hooks, "gpu.before-free#1"); pid != gpu.Process.Pid {
		t.Error("another process proved it")
	}
}

// A worker that ends while NATS is away leaves its results to the next one.
func TestResultSurvivesItsWorkerWhileNATSIsAway(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	gpu := r.startGPU("test.folder="+r.hooks, "test.hooks=pause@gpu.mid-proof")
	r.ready(wire.RoleGPU)
	a := r.claim(r.job(1))
	r.wait("the proof has begun", func() bool { _, ok := hook.ReachedBy(r.hooks, "gpu.mid-proof#1"); return ok })
	r.server.Stop()
	if err := hook.LetGo(r.hooks, "gpu.mid-proof#1"); err != nil {
		t.Fatal(err)
	}
	r.wait("the proof is done", func() bool { return len(r.bookings()) == 0 })
	if err := gpu.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-gpu.done
	if err := r.server.Start(); err != nil {
		t.Fatal(err)
	}
	r.startGPU()
	r.wantProof(r.result(), a, 1)
	r.clean()
}

func TestB55KilledWorkersMessageIsSoonTakenByAnother(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startGPU()
	victim := r.startSynth("test.folder="+r.hooks, "test.hooks=pause@synth.mid-write")
	r.ready(wire.RoleSynth)
	a := r.claim(r.job(1))
	r.wait("the attempt pauses", func() bool { _, ok := hook.ReachedBy(r.hooks, "synth.mid-write#1"); return ok })
	r.startSynth()
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r.wantProof(r.result(), a, 1)
	if took := time.Since(began); took > 3*time.Second+3*time.Second { // the ack wait and a few seconds
		t.Errorf("took %s", took)
	}
	r.clean()
}

func TestB54TwoWorkersShareTheMessages(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startGPU("prove.ahead=8")
	var workers []*process
	for range 2 {
		workers = append(workers, r.startSynth())
	}
	r.wait("both are there", func() bool {
		for _, w := range workers {
			if !strings.Contains(w.log.String(), "connected to NATS") {
				return false
			}
		}
		return r.beat(wire.RoleSynth).State == wire.StateReady
	})
	ids := map[job.Attempt]uint64{}
	for seed := range uint64(10) {
		ids[r.claim(r.job(seed))] = seed
	}
	for range ids {
		result := r.result()
		r.wantProof(result, result.Attempt, ids[result.Attempt])
		delete(ids, result.Attempt)
	}
	if len(ids) != 0 {
		t.Errorf("%d attempts have no result", len(ids))
	}
	r.noResult()
	r.clean()
}

// B85, B86: what lies under a segment's name before it is made is replaced, whatever it is, and never read.
func TestB85StaleFilesUnderTheNameAreReplaced(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(path string) error{
		"random bytes":  func(p string) error { return os.WriteFile(p, make([]byte, 4096), 0o600) },
		"B86 no bytes":  func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"B86 pipe":      func(p string) error { return syscall.Mkfifo(p, 0o600) },
		"symbolic link": func(p string) error { return os.Symlink("/etc/passwd", p) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			r.makeParams()
			r.startSynth("test.folder="+r.hooks, "test.hooks=pause@synth.after-claim")
			r.startGPU()
			r.ready(wire.RoleSynth)
			r.ready(wire.RoleGPU)
			a := r.claim(r.job(1))
			r.wait("the attempt pauses", func() bool { _, ok := hook.ReachedBy(r.hooks, "synth.after-claim#1"); return ok })
			if err := place(filepath.Join(r.spill, "seg", handoff.Name(a))); err != nil {
				t.Fatal(err)
			}
			if err := hook.LetGo(r.hooks, "synth.after-claim#1"); err != nil {
				t.Fatal(err)
			}
			r.wantProof(r.result(), a, 1)
			r.clean()
		})
	}
}

// B86: the prove task is there before the segment is complete; the reader waits for the mark.
func TestB86ReaderWaitsForTheSeal(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startGPU()
	r.startSynth("test.folder="+r.hooks, "test.hooks=pause@handoff.before-seal")
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	a := r.claim(r.job(1))
	r.wait("the writer is held before the mark", func() bool { _, ok := hook.ReachedBy(r.hooks, "handoff.before-seal#1"); return ok })
	early, err := wire.Encode(&wire.ProveTask{
		Attempt: a, Node: node, Device: device, Circuit: "toy", Segment: handoff.Name(a), Handoff: wire.HandoffSHM,
	})
	if err == nil {
		_, err = r.bus.Publish(t.Context(), bus.Message{Subject: wire.ProveSubject(node, device), ID: "early", Data: early})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.wait("the reader has the task", func() bool {
		return slices.ContainsFunc(r.beat(wire.RoleGPU).Running, func(w wire.Running) bool { return w.Attempt == a })
	})
	if err := hook.LetGo(r.hooks, "handoff.before-seal#1"); err != nil {
		t.Fatal(err)
	}
	r.wantProof(r.result(), a, 1)
	r.clean()
}

// B84: killed by turns, over many jobs, in a small space: what is left is bounded and goes.
func TestB84KilledByTurnsNothingPilesUp(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	synth, gpu := r.startSynth(), r.startGPU()
	for i := range uint64(6) {
		a := r.claim(r.job(i))
		time.Sleep(time.Duration(i) * 15 * time.Millisecond) // somewhere on the way
		if i%2 == 0 {
			_ = synth.Process.Kill()
			<-synth.done
			synth = r.startSynth()
		} else {
			_ = gpu.Process.Kill()
			<-gpu.done
			gpu = r.startGPU()
		}
		if n := len(r.segments()); n > 4 {
			t.Errorf("%d segments after %d kills", n, i+1)
		}
		r.wantProof(r.result(), a, i)
	}
	r.clean()
}
