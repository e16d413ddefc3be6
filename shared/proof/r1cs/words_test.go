package r1cs

import (
	"math/bits"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestCompressGathersTheMaskedBits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.Uint64().Draw(t, "w")
		mask := rapid.OneOf(rapid.Uint64(), rapid.Map(rapid.IntRange(0, 64), low), rapid.Just(uint64(1)<<63)).Draw(t, "mask")
		var want uint64
		next := 0
		for i := range 64 {
			if mask>>i&1 == 1 {
				want |= w >> i & 1 << next
				next++
			}
		}
		if got := compress(w, mask); got != want {
			t.Fatalf("got %#x, want %#x", got, want)
		}
	})
}

func TestInterleaveAlternatesTwoWords(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		even, odd := rapid.Uint64().Draw(t, "even"), rapid.Uint64().Draw(t, "odd")
		got := interleave(even, odd)
		for i := range 32 {
			if got>>(2*i)&1 != even>>i&1 || got>>(2*i+1)&1 != odd>>i&1 {
				t.Fatalf("%#x and %#x give %#x: bits %d", even, odd, got, i)
			}
		}
	})
}

func TestLowHasThatManyBits(t *testing.T) {
	t.Parallel()
	for n := range 65 {
		if got := bits.OnesCount64(low(n)); got != n || bits.Len64(low(n)) != n {
			t.Errorf("low(%d) = %#x", n, low(n))
		}
	}
}

func TestMoebiusPolynomialEqualsItsTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		table := rapid.Uint16().Draw(t, "table")
		p := moebius(table)
		if !slices.IsSorted(p) || len(slices.Compact(slices.Clone(p))) != len(p) {
			t.Fatalf("monomials %v are not a set", p)
		}
		for v := range uint64(16) {
			m := monomials(v&1, v>>1&1, v>>2&1, v>>3&1)
			if got, want := p.eval(&m)&1, uint64(table>>v&1); got != want {
				t.Fatalf("at operands %04b: got %d, want %d", v, got, want)
			}
		}
	})
}

// codeValue is what a two-bit code stands for.
func codeValue(a0, a1 uint64) int { return [4]int{0, 1, 2, -1}[a0|a1<<1] }

func TestCompiledGatesSatisfyTheirRow(t *testing.T) {
	t.Parallel()
	for name, g := range map[string]*gate{
		"bool": boolGate, "xor": xorGate, "and": andGate, "ch": chGate, "maj": majGate,
	} {
		for v := range uint(16) {
			if !g.reachable(v) {
				continue
			}
			m := monomials(uint64(v&1), uint64(v>>1&1), uint64(v>>2&1), uint64(v>>3&1))
			a, b, out := codeValue(g.a0.eval(&m)&1, g.a1.eval(&m)&1), int(g.b.eval(&m)&1), int(g.out.eval(&m)&1)
			if a != g.row.a.eval(v, out) || b != g.row.b.eval(v, out) || a*b != g.row.c.eval(v, out) {
				t.Errorf("gate %s at %04b: a %d, b %d, output %d", name, v, a, b, out)
			}
		}
	}
}

func TestRowsWithoutCodesOrSolutionsDoNotCompile(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]row{
		"a is 3":        {a: lin{x: 3}, b: lin{y: 1}, c: lin{out: 1}},
		"b is -1":       {a: lin{x: 1}, b: lin{y: -1}, c: lin{out: 1}},
		"no output bit": {a: lin{x: 1}, b: lin{y: 1}, c: lin{one: 2, out: 1}},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: compiled", name)
				}
			}()
			compile(r)
		}()
	}
}

func TestNormalizeSortsMergesAndDropsZeros(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var terms []Term
		sums := map[Var]int64{}
		for range rapid.IntRange(0, 12).Draw(t, "terms") {
			v, k := InputVar(rapid.IntRange(0, 3).Draw(t, "var")), rapid.Int64Range(-2, 2).Draw(t, "coeff")
			if rapid.Bool().Draw(t, "aux") {
				v = AuxVar(v.Index())
			}
			term := Term{Var: v}
			term.Coeff.SetInt64(k)
			terms = append(terms, term)
			sums[v] += k
		}
		want := LC{}
		for _, v := range []Var{0, 1, 2, 3, AuxVar(0), AuxVar(1), AuxVar(2), AuxVar(3)} {
			if sums[v] != 0 {
				term := Term{Var: v}
				term.Coeff.SetInt64(sums[v])
				want = append(want, term)
			}
		}
		if diff := cmp.Diff(want, append(LC{}, normalize(terms)...)); diff != "" {
			t.Fatalf("want (-), got (+):\n%s", diff)
		}
	})
}
