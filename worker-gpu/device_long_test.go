//go:build toy && long

package workergpu_test

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

func TestLongB07CorruptParametersAreNamedAndLeftAlone(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	good, err := os.ReadFile(paramsFile(r))
	if err != nil {
		t.Fatal(err)
	}
	bad := append([]byte(nil), good...)
	bad[len(bad)/2] ^= 1 // F12
	if err := os.WriteFile(paramsFile(r), bad, 0o600); err != nil {
		t.Fatal(err)
	}
	r.startGPU()
	r.wait("the file is named with its digests", func() bool {
		c := r.circuit()
		return !c.Ready && strings.Contains(c.Missing, paramsFile(r)) && strings.Contains(c.Missing, "digest expected")
	})
	if now, err := os.ReadFile(paramsFile(r)); err != nil || string(now) != string(bad) {
		t.Errorf("the file was touched: %v", err)
	}
	if err := os.WriteFile(paramsFile(r), good[:len(good)-1], 0o600); err != nil { // F13
		t.Fatal(err)
	}
	r.wait("the short file is refused", func() bool { return strings.Contains(r.circuit().Missing, "bytes") })
	if err := os.WriteFile(paramsFile(r)+".new", good, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(paramsFile(r)+".new", paramsFile(r)); err != nil {
		t.Fatal(err)
	}
	r.ready(wire.RoleGPU)
}

func TestLongB23LostDeviceHandsItsWorkBack(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	r.simulated(`{"lost_after_ns":1}`, "engine.faults_max=2", "engine.pause_max=200ms")
	r.wait("the device is unhealthy", func() bool {
		b := r.beat(wire.RoleGPU)
		return len(b.Devices) == 1 && (!b.Devices[0].Healthy || b.Devices[0].Reason == "")
	})
	id := r.job(1)
	outcomes := map[job.Outcome]bool{}
	a := r.claim(id)
	for range 6 {
		result := r.result()
		outcomes[result.Outcome] = true
		if !strings.Contains(faultText(result), "device is lost") {
			t.Fatalf("result %s", faultText(result))
		}
		if result.Outcome == job.OutcomeHandedBack {
			break
		}
		r.change(id, func(record *job.Record) {
			if err := record.Fail(a, result.Fault, job.Policy{FailedMax: 10}, time.Now()); err != nil {
				t.Fatal(err)
			}
		})
		a = r.claim(id)
	}
	r.wait("the device says why", func() bool {
		d := r.beat(wire.RoleGPU).Devices
		return len(d) == 1 && !d[0].Healthy && strings.Contains(d[0].Reason, "device is lost")
	})
	r.noResult()
}

// The engine is frozen and the worker asked to stop: it returns within its grace time.
func TestLongB23WorkerWithFrozenEngineStops(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	gpu := r.simulated(`{"failures":["freeze@start#1"]}`, "engine.stop_max=1s", "service.hand_back_within=3s")
	r.ready(wire.RoleGPU)
	r.claim(r.job(1))
	r.wait("the proof has begun", func() bool {
		return len(r.beat(wire.RoleGPU).Running) == 1 && r.beat(wire.RoleGPU).Running[0].Stage == job.Proving
	})
	if err := gpu.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	select {
	case <-gpu.done:
	case <-time.After(time.Minute):
		t.Fatal("the worker does not end")
	}
	if result := r.result(); result.Outcome != job.OutcomeHandedBack {
		t.Errorf("result %s, %s", result.Outcome, faultText(result))
	}
}

func TestLongB24WrongProofsAreNotHandedOut(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	r.simulated(`{"flip_every":3}`)
	r.ready(wire.RoleGPU)
	wrong := 0
	for seed := range uint64(7) {
		a := r.claim(r.job(seed))
		result := r.result()
		if result.Outcome == job.OutcomeOK {
			r.wantProof(result, a, seed)
			continue
		}
		wrong++
		if !result.BlameDevice || !strings.Contains(faultText(result), "does not verify") {
			t.Errorf("result %s, %s", result.Outcome, faultText(result))
		}
	}
	if wrong != 2 {
		t.Errorf("%d wrong proofs were found, want 2", wrong)
	}
	r.clean()
}

func TestLongB11LeakOfDeviceMemoryIsSeenAndTheEngineRecycled(t *testing.T) {
	t.Parallel()
	for leak, recycled := range map[int]bool{0: false, 5: true} {
		t.Run(fmt.Sprint(leak, " percent"), func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			r.makeParams()
			r.startSynth()
			gpu := r.simulated(
				fmt.Sprintf(`{"memory_bytes":"1300B","job_bytes":"1000B","leak_percent":%d}`, leak), "prove.ahead=0")
			r.ready(wire.RoleGPU)
			first := engines(gpu)
			for seed := range uint64(20) {
				a := r.claimWith(r.job(seed), device, func(*wire.SynthTask) {})
				r.wantProof(r.result(), a, seed)
			}
			r.wait("there is one engine", func() bool { return len(engines(gpu)) == 1 })
			if changed := engines(gpu)[0] != first[0]; changed != recycled {
				t.Errorf("engine was recycled: %v, want %v", changed, recycled)
			}
			if drift := strings.Contains(gpu.log.String(), "device memory drifts"); drift != recycled {
				t.Errorf("drift was reported: %v, want %v", drift, recycled)
			}
			r.clean()
		})
	}
}
