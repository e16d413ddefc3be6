//go:build toy

package workergpu_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// The whole path through real processes: a synthesis task in, a sealed segment, a prove task, an engine, a result.
func TestPartitionGoesItsWholePath(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	r.startGPU()
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	for seed := range uint64(4) {
		a := r.claim(r.job(seed))
		result := r.result()
		r.wantProof(result, a, seed)
		if result.Handoff != wire.HandoffSHM || result.ParamsDigest == "" ||
			result.Seconds["synthesis"] <= 0 || result.Seconds["msm_h"] <= 0 {
			t.Errorf("result %+v", result)
		}
	}
	r.noResult()
	r.clean()
}

func TestSegmentLiesWhereItIsBooked(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	disk := "spill.disk_path=" + filepath.Join(t.TempDir(), "disk")
	r.startSynth(disk)
	r.startGPU(disk)
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	for seed, c := range []struct {
		pool ledger.Pool
		want string
	}{{ledger.PoolSHM, wire.HandoffSHM}, {ledger.PoolDisk, wire.HandoffDisk}, {ledger.PoolSHM, wire.HandoffSHM}} {
		a := r.claimWith(r.job(uint64(seed)), device, func(task *wire.SynthTask) {
			task.Amounts = ledger.Amounts{ledger.PoolRAM: need, c.pool: bytesize.MiB}
		})
		result := r.result()
		r.wantProof(result, a, uint64(seed))
		if result.Handoff != c.want {
			t.Errorf("booked in %s, lies on %s", c.pool, result.Handoff)
		}
		if told := strings.Contains(result.HandoffReason, "booked on disk"); told != (c.want == wire.HandoffDisk) { // B90
			t.Errorf("lies on %s because of %q", result.Handoff, result.HandoffReason)
		}
	}
	r.clean()
}
