package e2e_test

import (
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// smallDevice is a node with a device whose memory is too small for any job.
func (r *rack) smallDevice(devices string) *node {
	r.t.Helper()
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU("prove.devices="+devices, `simulate={sim-a='{"memory_bytes":"900B","job_bytes":"1000B"}'}`)
	return n
}

// A device that is too small for a job is given none: the job is refused with both numbers before anything is
// computed, or waits where it was submitted to. Nothing goes to a processor by itself. Where an operator lists the
// processor as a device of its own, jobs are proved there, and say so.
func TestB13DeviceThatIsTooSmall(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.startCoordinator()
	n := r.smallDevice("sim-a")
	until(t, "the node is there", func() bool {
		v := r.view()
		return v != nil && len(v.Nodes) == 1 && len(v.Nodes[0].Devices) == 1 && len(v.Nodes[0].Devices[0].Circuits) == 1 &&
			r.book(n.name) != nil
	})
	_, err := r.client.Submit(t.Context(), request("refused", 1, 1))
	if fault.KindOf(err) != fault.Exhausted || !strings.Contains(err.Error(), "1000 B") ||
		!strings.Contains(err.Error(), "900 B") {
		t.Errorf("submit: %v", err)
	}
	q := request("waits", 2, 2)
	q.WaitForNode = true
	s, err := r.client.Submit(t.Context(), q)
	r.check(err)
	waiting := r.accepted(s.Job, 2)
	until(t, "it says what it waits for", func() bool {
		why, err := r.client.Why(t.Context(), s.Job)
		r.check(err)
		for _, reason := range why.Reasons {
			if strings.Contains(reason.Text, string(ledger.PoolVRAM("sim-a"))) {
				return true
			}
		}
		return false
	})
	if p := r.record(waiting).Partitions[0]; p.Stage != job.Waiting || p.Fence != 0 {
		t.Errorf("partition is %+v", p)
	}
	if text := n.synth.log.String(); strings.Contains(text, string(s.Job)) {
		t.Error("it was synthesized")
	}
	n.gpu.kill()
	n.startGPU("prove.devices=sim-a,cpu", `simulate={sim-a='{"memory_bytes":"900B","job_bytes":"1000B"}'}`)
	r.waitDone()
	if p := r.record(waiting).Partitions[0]; p.Device != "cpu" {
		t.Errorf("proved on %q", p.Device)
	}
	r.checkQuiet()
	if b := r.book(n.name); b == nil || b.Used[ledger.PoolVRAM("sim-a")] != 0 {
		t.Errorf("the book is %+v", b)
	}
}
