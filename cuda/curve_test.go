package cuda_test

import (
	"fmt"
	"math/big"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"

	"github.com/proofrack/proofrack/cuda/internal/entry"
)

// compareCurve adds, doubles and negates: every point with every other, so that equal and opposite points and infinity
// meet, each in coordinates of its own.
func compareCurve[P comparable, S any](
	t *testing.T, curve string, points []P, scale func() S, want [5]func(p, q P) P,
) {
	t.Helper()
	var p, q []P
	var s []S
	for _, a := range points {
		for _, b := range points {
			p, q, s = append(p, a), append(q, b), append(s, scale())
		}
	}
	lib := entry.Open(t)
	for operation, w := range want {
		got := make([]P, len(p))
		if err := lib.Call("prcuda_test_"+curve, operation, p, q, s, got, len(p)); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if w := w(p[i], q[i]); got[i] != w {
				t.Fatalf("%s, operation %d of points %d and %d: got %v, want %v",
					curve, operation, i/len(points), i%len(points), got[i], w)
			}
		}
	}
}

// multiples are of the generator: the small ones, so that sums of two are again among them, and their opposites.
func multiples() (all []*big.Int) {
	for i := int64(-4); i <= 4; i++ {
		all = append(all, big.NewInt(i))
	}
	return append(all, big.NewInt(0x123456789abcdef))
}

func TestCurveEqualsTheLibrary(t *testing.T) {
	t.Parallel()
	_, _, g1, g2 := bls12381.Generators()
	t.Run("G1", func(t *testing.T) {
		t.Parallel()
		var points []bls12381.G1Affine
		for _, k := range multiples() {
			points = append(points, *new(bls12381.G1Affine).ScalarMultiplication(&g1, k))
		}
		r := random(4)
		add := func(p, q bls12381.G1Affine) bls12381.G1Affine { return *new(bls12381.G1Affine).Add(&p, &q) }
		neg := func(p, _ bls12381.G1Affine) bls12381.G1Affine { return *new(bls12381.G1Affine).Neg(&p) }
		dbl := func(p, _ bls12381.G1Affine) bls12381.G1Affine { return *new(bls12381.G1Affine).Double(&p) }
		compareCurve(t, "g1", points, func() fp.Element { return randomFp(r) },
			[5]func(p, q bls12381.G1Affine) bls12381.G1Affine{add, add, dbl, neg, neg})
	})
	t.Run("G2", func(t *testing.T) {
		t.Parallel()
		var points []bls12381.G2Affine
		for _, k := range multiples() {
			points = append(points, *new(bls12381.G2Affine).ScalarMultiplication(&g2, k))
		}
		r := random(5)
		add := func(p, q bls12381.G2Affine) bls12381.G2Affine { return *new(bls12381.G2Affine).Add(&p, &q) }
		neg := func(p, _ bls12381.G2Affine) bls12381.G2Affine { return *new(bls12381.G2Affine).Neg(&p) }
		dbl := func(p, _ bls12381.G2Affine) bls12381.G2Affine { return *new(bls12381.G2Affine).Double(&p) }
		compareCurve(t, "g2", points, func() bls12381.E2 { return bls12381.E2{A0: randomFp(r), A1: randomFp(r)} },
			[5]func(p, q bls12381.G2Affine) bls12381.G2Affine{add, add, dbl, neg, neg})
	})
}

// Different orders of one sum of many points give one result.
func TestMixedAdditionsKeepTheirSum(t *testing.T) {
	t.Parallel()
	_, _, g1, _ := bls12381.Generators()
	lib := entry.Open(t)
	sum, want := []bls12381.G1Affine{{}}, new(bls12381.G1Affine)
	for i := range int64(40) {
		p := []bls12381.G1Affine{*new(bls12381.G1Affine).ScalarMultiplication(&g1, big.NewInt(i*i*i-3*i))}
		s := []fp.Element{fp.NewElement(uint64(i) + 2)}
		if err := lib.Call("prcuda_test_g1", int(i%2), sum, p, s, sum, 1); err != nil {
			t.Fatal(err)
		}
		want.Add(want, &p[0])
		if sum[0] != *want {
			t.Fatal(fmt.Errorf("after %d points: got %v, want %v", i+1, sum[0], *want))
		}
	}
}
