package r1cs_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/crypto/blake2s"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/r1cs/r1cstest"
)

func TestDigestHashesTheBytesOfTheSpecification(t *testing.T) {
	t.Parallel()
	var text []byte // spec c2-circuit.md 6.3, by hand
	u64 := func(values ...uint64) {
		for _, v := range values {
			text = binary.BigEndian.AppendUint64(text, v)
		}
	}
	term := func(kind byte, index uint64, coeff fr.Element) {
		text = append(text, kind)
		u64(index)
		b := coeff.Bytes()
		text = append(text, b[:]...)
	}
	totals := r1cs.Position{Inputs: 3, Aux: 1 << 20, Rows: 4000}
	u64(3, 1<<20, 4000)
	digest := r1cs.NewDigest(totals)
	for i := range 4000 { // more than the digest's buffer
		k := r1cs.Element(uint64(i) + 2)
		digest.Row(lc(k, r1cs.One, -1, r1cs.InputVar(2), 3, r1cs.AuxVar(i)), nil, lc(negative(k), r1cs.AuxVar(1<<20-1)))
		u64(3)
		term('I', 0, k)
		term('I', 2, integer(-1))
		term('A', uint64(i), integer(3))
		u64(0, 1)
		term('A', 1<<20-1, negative(k))
	}
	want := blake2s.Sum256(text)
	if got := digest.Hex(); got != hex.EncodeToString(want[:]) || digest.Rows() != 4000 {
		t.Fatalf("got %s over %d rows, want %x over 4000", got, digest.Rows(), want)
	}
}

func TestDensityMarksWhatOccurs(t *testing.T) {
	t.Parallel()
	d := r1cs.NewDensity(r1cs.Position{Inputs: 66, Aux: 130})
	rows := func(step int) {
		for i := step; i < 130; i += 2 {
			d.Row(lc(1, r1cs.InputVar(i%66), 1, r1cs.AuxVar(i)), nil, lc(1, r1cs.AuxVar(1)))
		}
	}
	var group sync.WaitGroup
	group.Go(func() { rows(0) }) // even ones, from two goroutines at once
	group.Go(func() { rows(0) })
	group.Wait()
	d.Row(nil, lc(1, r1cs.One, 1, r1cs.InputVar(65), 1, r1cs.AuxVar(129)), lc(1, r1cs.InputVar(7)))
	want := &r1cs.Density{
		AAux:    []uint64{0x5555555555555555, 0x5555555555555555, 1},
		BAux:    []uint64{0, 0, 2},
		BInputs: []uint64{1, 2},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

// TestSatisfactionFindsAnyFlippedValue changes one value at a time: some row that it occurs in must fail.
func TestSatisfactionFindsAnyFlippedValue(t *testing.T) {
	t.Parallel()
	walk := func(s *r1cs.System) {
		x := s.Alloc(r1cs.Element(1234567))
		limbs := s.NumBits(x)
		a, b, c := limbs[0], limbs[1].Complement(), limbs[2]
		sum := s.BitSum()
		sum.Add(s.Maj(a, b, s.Xor(b, c)), 0)
		sum.Add(s.Ch(c, a, b), 40)
		y := s.Assign(sum.Lin())
		s.Inputize(product(s, s.Lin(y), s.Lin(x), fr.One()))
	}
	trace := r1cstest.Check(t, walk)
	for i := range trace.Aux {
		flipped := r1cs.AuxVar(i)
		check := &r1cs.Satisfaction{Value: func(v r1cs.Var) fr.Element {
			e := trace.Value(v)
			if v == flipped {
				one := fr.One()
				e.Sub(&one, &e)
			}
			return e
		}}
		walk(r1cs.NewSystem(r1cs.Start(), check, nil))
		if len(check.Unsatisfied()) == 0 {
			t.Errorf("auxiliary %d flipped: no row fails", i)
		}
		for _, row := range check.Unsatisfied() {
			if !occurs(trace.Rows[row], flipped) {
				t.Errorf("auxiliary %d flipped: row %d fails, where it does not occur", i, row)
			}
		}
	}
}

func occurs(row r1cstest.Row, v r1cs.Var) bool {
	for _, combination := range []r1cs.LC{row.A, row.B, row.C} {
		for _, term := range combination {
			if term.Var == v {
				return true
			}
		}
	}
	return false
}

func TestSatisfactionNamesTheFirstRowsAndShowsAll(t *testing.T) {
	t.Parallel()
	var seen []string
	check := &r1cs.Satisfaction{
		Value: func(v r1cs.Var) fr.Element { return r1cs.Element(uint64(v.Index()) + 1) },
		Visit: func(row int, a, b, c *fr.Element) {
			seen = append(seen, fmt.Sprintf("%d: %s·%s=%s", row, a.String(), b.String(), c.String()))
		},
	}
	good := r1cstest.Row{A: lc(2, r1cs.AuxVar(1)), B: lc(1, r1cs.AuxVar(2)), C: lc(12, r1cs.One)}
	bad := r1cstest.Row{A: lc(2, r1cs.AuxVar(1)), B: nil, C: lc(1, r1cs.One)}
	for _, row := range []r1cstest.Row{good, bad, good, bad} {
		check.Row(row.A, row.B, row.C)
	}
	want := []string{"0: 4·3=12", "1: 4·0=1", "2: 4·3=12", "3: 4·0=1"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("visited: want (-), got (+):\n%s", diff)
	}
	if diff := cmp.Diff([]int{1, 3}, check.Unsatisfied()); diff != "" {
		t.Errorf("unsatisfied: want (-), got (+):\n%s", diff)
	}
	for range 100 {
		check.Row(bad.A, bad.B, bad.C)
	}
	if got := len(check.Unsatisfied()); got != 16 || check.Rows() != 104 {
		t.Errorf("%d rows named of %d, want 16 of 104", got, check.Rows())
	}
}

func TestInputRowsAreAppendedForEveryInput(t *testing.T) {
	t.Parallel()
	trace := r1cstest.New()
	r1cs.InputRows(trace, 3)
	var want []r1cstest.Row
	for i := range 3 {
		want = append(want, r1cstest.Row{A: lc(1, r1cs.InputVar(i))})
	}
	if diff := cmp.Diff(want, trace.Rows); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestVariablesOrderInputsFirst(t *testing.T) {
	t.Parallel()
	in, aux := r1cs.InputVar(17), r1cs.AuxVar(3)
	if got := fmt.Sprint(in, aux, r1cs.One); got != "I17 A3 I0" {
		t.Errorf("got %s", got)
	}
	if in >= aux || in.IsAux() || !aux.IsAux() || in.Index() != 17 || aux.Index() != 3 || r1cs.InputVar(0) != r1cs.One {
		t.Errorf("%s and %s: order, kind or index is wrong", in, aux)
	}
}

func TestDomainIsTheNextPowerOfTwo(t *testing.T) {
	t.Parallel()
	for want, p := range map[int]r1cs.Position{
		0: {Rows: 0, Inputs: 1}, 1: {Rows: 1, Inputs: 1}, 2: {Rows: 2, Inputs: 1},
		22: {Rows: 2687921, Inputs: 40}, 27: {Rows: 130278541, Inputs: 328}, 3: {Rows: 5, Inputs: 3},
	} {
		if got := p.DomainBits(); got != want {
			t.Errorf("%+v: got 2^%d, want 2^%d", p, got, want)
		}
	}
}
