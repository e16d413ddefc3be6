package r1cstest

import (
	"fmt"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// Row is one recorded constraint a·b = c.
type Row struct{ A, B, C r1cs.LC }

// Trace is both ends of a walk: it implements r1cs.RowSink and r1cs.Values and keeps everything, one element or
// combination each. Make one with New.
type Trace struct {
	Rows   []Row
	A, B   []fr.Element // evaluations as handed over
	Inputs []fr.Element // ONE first
	Aux    []fr.Element

	// Kinds has one letter per row: s when a and b are small, f when both are full, a when a alone is.
	Kinds []byte
	// AuxKinds has one letter per auxiliary: s for a bit, f for a full element.
	AuxKinds []byte
}

// New is an empty trace that holds ONE alone.
func New() *Trace { return &Trace{Inputs: []fr.Element{fr.One()}} }

// Walk records one walk from the start.
func Walk(walk func(*r1cs.System)) *Trace {
	t := New()
	s := r1cs.NewSystem(r1cs.Start(), t, t)
	walk(s)
	return t
}

// Row records a constraint.
func (t *Trace) Row(a, b, c r1cs.LC) {
	none := r1cs.LC(nil) // so that empty combinations are nil
	t.Rows = append(t.Rows, Row{A: append(none, a...), B: append(none, b...), C: append(none, c...)})
}

// SmallRows records n rows with small values.
func (t *Trace) SmallRows(n int, a0, a1, b uint64) {
	mustFit(n, a0, a1, b)
	for i := range n {
		t.A = append(t.A, fromCode(a0>>i&1|a1>>i&1<<1))
		t.B = append(t.B, r1cs.Element(b>>i&1))
		t.Kinds = append(t.Kinds, 's')
	}
}

// fromCode is the value of a small a evaluation (r1cs.Values): 0, 1, 2 or −1.
func fromCode(code uint64) fr.Element {
	var e fr.Element
	if code == 3 {
		e.SetInt64(-1)
		return e
	}
	e.SetUint64(code)
	return e
}

func mustFit(n int, planes ...uint64) {
	for _, p := range planes {
		if n < 0 || n > 64 || n < 64 && p>>n != 0 {
			panic(fmt.Sprintf("r1cstest: %#x handed over as %d bits", p, n))
		}
	}
}

// FullRow records a row with full a and b.
func (t *Trace) FullRow(a, b *fr.Element) {
	t.A, t.B, t.Kinds = append(t.A, *a), append(t.B, *b), append(t.Kinds, 'f')
}

// FullBitRow records a row with full a and a bit for b.
func (t *Trace) FullBitRow(a *fr.Element, b uint64) {
	mustFit(1, b)
	t.A, t.B, t.Kinds = append(t.A, *a), append(t.B, r1cs.Element(b)), append(t.Kinds, 'a')
}

// AuxBits records n auxiliaries that are bits.
func (t *Trace) AuxBits(n int, bits uint64) {
	mustFit(n, bits)
	for i := range n {
		t.Aux, t.AuxKinds = append(t.Aux, r1cs.Element(bits>>i&1)), append(t.AuxKinds, 's')
	}
}

// AuxFull records an auxiliary that is a field element.
func (t *Trace) AuxFull(v *fr.Element) {
	t.Aux, t.AuxKinds = append(t.Aux, *v), append(t.AuxKinds, 'f')
}

// Input records an input.
func (t *Trace) Input(v *fr.Element) { t.Inputs = append(t.Inputs, *v) }

// Value is a variable's recorded value.
func (t *Trace) Value(v r1cs.Var) fr.Element {
	if v.IsAux() {
		return t.Aux[v.Index()]
	}
	return t.Inputs[v.Index()]
}

// Position is how far the recorded values have come.
func (t *Trace) Position() r1cs.Position {
	p := r1cs.Position{Rows: len(t.A), Inputs: len(t.Inputs), Aux: len(t.Aux)}
	for _, k := range t.Kinds {
		if k != 's' {
			p.FullA++
		}
		if k == 'f' {
			p.FullB++
		}
	}
	for _, k := range t.AuxKinds {
		if k == 'f' {
			p.FullAux++
		}
	}
	return p
}

// Failure describes the first row whose combinations and handed-over values contradict each other or whose constraint
// does not hold; it is empty when there is none.
func (t *Trace) Failure() string {
	if len(t.Rows) != len(t.A) {
		return fmt.Sprintf("%d rows described, %d handed over", len(t.Rows), len(t.A))
	}
	for i, row := range t.Rows {
		a, b, c := row.A.Eval(t.Value), row.B.Eval(t.Value), row.C.Eval(t.Value)
		if !a.Equal(&t.A[i]) || !b.Equal(&t.B[i]) {
			return fmt.Sprintf("row %d: a, b handed over as %s, %s, the row says %s, %s",
				i, t.A[i].String(), t.B[i].String(), a.String(), b.String())
		}
		var product fr.Element
		if product.Mul(&a, &b); !product.Equal(&c) {
			return fmt.Sprintf("row %d does not hold: %s · %s ≠ %s", i, a.String(), b.String(), c.String())
		}
	}
	return ""
}

// TB is what Check needs of a test; *testing.T and *rapid.T have it.
type TB interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// Check walks four times, with both ends, with either end alone and with none, and fails the test when they differ,
// when a row does not hold or when the system counted otherwise. It returns the recorded walk.
func Check(tb TB, walk func(*r1cs.System)) *Trace {
	tb.Helper()
	both, rows, values := New(), New(), New()
	systems := []*r1cs.System{
		r1cs.NewSystem(r1cs.Start(), both, both), r1cs.NewSystem(r1cs.Start(), rows, nil),
		r1cs.NewSystem(r1cs.Start(), nil, values), r1cs.NewSystem(r1cs.Start(), nil, nil),
	}
	for _, s := range systems {
		walk(s)
		if got, want := s.Position(), systems[0].Position(); got != want {
			tb.Fatalf("position is %+v, with both ends %+v", got, want)
		}
	}
	if got, want := systems[0].Position(), both.Position(); got != want {
		tb.Fatalf("the system counted %+v, handed over was %+v", got, want)
	}
	if why := both.Failure(); why != "" {
		tb.Fatal(why)
	}
	if why := both.sameRows(rows); why != "" {
		tb.Fatalf("rows without values: %s", why)
	}
	if !slices.Equal(both.A, values.A) || !slices.Equal(both.B, values.B) || !slices.Equal(both.Aux, values.Aux) ||
		!slices.Equal(both.Inputs, values.Inputs) || !slices.Equal(both.Kinds, values.Kinds) ||
		!slices.Equal(both.AuxKinds, values.AuxKinds) {
		tb.Fatal("values without rows differ from those with rows")
	}
	return both
}

func (t *Trace) sameRows(other *Trace) string {
	if len(t.Rows) != len(other.Rows) {
		return fmt.Sprintf("%d rows and %d", len(t.Rows), len(other.Rows))
	}
	for i, row := range t.Rows {
		o := other.Rows[i]
		if !slices.Equal(row.A, o.A) || !slices.Equal(row.B, o.B) || !slices.Equal(row.C, o.C) {
			return fmt.Sprintf("row %d is %v and %v", i, row, o)
		}
	}
	return ""
}

// SameStructure describes the first difference between the structures of two walks: combinations and kinds of values,
// without the values. It is empty when there is none.
func (t *Trace) SameStructure(other *Trace) string {
	if !slices.Equal(t.Kinds, other.Kinds) || !slices.Equal(t.AuxKinds, other.AuxKinds) ||
		len(t.Inputs) != len(other.Inputs) {
		return "kinds of values differ"
	}
	return t.sameRows(other)
}
