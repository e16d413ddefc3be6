//go:build toy

package workergpu_test

import (
	"fmt"
	"testing"

	"github.com/proofrack/proofrack/shared/wire"
)

// A coordinator orders a known answer: the device's beats say what came of that order. A device that is sound goes on
// proving, one whose answers are wrong says so.
func TestADeviceProvesAKnownAnswerWhenItIsAsked(t *testing.T) {
	t.Parallel()
	for flip, ok := range map[int]bool{0: true, 1: false} {
		t.Run(fmt.Sprintf("one in %d is wrong", flip), func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			r.makeParams()
			r.startSynth()
			r.startGPU(fmt.Sprintf(`simulate={cpu='{"flip_every":%d}'}`, flip))
			r.ready(wire.RoleSynth)
			r.ready(wire.RoleGPU)
			for i := range 2 {
				id := fmt.Sprintf("order-%d", i)
				r.tell(&wire.Control{Node: node, Kind: wire.ControlCanary, Device: device, Canary: id})
				var got wire.Canary
				r.wait("the answer to "+id, func() bool {
					for _, d := range r.beat(wire.RoleGPU).Devices {
						if d.Canary != nil {
							got = *d.Canary
						}
					}
					return got.ID == id
				})
				if got.OK != ok || (got.Reason == "") != ok {
					t.Errorf("%s: %+v", id, got)
				}
			}
			if ok {
				a := r.claim(r.job(1))
				r.wantProof(r.result(), a, 1)
				r.clean()
			}
		})
	}
}
