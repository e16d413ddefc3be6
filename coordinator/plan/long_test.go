//go:build long

package plan

import (
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
)

// A plan at the limits (256 nodes of 2 cards, 200,000 partitions) takes minutes at most, not hours.
func TestLongPlanAtItsLimits(t *testing.T) {
	t.Parallel()
	p, err := OpenShipped("proofrack-card-32gib")
	if err != nil {
		t.Fatal(err)
	}
	r := ourBox(NodesMax, 16, 128*bytesize.GiB, "rtx-5070-ti")
	r.Nodes[0].Devices[0].Count = 2
	start := time.Now()
	result, err := Simulate(t.Context(), p, r, porepJobs(PartitionsMax/10))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d proofs in %.0f s of simulated time: %s", result.Jobs, result.Makespan, time.Since(start))
	if took := time.Since(start); took > 10*time.Minute || result.Jobs != PartitionsMax/10 {
		t.Errorf("%d proofs took %s", result.Jobs, took)
	}
}
