//go:build long

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
)

// mixed are the sectors of the test and how many jobs each is submitted as: twenty in all, of three sizes.
func mixed() map[string]int {
	return map[string]int{
		"2KiB-v1_1": 7, "2KiB-synthetic": 6, "2KiB-non-interactive": 2, "8MiB-v1_1": 5,
	}
}

// Twenty jobs of 2 KiB, 2 KiB non-interactive with thirteen partitions, and 8 MiB, over two nodes with a spill folder
// and a budget each: every result verifies, no book ever holds more than its node has, and nothing is left but assets.
func TestLongTwentyMixedJobsOverTwoNodes(t *testing.T) {
	r := newRack(t)
	r.params = t.TempDir()
	circuits := map[string]circuit.Circuit{}
	for name := range mixed() {
		_, input := r.real(name)
		circuits[input.Circuit().ID()] = input.Circuit()
	}
	var ids []string
	for id, c := range circuits {
		_, err := generate.ToFolder(t.Context(), r.params, c, generate.FromSeed("e2e", id), generate.Options{})
		r.check(err)
		ids = append(ids, id)
	}
	r.circuits = strings.Join(ids, ",")
	r.startCoordinator("times.heartbeat=2s", "times.lease=15s")
	r.startCoordinator("times.heartbeat=2s", "times.lease=15s")
	budgets := map[job.Node]bytesize.Bytes{"n1": 6 << 30, "n2": 4 << 30}
	for _, name := range []job.Node{"n1", "n2"} {
		settings := []string{
			"worker.heartbeat=2s", "worker.ack_wait=30s", "worker.keep_every=10s", "worker.stall_max=2m",
			fmt.Sprintf("memory.ram_max=%d", budgets[name]), "memory.shm_max=64MiB",
		}
		n := r.addNode(name)
		n.startSynth(append([]string{"synth.scratch_bytes=96MiB"}, settings...)...)
		n.startGPU(append([]string{"engine.stall_max=1m", "engine.start_max=1m"}, settings...)...)
	}
	untilWithin(t, 5*time.Minute, "both nodes know all parameters", func() bool {
		v := r.view()
		if v == nil || len(v.Nodes) != 2 {
			return false
		}
		for _, n := range v.Nodes {
			if !n.Ready || len(n.Devices) != 1 || len(n.Devices[0].Circuits) != len(ids) {
				return false
			}
		}
		return true
	})
	for name, count := range mixed() {
		c1, input := r.real(name)
		for i := range count {
			r.submitReal(fmt.Sprintf("%s %d", name, i), c1, input)
		}
	}
	r.watchBudgets(budgets, time.Hour)
	r.waitDone()
	share := map[job.Node]map[string]int{"n1": {}, "n2": {}}
	for _, j := range r.jobs {
		for i, p := range r.record(j).Partitions {
			share[p.Node][j.circuit.ID()]++
			if len(p.Attempts) != 1 {
				t.Errorf("job %s partition %d took %d attempts although nothing failed: %+v", j.id, i, len(p.Attempts), p.Attempts)
			}
		}
	}
	t.Logf("partitions by node: %v", share)
	for name, s := range share {
		if len(s) == 0 {
			t.Errorf("%s did nothing", name)
		}
	}
	r.checkQuiet()
}

// watchBudgets waits until all jobs have ended, and looks at the books meanwhile (invariant 1).
func (r *rack) watchBudgets(budgets map[job.Node]bytesize.Bytes, limit time.Duration) {
	r.t.Helper()
	looks, open := 0, len(r.jobs)
	untilWithin(r.t, limit, "all jobs end", func() bool {
		for name, ram := range budgets {
			b := r.book(name)
			if b == nil {
				continue // Redis was slow
			}
			looks++
			if used := b.Used[ledger.PoolRAM]; used > ram {
				r.t.Errorf("%s has booked %s of %s", name, used, ram)
			}
			if used := b.Used[ledger.PoolSHM]; used > 64<<20 {
				r.t.Errorf("%s has booked %s of the spill folder's 64 MiB", name, used)
			}
		}
		time.Sleep(100 * time.Millisecond) // leave the cores to the proofs
		for open > 0 && r.record(r.jobs[open-1]).State.Ended() {
			open--
		}
		return open == 0
	})
	if looks < 2*len(r.jobs) {
		r.t.Errorf("looked at books only %d times", looks)
	}
}
