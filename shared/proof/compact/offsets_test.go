package compact_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// Every part begins where docs/formats.md, "Segment", has it.
func TestOffsetsAreThoseOfTheFormat(t *testing.T) {
	t.Parallel()
	const r, i, x, fa, fb, fx = 70_000, 300, 90_000, 500, 400, 600
	l, err := compact.NewLayout(r1cs.Position{Rows: r, Inputs: i, Aux: x, FullA: fa, FullB: fb, FullAux: fx})
	if err != nil {
		t.Fatal(err)
	}
	next := 4096
	place := func(bytes int) int {
		at := next
		next = (at + bytes + 4095) / 4096 * 4096
		return at
	}
	plane := func(n int) int { return place(8 * ((n + 63) / 64)) }
	rank := func(n int) int { return place(4 * ((n + 4095) / 4096)) }
	var want compact.Offsets
	want.Inputs = place(32 * i)
	want.A0, want.A1, want.B0, want.AFull, want.BFull = plane(r+i), plane(r+i), plane(r+i), plane(r+i), plane(r+i)
	want.X0, want.XFull = plane(x), plane(x)
	want.RankA, want.RankB, want.RankX = rank(r+i), rank(r+i), rank(x)
	want.ListA, want.ListB, want.ListX = place(32*(fa+i)), place(32*fb), place(32*fx)
	if diff := cmp.Diff(want, l.Offsets()); diff != "" {
		t.Errorf("offsets (-want +got):\n%s", diff)
	}
}
