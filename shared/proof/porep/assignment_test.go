package porep

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// assignment is a segment's assignment, decoded from the bytes by docs/formats.md alone.
type assignment struct {
	inputs []fr.Element
	ones   []byte // bit per auxiliary
	full   []byte // bit per auxiliary
	rank   []int  // full auxiliaries before each run of 512
	list   []byte // 32 bytes each
}

// decodeAssignment finds the parts by their sizes: every part begins at the next multiple of 4096.
func decodeAssignment(t testing.TB, segment []byte) *assignment {
	t.Helper()
	if string(segment[:8]) != "PRSEGMNT" {
		t.Fatal("not a sealed segment")
	}
	count := func(i int) int { return int(binary.LittleEndian.Uint64(segment[88+8*i:])) }
	rows, inputs, aux, fullA, fullB, fullAux := count(0), count(1), count(2), count(3), count(4), count(5)
	offset := 4096
	part := func(n int) []byte {
		p := segment[offset : offset+n]
		offset = (offset + n + 4095) / 4096 * 4096
		return p
	}
	plane := func(n int) int { return (n + 63) / 64 * 8 }
	ranks := func(n int) int { return (n + 4095) / 4096 * 4 }
	a := &assignment{}
	for in := part(32 * inputs); len(in) > 0; in = in[32:] {
		a.inputs = append(a.inputs, decodeElement(in))
	}
	for range 5 {
		part(plane(rows + inputs))
	}
	a.ones, a.full = part(plane(aux)), part(plane(aux))
	part(ranks(rows + inputs))
	part(ranks(rows + inputs))
	part(ranks(aux))
	part(32 * (fullA + inputs))
	part(32 * fullB)
	a.list = part(32 * fullAux)
	n := 0
	for i, b := range a.full {
		if i%64 == 0 {
			a.rank = append(a.rank, n)
		}
		n += bits.OnesCount8(b)
	}
	if n != fullAux {
		t.Fatalf("%d auxiliaries are marked full, the header says %d", n, fullAux)
	}
	return a
}

// decodeElement reads Montgomery form, least significant word first.
func decodeElement(b []byte) fr.Element {
	var e fr.Element
	for i := range e {
		e[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return e
}

func (a *assignment) value(v r1cs.Var) fr.Element {
	i := v.Index()
	if !v.IsAux() {
		return a.inputs[i]
	}
	if a.full[i/8]>>(i%8)&1 == 0 {
		return r1cs.Element(uint64(a.ones[i/8] >> (i % 8) & 1))
	}
	n := a.rank[i/512] + bits.OnesCount8(a.full[i/8]&(1<<(i%8)-1))
	for _, b := range a.full[i/512*64 : i/8] {
		n += bits.OnesCount8(b)
	}
	return decodeElement(a.list[32*n:])
}

// rowBlock is the number of rows of a segment's vectors that are expanded at once.
const rowBlock = 1 << 12

// checkSection evaluates the rows of one section with plain field arithmetic and compares them with the segment's a and
// b. It says which row is at fault.
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

func TestEveryConstraintOfARealSectorHolds(t *testing.T) {
	t.Parallel()
	c, segment, memory := segmentOf(t, readC1(t, "2KiB-v1_1"), 0)
	a := decodeAssignment(t, memory)
	for section := range len(c.Sections()) - 1 {
		if err := checkSection(c, segment, a, section); err != nil {
			t.Error(err)
		}
	}
}

// TestEvaluationFindsChangedValues changes the head's variables one by one in the segment's bytes.
func TestEvaluationFindsChangedValues(t *testing.T) {
	t.Parallel()
	c, segment, memory := segmentOf(t, readC1(t, "2KiB-v1_1"), 0)
	a := decodeAssignment(t, memory)
	for i, list := 0, a.list; i < c.SharedAux(); i++ {
		place, bit := &a.ones[i/8], byte(1)<<(i%8)
		if a.full[i/8]&bit != 0 {
			place, bit = &list[9], 1 // some middle bit of the element
			list = list[32:]
		}
		if i%9 != 0 {
			continue
		}
		*place ^= bit
		if checkSection(c, segment, a, 0) == nil {
			t.Errorf("auxiliary %d of %d changed: every row still holds", i, c.SharedAux())
		}
		*place ^= bit
	}
	segment.AuxOnes()[1] ^= 1 << 20 // and what the evaluator reads is what the segment holds
	if checkSection(c, segment, a, 0) == nil {
		t.Error("a bit of the segment changed: every row still holds")
	}
}

func TestAssignmentIsReadableByTheFormatAlone(t *testing.T) {
	t.Parallel()
	_, segment, memory := segmentOf(t, readC1(t, "2KiB-v1_1"), 0)
	a := decodeAssignment(t, memory)
	got := make([]fr.Element, segment.Counts().Aux)
	segment.ExpandAux(0, got)
	for i := range got {
		if want := a.value(r1cs.AuxVar(i)); !got[i].Equal(&want) {
			t.Fatalf("auxiliary %d differs", i)
		}
	}
}
