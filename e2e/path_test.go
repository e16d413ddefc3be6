package e2e_test

import (
	"testing"

	"github.com/proofrack/proofrack/shared/job"
)

func TestJobGoesItsWholePath(t *testing.T) {
	t.Parallel()
	r := full(t, "n1")
	r.submit(1)
	r.waitDone()
	r.checkQuiet()
}

// Twenty jobs of one, two and thirteen partitions, two nodes with room for three segments each, two coordinators.
func TestTwentyJobsOverTwoNodes(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.calm()
	r.room = 3
	r.add("n1", "n2")
	r.startCoordinator()
	for i := range uint64(20) {
		seeds := []uint64{100 * i}
		for len(seeds) < []int{1, 2, 1, 13}[i%4] {
			seeds = append(seeds, seeds[0]+uint64(len(seeds)))
		}
		r.submit(seeds...)
	}
	r.waitDone()
	share := map[job.Node]int{}
	for _, j := range r.jobs {
		for _, p := range r.record(j).Partitions {
			share[p.Node]++
			if len(p.Attempts) != 1 {
				t.Errorf("job %s took %d attempts although nothing failed: %+v", j.id, len(p.Attempts), p.Attempts)
			}
		}
	}
	if share["n1"] == 0 || share["n2"] == 0 {
		t.Errorf("one node did all the work: %v", share)
	}
	r.checkQuiet()
}
