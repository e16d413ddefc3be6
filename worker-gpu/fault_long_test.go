//go:build toy && long

package workergpu_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// Each worker is killed at each of its points and started again; the same message ends the job, and nothing is left.
func TestLongWorkersKilledAtEachPoint(t *testing.T) {
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
func TestLongWorkerKilledAfterItsResult(t *testing.T) {
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

// SIGSTOP for longer than the ack wait, while the fence is raised: what wakes up changes nothing, and its bytes stayed
// booked meanwhile (design section 6).
func TestLongStoppedWorkerWakesUpAndDropsItsWork(t *testing.T) {
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

func TestLongB55KilledWorkersMessageIsSoonTakenByAnother(t *testing.T) {
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
	if took := time.Since(began); took > 3*time.Second+20*time.Second { // the ack wait, and what a crowded machine takes
		t.Errorf("took %s", took)
	}
	r.clean()
}

func TestLongB54TwoWorkersShareTheMessages(t *testing.T) {
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
	for range 10 {
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
func TestLongB85StaleFilesUnderTheNameAreReplaced(t *testing.T) {
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

// B84: killed by turns, over many jobs, in a small space: what is left is bounded and goes.
func TestLongB84KilledByTurnsNothingPilesUp(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	synth, gpu := r.startSynth(), r.startGPU()
	for i := range uint64(6) {
		id := r.job(i)
		a := r.claim(id)
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
		result := r.result()
		r.wantProof(result, a, i)
		r.change(id, func(record *job.Record) { // what was done twice meanwhile is stale from now on
			if err := record.Accept(a, result.Proof, time.Now()); err != nil {
				t.Fatal(err)
			}
		})
	}
	r.clean()
}

// A booking that cannot be removed, since another process holds the node's book, changes nothing of the outcome: the
// success is told alone, and the booking goes once the book is free.
func TestLongHeldBookDoesNotTurnASuccessIntoAFailure(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	gpu := r.startGPU("test.folder="+r.hooks, "test.hooks=pause@gpu.before-free")
	r.ready(wire.RoleGPU)
	id := r.job(1)
	a := r.claim(id)
	r.wantProof(r.result(), a, 1)
	r.wait("the attempt pauses", func() bool { return r.reached("gpu.before-free#1") })
	lock, err := os.OpenFile(filepath.Join(r.view, "book", "lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	r.waitFor(time.Minute, "the book is locked", func() bool {
		return unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
	})
	r.letGo("gpu.before-free#1")
	r.wait("the removal fails", func() bool { return strings.Contains(gpu.log.String(), "booking stays for now") })
	r.noResult()
	if got := r.bookings(); len(got) != 1 {
		t.Errorf("bookings %v, want one", got)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	r.clean()
	r.noResult()
}
