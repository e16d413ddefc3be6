package poseidon8

import (
	"math/big"
	"strconv"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/proof/poseidon"
)

// drawElement prefers the ends of the range.
func drawElement(t *rapid.T) (e fr.Element) {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		e.SetInt64(-1 - int64(rapid.IntRange(0, 2).Draw(t, "below")))
	case 1:
		e.SetUint64(uint64(rapid.IntRange(0, 2).Draw(t, "small")))
	case 2:
		// All limbs as large as they get in the library's form.
		e = fr.Element{0xffffffff00000000, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48}
	default:
		e.SetBytes(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(t, "bytes"))
	}
	return e
}

func TestHashManyEqualsPoseidon(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		arity := rapid.SampledFrom([]int{2, 4, 8, 11}).Draw(t, "arity")
		inputs := make([]fr.Element, arity*rapid.IntRange(0, 19).Draw(t, "count"))
		for i := range inputs {
			inputs[i] = drawElement(t)
		}
		got := make([]fr.Element, len(inputs)/arity)
		HashMany(got, inputs, arity)
		for k := range got {
			if want := poseidon.Hash(inputs[k*arity : (k+1)*arity]); got[k] != want {
				t.Fatalf("arity %d, hash %d of %d: got %v, want %v", arity, k, len(got), got[k], want)
			}
		}
	})
}

func TestHashManyEqualsPublishedVector(t *testing.T) {
	t.Parallel()
	inputs := make([]fr.Element, 8*lanes)
	for i := range inputs {
		inputs[i].SetUint64(uint64(i % 8))
	}
	got := make([]fr.Element, lanes)
	HashMany(got, inputs, 8)
	const want = "2394611da3a5de5512010042116770774b682e9d9cc4aed92a9934f56d38a5e6"
	for k := range got {
		if text := got[k].Text(16); text != want {
			t.Errorf("lane %d: got %s, want %s", k, text, want)
		}
	}
}

// The kernels one by one, at the bounds that doc.go allows: operands up to 16 r, results below what it says.
func TestKernelsKeepTheirBounds(t *testing.T) {
	t.Parallel()
	if !supported() {
		t.Skip("no 52-bit multiply-add on this processor")
	}
	modulus := fr.Modulus()
	factor := func(n int64) limbs {
		return limbsOf(new(big.Int).Sub(new(big.Int).Mul(modulus, big.NewInt(n)), big.NewInt(1)))
	}
	inverse := new(big.Int).ModInverse(new(big.Int).Lsh(big.NewInt(1), 260), modulus)
	check := func(name string, got limbs, want *big.Int, bound int64) {
		t.Helper()
		value := valueOf(got)
		if new(big.Int).Mod(value, modulus).Cmp(new(big.Int).Mod(want, modulus)) != 0 {
			t.Errorf("%s: wrong value %v", name, value)
		}
		if value.Cmp(new(big.Int).Mul(modulus, big.NewInt(bound))) >= 0 {
			t.Errorf("%s: result %v is not below %d r", name, value, bound)
		}
	}
	var state [maxWidth]vec
	constants := make([]limbs, maxWidth)
	fill := func(n int64) {
		for k := range state {
			constants[k] = factor(1)
			for lane := range lanes {
				state[k].setLane(lane, factor(n))
			}
		}
	}
	product := func(x, y limbs) *big.Int {
		out := new(big.Int).Mul(valueOf(x), valueOf(y))
		return out.Mul(out, inverse)
	}
	fill(16)
	var out vec
	dot(&out, &state[0], &constants[0], maxWidth)
	check("dot", out.lane(7), new(big.Int).Mul(product(factor(16), factor(1)), big.NewInt(maxWidth)), 7)

	fill(13)
	mulAdd(&state[0], &constants[0], maxWidth-1)
	sum := new(big.Int).Add(product(factor(13), factor(1)), valueOf(factor(13)))
	check("mulAdd", state[maxWidth-1].lane(3), sum, 15)
	check("mulAdd's first element", state[0].lane(3), valueOf(factor(13)), 13)

	fill(10)
	fifthPower(&state[0], &constants[0], 2)
	square := product(factor(10), factor(10))
	fourth := new(big.Int).Mul(new(big.Int).Mul(square, square), inverse)
	fifth := new(big.Int).Mul(new(big.Int).Mul(fourth, valueOf(factor(10))), inverse)
	check("fifthPower", state[1].lane(0), fifth.Add(fifth, valueOf(factor(1))), 3)
	check("element behind", state[2].lane(0), valueOf(factor(10)), 10)

	fill(16)
	scale(&state[0], &constants[0], 2)
	check("scale", state[1].lane(5), product(factor(16), factor(1)), 2)
}

func limbsOf(value *big.Int) (l limbs) {
	for i := range l {
		limb := new(big.Int).Rsh(value, uint(limbBits*i))
		l[i] = limb.Uint64() & limbMask
	}
	return l
}

func valueOf(l limbs) *big.Int {
	value := new(big.Int)
	for i := len(l) - 1; i >= 0; i-- {
		value.Lsh(value, limbBits).Add(value, new(big.Int).SetUint64(l[i]))
	}
	return value
}

func TestHashManyPanicsOnWrongLengths(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(){
		"length": func() { HashMany(make([]fr.Element, 2), make([]fr.Element, 15), 8) },
		"arity":  func() { HashMany(make([]fr.Element, 2), make([]fr.Element, 6), 3) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("wrong %s did not panic", name)
				}
			}()
			call()
		}()
	}
}

func BenchmarkHashMany(b *testing.B) {
	const count = 64
	for _, arity := range []int{2, 8, 11} {
		inputs := make([]fr.Element, arity*count)
		for i := range inputs {
			inputs[i].MustSetRandom()
		}
		dst := make([]fr.Element, count)
		HashMany(dst, inputs, arity)
		b.Run("arity="+strconv.Itoa(arity), func(b *testing.B) {
			for b.Loop() {
				HashMany(dst, inputs, arity)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/count, "ns/hash")
		})
	}
}
