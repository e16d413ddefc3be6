//go:build toy && long

package workergpu_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// A device that takes one second per partition, and segments of half a gigabyte: the device's gap between partitions.
// The target, 20 ms at p99, is for a quiet machine; on a crowded one single gaps wait for synthesis, so half of them
// count here.
func TestLongDeviceGapBetweenPartitions(t *testing.T) {
	const partitions, gapMax = 12, 20 * time.Millisecond
	r := newRack(t)
	r.makeParams()
	r.startSynth("synth.slots=1", "synth.pad_bytes=512MiB")
	r.simulated(`{"start_time_ns":1000000000,"finish_time_ns":200000000}`, "prove.ahead=3")
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	claimed := 0
	claim := func() {
		r.claimWith(r.job(uint64(claimed)), device, func(task *wire.SynthTask) {
			task.Amounts = ledger.Amounts{ledger.PoolRAM: 600 * bytesize.MiB, ledger.PoolSHM: 600 * bytesize.MiB}
		})
		claimed++
	}
	const ahead = 4 // what the scheduler keeps
	for range ahead {
		claim()
	}
	for range ahead { // so that the pool has segments whose pages are not new
		if result := r.result(); result.Outcome != job.OutcomeOK {
			t.Fatal(faultText(result))
		}
	}
	for range ahead {
		claim()
	}
	var gaps []time.Duration
	for i := range partitions {
		result := r.result()
		if result.Outcome != job.OutcomeOK {
			t.Fatal(faultText(result))
		}
		if claimed < ahead+partitions {
			claim()
		}
		if i > 0 { // before the first the device had nothing to do
			gaps = append(gaps, time.Duration(result.Seconds["device_idle"]*float64(time.Second)))
		}
	}
	slices.Sort(gaps)
	t.Logf("gaps %v", gaps)
	if median := gaps[len(gaps)/2]; median > gapMax {
		t.Errorf("median gap %s, want at most %s", median, gapMax)
	}
	r.clean()
}

// B28, B30: on one core everything finishes, and what is advertised follows the mask.
func TestLongB28OneCore(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.enter = []string{"env", "GOMAXPROCS=1", "taskset", "-c", "0"}
	r.startSynth("synth.slots=2")
	r.startGPU()
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	if s, g := r.beat(wire.RoleSynth).CPUs, r.beat(wire.RoleGPU).CPUs; s != 1 || g != 1 {
		t.Errorf("advertised %d and %d processors", s, g)
	}
	ids := map[job.Attempt]uint64{}
	for seed := range uint64(5) {
		ids[r.claim(r.job(seed))] = seed
	}
	for range 5 {
		result := r.result()
		r.wantProof(result, result.Attempt, ids[result.Attempt])
	}
	r.clean()
}

// B29: after ten failures in a row the worker holds no more memory than before, and a good job succeeds.
func TestLongB29NoMemoryIsKeptAfterFailures(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	var failures []string
	for n := range 10 {
		failures = append(failures, fmt.Sprintf("%q", fmt.Sprintf("error@finish#%d", n+2)))
	}
	gpu := r.simulated(`{"failures":[`+strings.Join(failures, ",")+`]}`, "engine.faults_max=100", "engine.pause_max=50ms")
	r.ready(wire.RoleGPU)
	first := r.claim(r.job(0)) // a good one, for a base line that has all that is kept on purpose
	r.wantProof(r.result(), first, 0)
	before := resident(t, gpu)
	for range 10 {
		r.claim(r.job(1))
		if result := r.result(); result.Outcome != job.OutcomeFailed {
			t.Fatalf("result %s, %s", result.Outcome, faultText(result))
		}
	}
	last := r.claim(r.job(2))
	r.wantProof(r.result(), last, 2)
	if after := resident(t, gpu); after > before+before/5 {
		t.Errorf("worker and engine hold %s, before the failures %s", after, before)
	}
	r.clean()
}

// resident is what a worker and its engines hold.
func resident(t *testing.T, p *process) bytesize.Bytes {
	t.Helper()
	sum := bytesize.Bytes(0)
	for _, pid := range append(engines(p), p.Process.Pid) {
		text, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "status"))
		if err != nil {
			t.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "VmRSS:")
		var kB int64
		if _, err := fmt.Sscan(rest, &kB); err != nil {
			t.Fatal(err)
		}
		sum += bytesize.Bytes(kB) * bytesize.KiB
	}
	return sum
}
