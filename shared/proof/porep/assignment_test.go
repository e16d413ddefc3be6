package porep

import (
	"encoding/binary"
	"math/bits"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

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
