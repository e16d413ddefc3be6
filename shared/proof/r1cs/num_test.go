package r1cs_test

import (
	"math/big"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/r1cs/r1cstest"
)

func drawElement(t *rapid.T, name string) fr.Element {
	var e fr.Element
	e.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, name))
	return e
}

// lc is Σ coefficients · variables, given alternately.
func lc(pairs ...any) r1cs.LC {
	var out r1cs.LC
	for i := 0; i < len(pairs); i += 2 {
		term := r1cs.Term{Var: pairs[i+1].(r1cs.Var)}
		switch k := pairs[i].(type) {
		case int:
			term.Coeff.SetInt64(int64(k))
		case fr.Element:
			term.Coeff = k
		}
		out = append(out, term)
	}
	return out
}

func negative(e fr.Element) fr.Element {
	var minus fr.Element
	minus.Neg(&e)
	return minus
}

func TestNumberGadgetsHaveTheRowsOfTheSpecification(t *testing.T) {
	t.Parallel()
	x, y, post := r1cs.Element(7), r1cs.Element(11), r1cs.Element(5)
	a0, a1, a2, one := r1cs.AuxVar(0), r1cs.AuxVar(1), r1cs.AuxVar(2), r1cs.One
	row := func(a, b, c r1cs.LC) []r1cstest.Row { return []r1cstest.Row{{A: a, B: b, C: c}} }
	for name, c := range map[string]struct {
		walk  func(s *r1cs.System, a, b r1cs.Num)
		want  []r1cstest.Row
		kinds string
	}{
		"product (2.8 sbox)": {func(s *r1cs.System, a, b r1cs.Num) { product(s, s.Lin(a), s.Lin(b), post) },
			row(lc(1, a0), lc(1, a1), lc(-5, one, 1, a2)), "f"},
		"square (2.1)": {func(s *r1cs.System, a, _ r1cs.Num) { product(s, s.Lin(a), s.Lin(a), fr.Element{}) },
			row(lc(1, a0), lc(1, a0), lc(1, a2)), "f"},
		"assign (2.8 ensure)": {func(s *r1cs.System, a, b r1cs.Num) { s.Assign(s.Plus(s.Lin(a), post, s.Lin(b))) },
			row(lc(1, a0, 5, a1), lc(1, one), lc(1, a2)), "a"},
		"assign a sum with a constant": {func(s *r1cs.System, a, _ r1cs.Num) { s.Assign(s.Shift(a, &post)) },
			row(lc(5, one, 1, a0), lc(1, one), lc(1, a2)), "a"},
		"assign a constant": {func(s *r1cs.System, _, _ r1cs.Num) { s.Assign(s.Constant(post)) },
			row(lc(5, one), lc(1, one), lc(1, a2)), "a"},
		"pack into input (2.6)": {func(s *r1cs.System, a, _ r1cs.Num) { s.AssignInput(s.Lin(a)) },
			row(lc(1, a0), lc(1, one), lc(1, r1cs.InputVar(1))), "a"},
		"inputize (2.1): the input is in a": {func(s *r1cs.System, a, _ r1cs.Num) { s.Inputize(a) },
			row(lc(1, r1cs.InputVar(1)), lc(1, one), lc(1, a0)), "a"},
		"pick (3.2)": {func(s *r1cs.System, a, b r1cs.Num) { s.Pick(r1cs.ConstBits(1, 1), a, b) },
			row(lc(-1, a0, 1, a1), lc(1, one), lc(1, a1, -1, a2)), "a"},
		"combination with merged and cancelled terms": {func(s *r1cs.System, a, b r1cs.Num) {
			minus := negative(post)
			sum := s.Combine([]fr.Element{post, post, minus}, []r1cs.Lin{s.Lin(a), s.Lin(b), s.Lin(a)})
			s.Assign(s.Plus(sum, fr.One(), s.Lin(b)))
		}, row(lc(6, a1), lc(1, one), lc(1, a2)), "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace := r1cstest.Check(t, func(s *r1cs.System) { c.walk(s, s.Alloc(x), s.Alloc(y)) })
			if diff := cmp.Diff(c.want, trace.Rows); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
			if got := string(trace.Kinds); got != c.kinds {
				t.Errorf("kinds of rows: got %s, want %s", got, c.kinds)
			}
		})
	}
}

func TestPickChoosesByTheBit(t *testing.T) {
	t.Parallel()
	a, b := r1cs.Element(7), r1cs.Element(11)
	for bit, want := range []fr.Element{b, a} {
		for _, negate := range []bool{false, true} {
			trace := r1cstest.Check(t, func(s *r1cs.System) {
				cond := s.AllocBits(1, uint64(bit))
				if negate {
					cond = s.AllocBits(1, uint64(1-bit)).Complement()
				}
				if got := s.Pick(cond, s.Alloc(a), s.Alloc(b)); got.Val != want {
					t.Errorf("bit %d: picked %s, want %s", bit, got.Val.String(), want.String())
				}
			})
			if got := trace.Aux[len(trace.Aux)-1]; got != want {
				t.Errorf("bit %d: allocated %s, want %s", bit, got.String(), want.String())
			}
		}
	}
}

func TestNumberGadgetsAreSatisfiedByAnyValues(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x, y, k := drawElement(t, "x"), drawElement(t, "y"), drawElement(t, "k")
		bit := rapid.Uint64Range(0, 1).Draw(t, "bit")
		r1cstest.Check(t, func(s *r1cs.System) {
			a, b := s.Alloc(x), s.Alloc(y)
			limbs := s.NumBits(a)
			sum := s.BitSum()
			for i, limb := range limbs {
				sum.Add(limb, 32*i)
			}
			if again := s.Assign(sum.Lin()); again.Val != x {
				t.Fatalf("bits of %s sum up to %s", x.String(), again.Val.String())
			}
			p := s.Pick(s.AllocBits(1, bit), a, b)
			q := product(s, s.Plus(s.Lin(p), k, s.Lin(b)), s.Combine([]fr.Element{k, x}, []r1cs.Lin{s.Lin(a), s.Constant(k)}), y)
			s.Inputize(q)
			s.Equal(s.Assign(s.Lin(q)), q)
			s.AssignInput(s.Constant(k))
		})
	})
}

func TestBitSumsAreExact(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		type addend struct {
			n, shift int
			val      uint64
		}
		var addends []addend
		want := new(big.Int)
		for range rapid.IntRange(0, 10).Draw(t, "addends") {
			a := addend{n: rapid.IntRange(1, 64).Draw(t, "n"), shift: rapid.IntRange(0, 180).Draw(t, "shift")}
			a.val = rapid.Uint64().Draw(t, "val") >> (64 - a.n)
			addends = append(addends, a)
			want.Add(want, new(big.Int).Lsh(new(big.Int).SetUint64(a.val), uint(a.shift)))
		}
		r1cstest.Check(t, func(s *r1cs.System) {
			sum := s.BitSum()
			for i, a := range addends {
				switch i % 3 {
				case 0:
					sum.Add(s.AllocBits(a.n, a.val), a.shift)
				case 1:
					sum.Add(r1cs.ConstBits(a.n, a.val), a.shift)
				case 2:
					flipped := ^a.val << (64 - a.n) >> (64 - a.n)
					sum.Add(s.AllocBits(a.n, flipped).Complement(), a.shift)
				}
			}
			if sum.Empty() != (len(addends) == 0) {
				t.Fatalf("empty is %v after %d addends", sum.Empty(), len(addends))
			}
			got := s.Assign(sum.Lin()).Val
			if got.BigInt(new(big.Int)).Cmp(want) != 0 {
				t.Fatalf("sum %s, want %s", got.String(), want)
			}
		})
	})
}

func TestEqualSumsIsOneRowAndStartsAfresh(t *testing.T) {
	t.Parallel()
	trace := r1cstest.Check(t, func(s *r1cs.System) {
		l, r := s.BitSum(), s.BitSum()
		for _, v := range []uint64{5, 9} {
			l.Add(r1cs.ConstBits(4, v), 1)
			r.Add(s.AllocPlainBits(5, 2*v), 0)
			s.EqualSums(&l, &r)
			if !l.Empty() || !r.Empty() {
				t.Error("sums are not empty after the row")
			}
		}
	})
	bits := func(first int) r1cs.LC {
		var out r1cs.LC
		for i := range 5 {
			out = append(out, lc(1<<i, r1cs.AuxVar(first+i))...)
		}
		return out
	}
	one := lc(1, r1cs.One)
	want := []r1cstest.Row{{A: lc(10, r1cs.One), B: one, C: bits(0)}, {A: lc(18, r1cs.One), B: one, C: bits(5)}}
	if diff := cmp.Diff(want, trace.Rows); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
}

func TestASectionContinuesTheNumbering(t *testing.T) {
	t.Parallel()
	start := r1cs.Position{Rows: 100, Inputs: 3, Aux: 50, FullA: 7, FullB: 6, FullAux: 5}
	trace := r1cstest.New()
	s := r1cs.NewSystem(start, trace, nil)
	outside := r1cs.NumOf(r1cs.AuxVar(2), r1cs.Element(4))
	s.Inputize(outside)
	s.Assign(s.Lin(outside))
	one := lc(1, r1cs.One)
	want := []r1cstest.Row{
		{A: lc(1, r1cs.InputVar(3)), B: one, C: lc(1, r1cs.AuxVar(2))},
		{A: lc(1, r1cs.AuxVar(2)), B: one, C: lc(1, r1cs.AuxVar(50))},
	}
	if diff := cmp.Diff(want, trace.Rows); diff != "" {
		t.Errorf("want (-), got (+):\n%s", diff)
	}
	end := r1cs.Position{Rows: 102, Inputs: 4, Aux: 51, FullA: 9, FullB: 6, FullAux: 6}
	if got := s.Position(); got != end || end.Minus(start).Plus(start) != end {
		t.Errorf("position: got %+v, want %+v", got, end)
	}
}

func TestMisusePanics(t *testing.T) {
	t.Parallel()
	s := r1cs.NewSystem(r1cs.Start(), nil, nil)
	for name, misuse := range map[string]func(){
		"gate over words of different length": func() { s.Xor(r1cs.ConstBits(3, 0), r1cs.ConstBits(4, 0)) },
		"value too large for its bits":        func() { s.AllocBits(3, 8) },
		"65 bits":                             func() { s.AllocBits(65, 0) },
		"negative index":                      func() { r1cs.AuxVar(-1) },
		"index too large":                     func() { r1cs.InputVar(r1cs.VarsMax + 1) },
		"majority over 33 bits":               func() { s.Maj(s.AllocBits(33, 0), s.AllocBits(33, 0), s.AllocBits(33, 0)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			misuse()
		}()
	}
}

// product is s.Product for combinations that have no name.
func product(s *r1cs.System, a, b r1cs.Lin, post fr.Element) r1cs.Num {
	return s.Product(&a, &b, &post)
}
