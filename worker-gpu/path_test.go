//go:build toy

package workergpu_test

import (
	"testing"

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
		if result.Handoff != wire.HandoffSHM || result.ParamsDigest == "" || result.Seconds["synthesis"] <= 0 || result.Seconds["msm_h"] <= 0 {
			t.Errorf("result %+v", result)
		}
	}
	r.noResult()
	r.clean()
}
