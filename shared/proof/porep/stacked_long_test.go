//go:build long

package porep

import (
	"context"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// surveysHeapBytesMax bounds the heap while both of the largest circuits are walked: their densities take 33 MB each,
// and the collector lets garbage grow to as much again.
const surveysHeapBytesMax = 192 << 20

// TestLongLargeCircuitsHaveThePublishedTotalsAndHash is F25, F26 and F27 with their columns of 6.2. It is not parallel
// to other tests of the package, so that the heap it sees is its own.
func TestLongLargeCircuitsHaveThePublishedTotalsAndHash(t *testing.T) {
	for name, size := range map[string]sdr.SectorSize{
		"F25 512MiB": sdr.Size512MiB, "F26 32GiB": sdr.Size32GiB, "F27 64GiB": sdr.Size64GiB,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := surveyOf(size)
			s.check(t, size)
			if s.heapBytesMax == 0 || s.heapBytesMax > surveysHeapBytesMax {
				t.Errorf("heap in use reached %d bytes, the limit is %d: the digest must stream",
					s.heapBytesMax, surveysHeapBytesMax)
			}
			t.Logf("heap in use reached %d bytes", s.heapBytesMax)
		})
	}
}

// TestLongFullPartition32GiBIsSatisfied walks the very rows whose digest is F26 with plain field arithmetic over the
// assignment as the segment's bytes have it, read by a decoder of this test. a and b must equal the segment's vectors,
// and the inputs those that a verifier derives.
func TestLongFullPartition32GiBIsSatisfied(t *testing.T) {
	const partition = 7
	out, sector := sparseOutput(t, sdr.Size32GiB)
	c, w := decoded(t, out, partition)
	layout, err := compact.LayoutOf(c)
	if err != nil {
		t.Fatal(err)
	}
	memory := layout.Memory()
	job := compact.Job{Circuit: c, Witness: w, Partition: partition, Workers: 2}
	segment, err := job.Synthesize(context.Background(), memory)
	if err != nil {
		t.Fatal(err)
	}
	assignment := decodeAssignment(t, memory)
	want, err := sector.PublicInputs(partition)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, assignment.inputs[1:]); diff != "" {
		t.Errorf("a verifier's inputs (-) and the segment's (+) differ:\n%s", diff)
	}
	work := make(chan int, len(c.Sections()))
	for i := range len(c.Sections()) - 1 {
		work <- i
	}
	close(work)
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for i := range work {
				if err := checkSection(c, segment, assignment, i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
}
