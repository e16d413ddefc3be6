package cuda_test

import (
	"fmt"
	"math/bits"
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	"github.com/consensys/gnark-crypto/utils"

	"github.com/proofrack/proofrack/cuda/internal/entry"
)

// polynomials are vectors to transform: random ones, ones of numbers at the field's ends, and constants.
func polynomials(seed uint64, size int) [][]fr.Element {
	r, edge := random(seed), frEdges()
	all := make([][]fr.Element, 4)
	for i := range all {
		all[i] = make([]fr.Element, size)
	}
	for i := range size {
		all[0][i] = randomFr(r)
		all[1][i] = edge[r.IntN(len(edge))]
		all[2][i] = edge[len(edge)/2]
	}
	all[3][size-1].SetOne() // else zero
	return all
}

// libraryValues are the values of the polynomial, bit-reversed, by the library: at the roots of x^m − 1, or of x^m + 1.
func libraryValues(t *testing.T, coefficients []fr.Element, coset bool) []fr.Element {
	t.Helper()
	x := slices.Clone(coefficients)
	if coset {
		zeta, err := fft.Generator(uint64(2 * len(x)))
		if err != nil {
			t.Fatal(err)
		}
		power := fr.One()
		for i := range x {
			x[i].Mul(&x[i], &power)
			power.Mul(&power, &zeta)
		}
	}
	fft.NewDomain(uint64(len(x))).FFT(x, fft.DIF)
	return x
}

func differ(t *testing.T, what string, got, want []fr.Element) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("%s: element %d: got %v, want %v", what, i, got[i].String(), want[i].String())
		}
	}
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Sizes of one pass, of two (from 2^11) and, with the last, of three; pairs of stages and single ones.
func transformBits() []int { return []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14} }

func TestTransformsEqualTheLibrary(t *testing.T) {
	t.Parallel()
	for _, n := range transformBits() {
		t.Run(fmt.Sprintf("2^%d", n), func(t *testing.T) {
			t.Parallel()
			lib := entry.Open(t)
			compareTransforms(t, lib, n, polynomials(uint64(n), 1<<n))
		})
	}
}

func compareTransforms(t *testing.T, lib *entry.Library, n int, polynomials [][]fr.Element) {
	t.Helper()
	m := fr.NewElement(1 << n)
	for _, coset := range []bool{false, true} {
		for i, coefficients := range polynomials {
			what := fmt.Sprintf("polynomial %d, coset %v", i, coset)
			x := slices.Clone(coefficients)
			if err := lib.Call("prcuda_test_ntt", x, n, flag(coset), 0, 2); err != nil {
				t.Fatal(err)
			}
			differ(t, what+", to values", x, libraryValues(t, coefficients, coset))
			if err := lib.Call("prcuda_test_ntt", x, n, flag(coset), 1, 1); err != nil {
				t.Fatal(err)
			}
			want := make(fr.Vector, len(x))
			want.ScalarMul(coefficients, &m)
			differ(t, what+", back", x, want)
		}
	}
}

func TestTransformOfThreePassesEqualsTheLibrary(t *testing.T) {
	t.Parallel()
	const n = 20
	r := random(20)
	x := make([]fr.Element, 1<<n)
	for i := range x {
		x[i] = randomFr(r)
	}
	want := libraryValues(t, x, true)
	if err := entry.Open(t).Call("prcuda_test_ntt", x, n, 1, 0, 2); err != nil {
		t.Fatal(err)
	}
	differ(t, "to values", x, want)
}

// A pass has no more stages than a tile takes, and neighbouring elements stay together.
func TestPassesCoverEveryDomain(t *testing.T) {
	t.Parallel()
	lib := entry.Open(t)
	for n := 1; n <= 31; n++ {
		var stages [8]int32
		if err := lib.Call("prcuda_test_ntt_passes", n, stages[:]); err != nil {
			t.Fatal(err)
		}
		passes := slices.Index(stages[:], 0)
		sum := 0
		for i, s := range stages[:passes] {
			sum += int(s)
			if last := i == passes-1; s < 1 || last && s > 10 || !last && s > 9 {
				t.Errorf("2^%d: passes %v", n, stages)
			}
		}
		if sum != n || n == 27 && passes > 3 {
			t.Errorf("2^%d: passes %v", n, stages)
		}
	}
}

// evaluations are the a and b evaluations of a segment (docs/formats.md, "Segment"), and what they stand for.
type evaluations struct {
	planes       [5][]uint64 // a0, a1, b0, a full, b full
	rankA, rankB []uint32
	listA, listB []fr.Element
	a, b, c      []fr.Element
}

// makeEvaluations has full elements where full tells, by row and vector.
func makeEvaluations(seed uint64, rows int, full func(row, vector int) bool) *evaluations {
	r, edge := random(seed), frEdges()
	e := &evaluations{a: make([]fr.Element, rows), b: make([]fr.Element, rows), c: make([]fr.Element, rows)}
	for i := range e.planes {
		e.planes[i] = make([]uint64, (rows+63)/64)
	}
	element := func() fr.Element {
		if r.IntN(4) == 0 {
			return edge[r.IntN(len(edge))]
		}
		return randomFr(r)
	}
	var minus fr.Element
	minus.SetInt64(-1)
	codes := []fr.Element{{}, fr.One(), fr.NewElement(2), minus}
	set := func(plane, row int, bit uint64) { e.planes[plane][row/64] |= bit << (row % 64) }
	for row := range rows {
		if full(row, 0) {
			e.a[row] = element()
			e.listA = append(e.listA, e.a[row])
			set(3, row, 1)
		} else {
			code := r.Uint64N(4)
			set(0, row, code&1)
			set(1, row, code>>1)
			e.a[row] = codes[code]
		}
		if full(row, 1) {
			e.b[row] = element()
			e.listB = append(e.listB, e.b[row])
			set(4, row, 1)
		} else {
			code := r.Uint64N(2)
			set(2, row, code)
			e.b[row] = codes[code]
		}
		e.c[row].Mul(&e.a[row], &e.b[row])
	}
	e.rankA, e.rankB = rankIndex(e.planes[3]), rankIndex(e.planes[4])
	return e
}

// rankIndex has the number of ones before every 4096th position.
func rankIndex(plane []uint64) (rank []uint32) {
	n := 0
	for i, w := range plane {
		if i%64 == 0 {
			rank = append(rank, uint32(n))
		}
		n += bits.OnesCount64(w)
	}
	return rank
}

func (e *evaluations) arguments(first, out any, n int) []any {
	return []any{
		first, out, e.planes[0], e.planes[1], e.planes[2], e.planes[3], e.planes[4], e.rankA, e.rankB, e.listA, e.listB,
		len(e.a), n,
	}
}

// segments are evaluations of many shapes: all codes, all full elements, mixtures; domains that are full and that are
// not, down to two points; rows that end within a word, at its end, and at the rank index's edges.
func segments() map[string]struct {
	e *evaluations
	n int
} {
	some := func(row, vector int) bool { return row*2654435761>>7%11 < 3-vector }
	all := map[string]struct {
		e *evaluations
		n int
	}{}
	for i, c := range []struct {
		rows, n int
		name    string
		full    func(row, vector int) bool
	}{
		{1, 1, "one row", func(int, int) bool { return true }},
		{2, 1, "two rows", func(row, vector int) bool { return row == vector }},
		{3, 2, "three rows", some},
		{8, 3, "a full domain of 2^3", some},
		{29, 5, "2^5", some},
		{63, 6, "a row less than a word", some},
		{64, 6, "a word", some},
		{129, 8, "half empty", some},
		{1 << 9, 9, "all full", func(int, int) bool { return true }},
		{1000, 10, "no full", func(int, int) bool { return false }},
		{4096, 12, "a block of ranks", some},
		{4097, 13, "a row more", some},
		{12345, 14, "2^14", some},
		{1<<14 - 1, 14, "full a alone", func(_, vector int) bool { return vector == 0 }},
	} {
		all[c.name] = struct {
			e *evaluations
			n int
		}{makeEvaluations(uint64(i), c.rows, c.full), c.n}
	}
	return all
}

func TestExpansionIsTheSegmentsVectors(t *testing.T) {
	t.Parallel()
	for name, c := range segments() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lib := entry.Open(t)
			for vector, values := range [][]fr.Element{c.e.a, c.e.b, c.e.c} {
				got, want := make([]fr.Element, 1<<c.n), make([]fr.Element, 1<<c.n)
				for i := range got {
					got[i] = fr.Element{1, 2, 3, 4} // that nothing is left as it was
				}
				for i, v := range values {
					want[bits.Reverse64(uint64(i))>>(64-c.n)] = v
				}
				if err := lib.Call("prcuda_test_expand", c.e.arguments(vector, got, c.n)...); err != nil {
					t.Fatal(err)
				}
				differ(t, fmt.Sprintf("vector %d", vector), got, want)
			}
		})
	}
}

// libraryQuotient is h with A·B − C = h·(x^m − 1), by polynomials of the library.
func libraryQuotient(t *testing.T, e *evaluations, n int) []fr.Element {
	t.Helper()
	m := 1 << n
	small, large := fft.NewDomain(uint64(m)), fft.NewDomain(uint64(2*m))
	interpolate := func(values []fr.Element) []fr.Element {
		x := make([]fr.Element, m)
		copy(x, values)
		small.FFTInverse(x, fft.DIF)
		utils.BitReverse(x)
		return x
	}
	product := append(interpolate(e.a), make([]fr.Element, m)...)
	b := append(interpolate(e.b), make([]fr.Element, m)...)
	large.FFT(product, fft.DIF)
	large.FFT(b, fft.DIF)
	values := fr.Vector(product)
	values.Mul(values, b)
	large.FFTInverse(product, fft.DIT)
	h, c := product[m:], interpolate(e.c)
	for i := range h { // what is left below x^m
		if low := new(fr.Element).Sub(&product[i], &c[i]); !low.Add(low, &h[i]).IsZero() {
			t.Fatalf("A·B − C is no multiple of x^m − 1 in coefficient %d", i)
		}
	}
	return h
}

func TestQuotientIsThePolynomials(t *testing.T) {
	t.Parallel()
	for name, c := range segments() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := make([]fr.Element, 2<<c.n)
			if err := entry.Open(t).Call("prcuda_test_quotient", c.e.arguments(0, got, c.n)...); err != nil {
				t.Fatal(err)
			}
			differ(t, "quotient", got, libraryQuotient(t, c.e, c.n))
			if !got[1<<c.n-1].IsZero() {
				t.Error("the last coefficient is not zero")
			}
		})
	}
}

// Whoever waits between the kernels of a quotient can end it at any of them.
func TestQuotientEndsWhenItIsTold(t *testing.T) {
	t.Parallel()
	lib := entry.Open(t)
	e := makeEvaluations(7, 5000, func(row, _ int) bool { return row%5 == 0 })
	out := make([]fr.Element, 2<<13)
	calls := 1
	for ; calls < 100; calls++ {
		if err := lib.Call("prcuda_test_quotient", e.arguments(calls, out, 13)...); err == nil {
			break
		}
	}
	if calls < 13 || calls == 100 {
		t.Errorf("%d points where it can be ended, want one after each pass of six transforms", calls-1)
	}
}
