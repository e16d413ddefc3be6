//go:build toy

package workergpu_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

func paramsFile(r *rack) string {
	return filepath.Join(r.params, toy.Circuit().ParamsName()+srs.ParamsExtension)
}

// circuit is what the device says of the toy.
func (r *rack) circuit() wire.DeviceCircuit {
	for _, d := range r.beat(wire.RoleGPU).Devices {
		for _, c := range d.Circuits {
			return c
		}
	}
	return wire.DeviceCircuit{}
}

func TestB06MissingParametersAreNamedAndUsedWhenTheyCome(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.startSynth()
	r.startGPU()
	r.ready(wire.RoleSynth)
	r.wait("the missing file is named", func() bool {
		b, c := r.beat(wire.RoleGPU), r.circuit()
		return b.State == wire.StateNotReady && strings.Contains(b.Reason, paramsFile(r)) &&
			!c.Ready && strings.Contains(c.Missing, paramsFile(r))
	})
	a := r.claim(r.job(1)) // a coordinator would not; it waits sealed, and no attempt is used up
	r.wait("the segment is sealed", func() bool {
		return len(r.segments()) == 1 && len(r.beat(wire.RoleSynth).Running) == 0
	})
	r.noResult()
	r.makeParams()
	r.wantProof(r.result(), a, 1)
	r.ready(wire.RoleGPU)
	r.clean()
}

// simulated starts a GPU worker with one simulated device named cpu.
func (r *rack) simulated(json string, settings ...string) *process {
	return r.startGPU(append([]string{"simulate={cpu='" + json + "'}"}, settings...)...)
}

func TestB12OneFailureDoesNotPoisonTheWorker(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{
		"oom": "out of device memory: need", "panic": "panic: simdevice: ordered panic", "kill": "signal: killed",
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			r.makeParams()
			r.startSynth()
			r.simulated(fmt.Sprintf(`{"memory_bytes":"1000B","job_bytes":"900B","failures":["%s@start#1"]}`, how))
			r.ready(wire.RoleGPU)
			first := r.claim(r.job(1))
			result := r.result()
			if result.Attempt != first || result.Outcome != job.OutcomeFailed || !result.BlameDevice ||
				!strings.Contains(faultText(result), want) {
				t.Fatalf("result %s, %s", result.Outcome, faultText(result))
			}
			for seed := range uint64(5) {
				r.wantProof(r.result2(r.claim(r.job(seed))), r.last, seed)
			}
			r.clean()
		})
	}
}

// result2 waits for the result of an attempt that was just claimed.
func (r *rack) result2(a job.Attempt) wire.Result {
	r.t.Helper()
	r.last = a
	return r.result()
}

// Somebody else kills the engine in the middle of a proof; the worker lives and the job ends in the next attempt.
func TestB26EngineKilledInMidProof(t *testing.T) {
	t.Parallel()
	for _, s := range []struct {
		signal syscall.Signal
		want   string
	}{
		{syscall.SIGKILL, "signal: killed"}, {syscall.SIGABRT, "SIGABRT"}, {syscall.SIGSEGV, "SIGSEGV"},
		{syscall.SIGBUS, "SIGBUS"},
	} {
		t.Run(s.signal.String(), func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			r.makeParams()
			r.startSynth()
			gpu := r.startGPU("test.folder="+r.hooks, "test.hooks=pause@gpu.mid-proof")
			r.ready(wire.RoleGPU)
			id := r.job(1)
			a := r.claim(id)
			var pid int
			r.wait("the engine is in the middle of a proof", func() bool {
				var ok bool
				pid, ok = hook.ReachedBy(r.hooks, "gpu.mid-proof#1")
				return ok
			})
			if got := engines(gpu); len(got) != 1 || got[0] != pid {
				t.Fatalf("engines %v, the hook was reached by %d", got, pid)
			}
			if err := syscall.Kill(pid, s.signal); err != nil {
				t.Fatal(err)
			}
			result := r.result()
			if result.Attempt != a || result.Outcome != job.OutcomeFailed || result.Fault.Kind != fault.Device ||
				!strings.Contains(result.Fault.Message, s.want) {
				t.Fatalf("result %s, %s", result.Outcome, faultText(result))
			}
			if s.signal != syscall.SIGKILL && !strings.Contains(result.Fault.Message, "last words") {
				t.Errorf("no last words: %s", result.Fault.Message)
			}
			r.change(id, func(record *job.Record) {
				if err := record.Fail(a, result.Fault, job.DefaultPolicy(), time.Now()); err != nil {
					t.Fatal(err)
				}
			})
			r.wantProof(r.result2(r.claim(id)), r.last, 1)
			r.clean()
		})
	}
}

func TestB22BothDevicesAreUsed(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth("synth.slots=2")
	const named = `{"uuid":"%s","numa_node":%d}`
	r.startGPU("prove.devices=sim-a,sim-b", fmt.Sprintf("simulate={sim-a='%s', sim-b='%s'}",
		fmt.Sprintf(named, "SIM-a", 0), fmt.Sprintf(named, "SIM-b", 1)),
		"test.folder="+r.hooks, "test.hooks=pause@gpu.mid-proof")
	r.ready(wire.RoleGPU)
	uuids := map[job.Attempt]string{}
	for i := range uint64(6) {
		to, uuid := job.Device("sim-a"), "SIM-a"
		if i%2 == 1 {
			to, uuid = "sim-b", "SIM-b"
		}
		uuids[r.claimWith(r.job(i), to, func(*wire.SynthTask) {})] = uuid
	}
	r.wait("both devices prove at once", func() bool {
		b := r.beat(wire.RoleGPU)
		return len(b.Devices) == 2 && b.Devices[0].Pending > 0 && b.Devices[1].Pending > 0
	})
	r.letGo("gpu.mid-proof#1") // of both engines
	for range uuids {
		result := r.result()
		if result.Outcome != job.OutcomeOK || result.DeviceUUID != uuids[result.Attempt] { // B21: by identity
			t.Errorf("result %s of %s on %s, want %s",
				faultText(result), result.Attempt, result.DeviceUUID, uuids[result.Attempt])
		}
	}
	r.clean()
}

// What proofs of a circuit share is booked while it is kept, and goes when the coordinator says so.
func TestEvictGivesBackWhatACircuitKeeps(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	gpu := r.startGPU()
	r.ready(wire.RoleGPU)
	a := r.claim(r.job(1))
	r.wantProof(r.result(), a, 1)
	names := func() (all []string) {
		if h := r.host(); h != nil {
			for _, asset := range h.Assets {
				all = append(all, asset.Name)
			}
		}
		slices.Sort(all)
		return all
	}
	r.wait("the assets are booked", func() bool {
		return slices.Equal(names(), []string{"artifact:toy", "engine:cpu.toy"})
	})
	data, err := wire.Encode(&wire.Control{Node: node, Kind: wire.ControlEvict, Asset: "engine:cpu.toy"})
	if err == nil {
		err = r.bus.Send(t.Context(), bus.Message{Subject: wire.ControlSubject(node), Data: data})
	}
	if err != nil {
		t.Fatal(err)
	}
	r.wait("no asset is left", func() bool { return len(names()) == 0 })
	before := engines(gpu)
	b := r.claim(r.job(2))
	r.wantProof(r.result(), b, 2)
	if after := engines(gpu); !slices.Equal(before, after) {
		t.Errorf("engines %v, before %v", after, before)
	}
	r.clean()
}
