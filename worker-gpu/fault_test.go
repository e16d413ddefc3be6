//go:build toy

package workergpu_test

import (
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
	r.wait("the writer is held before the mark", func() bool { return r.reached("handoff.before-seal#1") })
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

// B37: the job's record is deleted in mid-run: the worker releases everything and goes on.
func TestB37RecordIsLostInMidRun(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	synth := r.startSynth("test.folder="+r.hooks, "test.hooks=pause@synth.before-seal")
	r.startGPU()
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	id := r.job(1)
	r.claim(id)
	r.wait("the attempt pauses", func() bool { return r.reached("synth.before-seal#1") })
	if err := r.kv.Delete(t.Context(), wire.JobKey(id), 0); err != nil {
		t.Fatal(err)
	}
	r.letGo("synth.before-seal#1")
	r.clean()
	r.noResult()
	next := r.claim(r.job(2))
	r.wantProof(r.result(), next, 2)
	if !strings.Contains(synth.log.String(), "orphaned") {
		t.Error("the log does not say that the attempt was orphaned")
	}
}

// F17: markers of tasks are carried out by workers that are told to, and by no others.
func TestMarkersOfTasks(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startGPU()
	first := r.startSynth()
	r.ready(wire.RoleSynth)
	mark := func(text string) func(*wire.SynthTask) { return func(task *wire.SynthTask) { task.TestMarker = text } }
	ignored := r.claimWith(r.job(1), device, mark("kill"))
	r.wantProof(r.result(), ignored, 1)
	if err := first.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.ends(first, time.Minute)
	victim := r.startSynth("test.markers=true")
	for marker, kind := range map[string]fault.Kind{
		"error": fault.Internal, "invalid": fault.Invalid, "x": fault.Internal,
	} {
		a := r.claimWith(r.job(1), device, mark(marker))
		if result := r.result(); result.Attempt != a || result.Outcome != job.OutcomeFailed || result.Fault.Kind != kind {
			t.Errorf("marker %s: %s, %s", marker, result.Outcome, faultText(result))
		}
	}
	r.clean()
	id := r.job(1)
	killer := r.claimWith(id, device, mark("kill"))
	<-victim.done
	if status, ok := victim.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("worker ended with %v", victim.err)
	}
	r.change(id, func(record *job.Record) {
		if err := record.Lose(killer, "signal: killed", job.DefaultPolicy(), time.Now()); err != nil {
			t.Fatal(err)
		}
	})
	r.startSynth("test.markers=true")
	r.clean()
	r.noResult()
}
