//go:build toy && long

package workergpu_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// B109: the first SIGTERM lets the attempt finish and takes nothing new, SIGUSR1 hands it back, at no cost.
func TestLongB109StopInEachStage(t *testing.T) {
	t.Parallel()
	for point, role := range map[string]string{
		"synth.after-claim": wire.RoleSynth, "synth.mid-write": wire.RoleSynth, "synth.before-seal": wire.RoleSynth,
		"gpu.after-fetch": wire.RoleGPU, "gpu.mid-proof": wire.RoleGPU,
	} {
		for signal, want := range map[syscall.Signal]job.Outcome{
			syscall.SIGTERM: job.OutcomeOK, syscall.SIGUSR1: job.OutcomeHandedBack,
		} {
			t.Run(point+" "+signal.String(), func(t *testing.T) {
				t.Parallel()
				r := newRack(t)
				r.makeParams()
				hooks := []string{"test.folder=" + r.hooks, "test.hooks=pause@" + point, "engine.stop_max=2s"}
				processes := map[string]*process{wire.RoleGPU: nil, wire.RoleSynth: nil}
				processes[wire.RoleSynth], processes[wire.RoleGPU] = r.startSynth(hooks[:2]...), r.startGPU(hooks...)
				r.ready(wire.RoleSynth)
				r.ready(wire.RoleGPU)
				a := r.claim(r.job(1))
				r.wait("the attempt pauses", func() bool { _, ok := hook.ReachedBy(r.hooks, point+"#1"); return ok })
				p := processes[role]
				if err := p.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
				if want == job.OutcomeOK {
					r.wait("it says that it leaves", func() bool { return r.beat(role).State == wire.StateDraining })
					if err := hook.LetGo(r.hooks, point+"#1"); err != nil {
						t.Fatal(err)
					}
				}
				result := r.result()
				if result.Outcome != want || result.Attempt != a {
					t.Errorf("result %s, %s", result.Outcome, faultText(result))
				}
				r.ends(p, 15*time.Second)
				r.noResult()
				r.clean()
			})
		}
	}
}

// A drain ordered by the coordinator: the worker finishes and takes nothing new until the order is taken back.
func TestLongDrainAndUndrain(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	r.startGPU()
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	r.order(wire.ControlDrain)
	r.wait("both drain", func() bool {
		return r.beat(wire.RoleSynth).State == wire.StateDraining && r.beat(wire.RoleGPU).State == wire.StateDraining
	})
	a := r.claim(r.job(1))
	time.Sleep(700 * time.Millisecond) // more than one pull
	if got := r.bookings(); len(got) != 0 {
		t.Errorf("bookings %v while draining", got)
	}
	r.order(wire.ControlUndrain)
	r.wantProof(r.result(), a, 1)
	r.clean()
}

// B38: a cancelled attempt stops in every stage, and nothing of it is left.
func TestLongB38CancelInEachStage(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"synth.mid-write", "synth.before-seal", "gpu.after-fetch", "gpu.mid-proof"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			r.makeParams()
			hooks := []string{"test.folder=" + r.hooks, "test.hooks=pause@" + point}
			r.startSynth(hooks...)
			r.startGPU(append(hooks, "engine.stop_max=1s")...)
			r.ready(wire.RoleSynth)
			r.ready(wire.RoleGPU)
			id := r.job(1)
			a := r.claim(id)
			r.wait("the attempt pauses", func() bool { _, ok := hook.ReachedBy(r.hooks, point+"#1"); return ok })
			r.change(id, func(record *job.Record) {
				if err := record.Cancel(nil, time.Now()); err != nil {
					t.Fatal(err)
				}
			})
			data, err := wire.Encode(&wire.Control{Node: node, Kind: wire.ControlCancel, Attempt: &a})
			if err == nil {
				err = r.bus.Send(t.Context(), bus.Message{Subject: wire.ControlSubject(node), Data: data})
			}
			if err != nil {
				t.Fatal(err)
			}
			r.clean()
			r.noResult()
			b := r.claim(r.job(2)) // the workers go on
			r.wantProof(r.result(), b, 2)
		})
	}
}
