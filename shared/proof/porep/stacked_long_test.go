//go:build long

package porep

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

func TestLongStackedCircuitsHaveTheirConstraintSystemHash(t *testing.T) {
	for name, f := range map[string]stackedFixture{
		"F19": {fixture{22, 1295435, 1296576, "2bb32fe1d16325b1afe3f67f42148047406233e23eae86605f53247273706615"}, 32, 2, 1, 8, 4, 0},
		"F20": {fixture{22, 1345810, 1346982, "c9b69c85139ae04bac789fecb881052900c660c6337ab4b520eaa0c9f7293f75"}, 64, 2, 1, 8, 4, 2},
		"F21": {fixture{22, 7232200, 7238236, "5d477993ad4d9f61d0bb3309e06fd6659635ddd6007f0b3fdf81feb9d4ed5ef6"}, 1 << 30, 11, 1, 8, 8, 0},
		"F22": {fixture{22, 7282575, 7288642, "f76ab217216b44c128deeefe2982423a61a43517655eac6e7090da1ac0d52e3d"}, 1 << 31, 11, 1, 8, 8, 2},
		"F25": {fixture{40, 4420837, 4423433, "c7ade8c93707968e967cce4507669258eab20ff010e6dc1827d55544ee671cbb"}, 1 << 24, 2, 2, 8, 0, 0},
		"F26": {fixture{328, 130169893, 130278541, "a790207ea0435359e7d5f286563586e3f9a3a286c97af2440f65a4a18063d9cb"}, 1 << 30, 11, 18, 8, 8, 0},
		"F27": {fixture{328, 131076643, 131185849, "7686117961498d7849ede7429233254b20e3b149011eca8674ca8e9ab0655af6"}, 1 << 31, 11, 18, 8, 8, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f.check(t)
			runtime.ReadMemStats(&after)
			// Heap memory is never handed back here in between, so what is in use by the system is the peak.
			if grown := int64(after.HeapSys) - int64(before.HeapSys); grown > 256<<20 {
				t.Errorf("heap grew by %d bytes: the digest must stream", grown)
			}
		})
	}
}

// rowBlock is the number of rows of a segment's vectors that are expanded at once.
const rowBlock = 1 << 12

// TestLongFullPartition32GiBIsSatisfied walks the very rows whose digest is F26 with plain field arithmetic over the
// assignment as the segment's bytes have it, read by a decoder of this test. a and b must equal the segment's vectors.
func TestLongFullPartition32GiBIsSatisfied(t *testing.T) {
	c, w := sparseWitness(t, sdr.Size32GiB, 0)
	layout, err := compact.LayoutOf(c)
	if err != nil {
		t.Fatal(err)
	}
	memory := layout.Memory()
	job := compact.Job{Circuit: c, Witness: w, Workers: 2}
	segment, err := job.Synthesize(context.Background(), memory)
	if err != nil {
		t.Fatal(err)
	}
	assignment := decodeAssignment(t, memory)
	sections := c.Sections()
	var group sync.WaitGroup
	work := make(chan int, len(sections))
	for i := range len(sections) - 1 {
		work <- i
	}
	close(work)
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

// checkSection evaluates the rows of one section and compares them with the segment's a and b.
func checkSection(c circuit.Circuit, s *compact.Segment, w *assignment, section int) error {
	first := c.Sections()[section].Rows
	a, b := make([]fr.Element, rowBlock), make([]fr.Element, rowBlock)
	differ := -1
	check := r1cs.Satisfaction{Value: w.value}
	check.Visit = func(row int, av, bv, _ *fr.Element) {
		k := row % rowBlock
		if k == 0 {
			n := min(rowBlock, s.Counts().RowsTotal()-first-row)
			s.ExpandA(first+row, a[:n])
			s.ExpandB(first+row, b[:n])
		}
		if differ < 0 && (!a[k].Equal(av) || !b[k].Equal(bv)) {
			differ = first + row
		}
	}
	c.Describe(section, &check)
	want := c.Sections()[section+1].Rows - first
	switch {
	case check.Rows() != want:
		return fmt.Errorf("section %d: %d rows walked, want %d", section, check.Rows(), want)
	case len(check.Unsatisfied()) > 0:
		return fmt.Errorf("section %d: row %d is not satisfied", section, first+check.Unsatisfied()[0])
	case differ >= 0:
		return fmt.Errorf("section %d: a or b of row %d differs from the segment", section, differ)
	}
	return nil
}
