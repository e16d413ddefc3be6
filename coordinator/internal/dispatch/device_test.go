package dispatch_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// submitTo has a job of one partition of a circuit wait.
func (r *reign) submitTo(circuit string) job.ID {
	r.t.Helper()
	id := r.submit(1)
	_, err := r.store.Update(r.t.Context(), id, func(record *job.Record) error {
		if record.Partitions[0].Stage != job.Waiting {
			return store.ErrUnchanged
		}
		record.Circuit = circuit
		return nil
	})
	r.check(err)
	return id
}

// A node has a card, for two circuits that do not fit on it together, and a processor for a third one. A job on the
// processor that begins or ends takes nothing of the card from the job that has it: another one waits until that has
// ended, and can ask what for.
func TestB18WorkElsewhereDoesNotFreeADevice(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) {
		t := r.t
		vram := ledger.PoolVRAM("gpu0")
		onCard := func(id string) wire.DeviceCircuit {
			return wire.DeviceCircuit{Circuit: id, Ready: true, DeviceBytes: 6 * bytesize.GiB}
		}
		h := r.hold("n1", onCard("card-a"), onCard("card-b"), wire.DeviceCircuit{Circuit: "toy", Ready: true})
		defer h.stop()
		h.with(func() {
			h.more = func(gpu *wire.Beat, host *wire.HostReport) {
				host.Capacity[vram] = 8 * bytesize.GiB
				all := gpu.Devices[0].Circuits
				gpu.Devices = []wire.DeviceState{
					{Device: "gpu0", Healthy: true, Circuits: all[:2]}, {Device: "cpu", Healthy: true, Circuits: all[2:]},
				}
			}
		})
		time.Sleep(10 * time.Second)
		runsOn := func(id job.ID, device job.Device) {
			t.Helper()
			j, _ := r.store.Get(id)
			if p := j.Record.Partitions[0]; p.Stage != job.Reserved || p.Device != device {
				t.Errorf("job %s is %s on %q, not on %s", id, p.Stage, p.Device, device)
			}
		}
		first := r.submitTo("card-a")
		time.Sleep(5 * time.Second)
		runsOn(first, "gpu0")
		h.with(func() { h.has("device:gpu0.card-a", vram, 6*bytesize.GiB) })
		beside := r.submitTo("toy")
		time.Sleep(5 * time.Second)
		runsOn(beside, "cpu")
		second := r.submitTo("card-b")
		waits := func(when string) {
			t.Helper()
			time.Sleep(time.Minute)
			runsOn(first, "gpu0")
			if stages, _ := r.stages(second); stages[job.Waiting] != 1 {
				t.Errorf("%s the second job is %v", when, stages)
			}
			why, err := r.leader.Why(t.Context(), second)
			r.check(err)
			if text := fmt.Sprint(why); !strings.Contains(text, "held by device:gpu0.card-a (6 GiB)") {
				t.Errorf("%s nobody says that it waits for the card: %s", when, text)
			}
			reply, err := r.leader.Assets(t.Context(), &wire.AssetsRequest{Node: "n1"})
			r.check(err)
			if all := reply.Nodes[0].Assets; len(all) != 1 || all[0].Name != "device:gpu0.card-a" || all[0].Users != 1 {
				t.Errorf("%s the card is booked for %+v", when, all)
			}
		}
		waits("beside a job on the processor")
		_, err := r.leader.Cancel(t.Context(), beside, "")
		r.check(err)
		waits("after it")
		runs := r.submitTo("toy")
		waits("beside the next one")
		runsOn(runs, "cpu")
		_, err = r.leader.Cancel(t.Context(), first, "")
		r.check(err)
		time.Sleep(time.Minute)
		runsOn(second, "gpu0")
		runsOn(runs, "cpu")
	})
}
