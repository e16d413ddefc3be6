package cuda_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/cuda/internal/entry"
)

// random is a source whose values are the same in every run.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 381)) }

func randomFr(r *rand.Rand) (x fr.Element) {
	for {
		x = fr.Element{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64() >> 1}
		if below(x[:], fr.Modulus()) {
			return x
		}
	}
}

func randomFp(r *rand.Rand) (x fp.Element) {
	for {
		x = fp.Element{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64() >> 3}
		if below(x[:], fp.Modulus()) {
			return x
		}
	}
}

func below(words []uint64, modulus *big.Int) bool {
	x := new(big.Int)
	for _, w := range slices.Backward(words) {
		x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(w))
	}
	return x.Cmp(modulus) < 0
}

// extremes are numbers at the ends of a field and of its representation, as memory holds them.
func extremes(modulus *big.Int, words int) [][]uint64 {
	var all [][]uint64
	add := func(x *big.Int) {
		x.Mod(x, modulus)
		e := make([]uint64, words)
		for i := range e {
			e[i] = new(big.Int).Rsh(x, uint(64*i)).Uint64()
		}
		all = append(all, e)
	}
	for _, shift := range []uint{0, 31, 32, 33, 64, 128, 250} {
		add(new(big.Int).Lsh(big.NewInt(1), shift))
		add(new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), shift), big.NewInt(1)))
		add(new(big.Int).Sub(modulus, new(big.Int).Lsh(big.NewInt(1), shift)))
	}
	r := new(big.Int).Lsh(big.NewInt(1), uint(64*words)) // one, in Montgomery form
	add(r)
	add(new(big.Int).Neg(r))
	add(new(big.Int).Rsh(modulus, 1))
	add(new(big.Int).Add(new(big.Int).Rsh(modulus, 1), big.NewInt(1)))
	return all
}

// pairs are all pairs of edges, then random ones.
func pairs[E any](edge []E, random func() E, n int) (x, y []E) {
	for _, a := range edge {
		for _, b := range edge {
			x, y = append(x, a), append(y, b)
		}
	}
	for range n {
		x, y = append(x, random()), append(y, random())
	}
	return x, y
}

func frEdges() (all []fr.Element) {
	for _, e := range extremes(fr.Modulus(), fr.Limbs) {
		all = append(all, fr.Element(e))
	}
	return all
}

func fpEdges() (all []fp.Element) {
	for _, e := range extremes(fp.Modulus(), fp.Limbs) {
		all = append(all, fp.Element(e))
	}
	return all
}

// compareField calls an operation's entry and compares with want, form included.
func compareField[E comparable](
	t *testing.T, lib *entry.Library, field string, operation int, x, y []E, want func(out, x, y *E),
) {
	t.Helper()
	got := make([]E, len(x))
	if err := lib.Call("prcuda_test_"+field, operation, x, y, got, len(x)); err != nil {
		t.Fatal(err)
	}
	for i := range x {
		var w E
		want(&w, &x[i], &y[i])
		if got[i] != w {
			t.Fatalf("%s, operation %d of %v and %v: got %v, want %v", field, operation, x[i], y[i], got[i], w)
		}
	}
}

func TestScalarFieldEqualsTheLibrary(t *testing.T) {
	t.Parallel()
	r := random(1)
	x, y := pairs(frEdges(), func() fr.Element { return randomFr(r) }, 3000)
	mul := func(out, x, y *fr.Element) { out.Mul(x, y) }
	rSquare := *new(fr.Element).SetBigInt(new(big.Int).Lsh(big.NewInt(1), 256)) // 2^256 mod r, in Montgomery form
	for operation, want := range []func(out, x, y *fr.Element){
		func(out, x, y *fr.Element) { out.Add(x, y) },
		func(out, x, y *fr.Element) { out.Sub(x, y) },
		mul,
		func(out, x, _ *fr.Element) { out.Square(x) },
		func(out, x, _ *fr.Element) { out.Neg(x) },
		func(out, x, _ *fr.Element) { out.Double(x) },
		func(out, x, _ *fr.Element) { out.Inverse(x) },
		mul, mul, // on limbs of 32 and of 64 bits
		func(out, x, _ *fr.Element) { *out = x.Bits() },
		func(out, x, _ *fr.Element) {
			out.Mul(x, &rSquare)
		},
		func(out, x, y *fr.Element) { out.Exp(*x, new(big.Int).SetUint64(y[0]&0xffffffff)) },
		func(out, _, y *fr.Element) { out.SetUint64(y[0]) },
		func(out, x, y *fr.Element) { out.SetUint64(y[0]&15).Mul(out, x) },
	} {
		t.Run(fmt.Sprint(operation), func(t *testing.T) {
			t.Parallel()
			compareField(t, entry.Open(t), "fr", operation, x, y, want)
		})
	}
}

func TestBaseFieldEqualsTheLibrary(t *testing.T) {
	t.Parallel()
	r := random(2)
	x, y := pairs(fpEdges(), func() fp.Element { return randomFp(r) }, 3000)
	mul := func(out, x, y *fp.Element) { out.Mul(x, y) }
	for operation, want := range []func(out, x, y *fp.Element){
		func(out, x, y *fp.Element) { out.Add(x, y) },
		func(out, x, y *fp.Element) { out.Sub(x, y) },
		mul,
		func(out, x, _ *fp.Element) { out.Square(x) },
		func(out, x, _ *fp.Element) { out.Neg(x) },
		func(out, x, _ *fp.Element) { out.Double(x) },
		func(out, x, _ *fp.Element) { out.Inverse(x) },
		mul, mul,
		func(out, x, _ *fp.Element) { *out = x.Bits() },
	} {
		t.Run(fmt.Sprint(operation), func(t *testing.T) {
			t.Parallel()
			compareField(t, entry.Open(t), "fp", operation, x, y, want)
		})
	}
}

func TestExtensionFieldEqualsTheLibrary(t *testing.T) {
	t.Parallel()
	r := random(3)
	var edge []bls12381.E2
	few := fpEdges()
	for i, a := range few {
		edge = append(edge, bls12381.E2{A0: a, A1: few[(i*7+3)%len(few)]}, bls12381.E2{A0: a}, bls12381.E2{A1: a})
	}
	x, y := pairs(edge, func() bls12381.E2 { return bls12381.E2{A0: randomFp(r), A1: randomFp(r)} }, 1000)
	for operation, want := range []func(out, x, y *bls12381.E2){
		func(out, x, y *bls12381.E2) { out.Add(x, y) },
		func(out, x, y *bls12381.E2) { out.Sub(x, y) },
		func(out, x, y *bls12381.E2) { out.Mul(x, y) },
		func(out, x, _ *bls12381.E2) { out.Square(x) },
		func(out, x, _ *bls12381.E2) { out.Neg(x) },
		func(out, x, _ *bls12381.E2) { out.Double(x) },
		func(out, x, _ *bls12381.E2) { out.Inverse(x) },
	} {
		t.Run(fmt.Sprint(operation), func(t *testing.T) {
			t.Parallel()
			compareField(t, entry.Open(t), "fp2", operation, x, y, want)
		})
	}
}
