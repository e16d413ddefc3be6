package porep

import (
	"fmt"
	"math/bits"
	"runtime"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// survey is what one walk over a circuit's rows tells. It is a row sink in constant memory.
type survey struct {
	digest  *r1cs.Digest
	density *r1cs.Density

	termsA, termsB, termsC int
	heapBytesMax           uint64 // in use, sampled
}

func newSurvey(totals r1cs.Position) *survey {
	return &survey{digest: r1cs.NewDigest(totals), density: r1cs.NewDensity(totals)}
}

// heapSampleRows is how many rows pass between two looks at the heap.
const heapSampleRows = 1 << 20

// Row takes one constraint.
func (s *survey) Row(a, b, c r1cs.LC) {
	s.digest.Row(a, b, c)
	s.density.Row(a, b, c)
	s.termsA, s.termsB, s.termsC = s.termsA+len(a), s.termsB+len(b), s.termsC+len(c)
	if s.digest.Rows()%heapSampleRows == 0 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		s.heapBytesMax = max(s.heapBytesMax, m.HeapInuse)
	}
}

func surveyOf(size sdr.SectorSize) *survey {
	c := ForSize(size)
	s := newSurvey(circuit.Totals(c))
	circuit.Describe(c, s)
	return s
}

// The surveys of small circuits, which several tests use.
var (
	survey2KiB = sync.OnceValue(func() *survey { return surveyOf(sdr.Size2KiB) })
	survey8MiB = sync.OnceValue(func() *survey { return surveyOf(sdr.Size8MiB) })
)

// published is a column of spec c2-circuit.md 6.2, with the row of 6.3 that belongs to it.
type published struct {
	inputs, aux, rows, rowsTotal, domainBits int
	termsA, termsB, termsC                   int
	aAux, bInputs, bAux                      int
	hash                                     string // of 6.3
}

func publishedTotals() map[sdr.SectorSize]published {
	return map[sdr.SectorSize]published{
		sdr.Size2KiB: {
			40, 2685673, 2687921, 2687961, 22, 6420965, 2689006, 5824682, 2674908, 1, 685521,
			"2c120b1125bd531d5a62b11932b2ae0e0cb47f455cea582994f97534e296bb42",
		},
		sdr.Size8MiB: {
			40, 3842449, 3844929, 3844969, 22, 9388413, 3847886, 8234882, 3814996, 1, 1011289,
			"b1fe5a4629fb8fc6684d6c90d6f8d6d32e5bccf6bc9439e4e8a9758e579328db",
		},
		sdr.Size512MiB: {
			40, 4420837, 4423433, 4423473, 23, 10872137, 4427326, 9439982, 4385040, 1, 1174173,
			"c7ade8c93707968e967cce4507669258eab20ff010e6dc1827d55544ee671cbb",
		},
		sdr.Size32GiB: {
			328, 130169893, 130278541, 130278869, 27, 309404723, 130327340, 282656500, 129753292, 1, 33112281,
			"a790207ea0435359e7d5f286563586e3f9a3a286c97af2440f65a4a18063d9cb",
		},
		sdr.Size64GiB: {
			328, 131076643, 131185849, 131186177, 27, 311892197, 131235764, 284512534, 130637542, 1, 33386943,
			"7686117961498d7849ede7429233254b20e3b149011eca8674ca8e9ab0655af6",
		},
	}
}

// check compares a survey with the published numbers of its circuit: F23 to F27 and the table of 6.2.
func (s *survey) check(t *testing.T, size sdr.SectorSize) {
	t.Helper()
	totals := circuit.Totals(ForSize(size))
	ones := func(words []uint64) int {
		n := 0
		for _, w := range words {
			n += bits.OnesCount64(w)
		}
		return n
	}
	got := published{
		totals.Inputs, totals.Aux, s.digest.Rows(), totals.RowsTotal(), totals.DomainBits(), s.termsA, s.termsB, s.termsC,
		ones(s.density.AAux), ones(s.density.BInputs), ones(s.density.BAux), s.digest.Hex(),
	}
	if diff := cmp.Diff(publishedTotals()[size], got, cmp.AllowUnexported(published{})); diff != "" {
		t.Errorf("%s: specification (-) and ours (+) differ:\n%s", size, diff)
	}
}

func TestSmallCircuitsHaveThePublishedTotalsAndHash(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size   sdr.SectorSize
		survey func() *survey
	}{"F23 2KiB": {sdr.Size2KiB, survey2KiB}, "F24 8MiB": {sdr.Size8MiB, survey8MiB}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.survey().check(t, c.size)
		})
	}
}

func TestEverySectorSizeHasTheCountsOfTheSpecification(t *testing.T) {
	t.Parallel()
	type counts struct{ inputs, aux, rows int }
	want := map[sdr.SectorSize]counts{ // unpublished sizes: the list below the table of 6.2
		sdr.Size4KiB: {40, 2786423, 2788733}, sdr.Size16KiB: {40, 2974867, 2977173},
		sdr.Size32KiB: {40, 3075617, 3077985}, sdr.Size16MiB: {40, 3943199, 3945741}, sdr.Size1GiB: {40, 4521587, 4524245},
	}
	for size, p := range publishedTotals() {
		want[size] = counts{p.inputs, p.aux, p.rows}
	}
	got := map[sdr.SectorSize]counts{}
	for _, size := range sdr.Sizes() {
		c := ForSize(size)
		totals := circuit.Totals(c)
		got[size] = counts{totals.Inputs, totals.Aux, totals.Rows}
		if wantID := "porep-" + size.String(); c.ID() != wantID || c.ParamsName() != sdr.ParamsName(size) {
			t.Errorf("%s: id %s, parameters %s", size, c.ID(), c.ParamsName())
		}
		if p, found := publishedTotals()[size]; found &&
			(totals.RowsTotal() != p.rowsTotal || totals.DomainBits() != p.domainBits) {
			t.Errorf("%s: %d rows with the input rows, domain 2^%d", size, totals.RowsTotal(), totals.DomainBits())
		}
		if shared := c.Sections()[1].Aux; c.SharedAux() != shared {
			t.Errorf("%s: %d shared auxiliaries, the head has %d", size, c.SharedAux(), shared)
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(counts{})); diff != "" {
		t.Errorf("specification (-) and ours (+) differ:\n%s", diff)
	}
	if n := len(Circuits()); n != len(want) {
		t.Errorf("%d circuits, want %d", n, len(want))
	}
}

func TestShapesThatAreNoTreeAreRefused(t *testing.T) {
	t.Parallel()
	for name, a := range map[string][6]int{ // nodes, layers, challenges, base, sub, top
		"nodes not a power of two":        {48, 2, 1, 8, 0, 0},
		"no node":                         {0, 2, 1, 8, 0, 0},
		"one node":                        {1, 2, 1, 8, 0, 0},
		"16 nodes are no levels of 8":     {16, 2, 1, 8, 0, 0},
		"3 layers have no column hash":    {64, 3, 1, 8, 0, 0},
		"64 nodes below 8-8-2 end uneven": {64, 2, 1, 8, 8, 2},
	} {
		if s, err := NewShape(a[0], a[1], a[2], a[3], a[4], a[5]); err == nil {
			t.Errorf("%s: got %+v", name, s)
		}
	}
}

// TestSharedVariablesAreTheHeadsAlone: rows of a challenge use auxiliaries of their own section and of the head only
// (circuit.Circuit SharedAux).
func TestSharedVariablesAreTheHeadsAlone(t *testing.T) {
	t.Parallel()
	c := ForSize(sdr.Size2KiB)
	const section = 2
	watch := &sectionWatch{shared: c.SharedAux(), from: c.Sections()[section].Aux, to: c.Sections()[section+1].Aux}
	c.Describe(section, watch)
	if watch.foreign != "" || watch.fromHead == 0 {
		t.Errorf("foreign: %q; variables of the head in %d terms", watch.foreign, watch.fromHead)
	}
}

type sectionWatch struct {
	shared, from, to, fromHead int
	foreign                    string
}

func (w *sectionWatch) Row(a, b, c r1cs.LC) {
	for _, lc := range []r1cs.LC{a, b, c} {
		for i := range lc {
			v := lc[i].Var
			switch {
			case !v.IsAux() || v.Index() >= w.from && v.Index() < w.to:
			case v.Index() < w.shared:
				w.fromHead++
			default:
				w.foreign = fmt.Sprint(v)
			}
		}
	}
}
