package msm

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/google/go-cmp/cmp"
)

// fieldEdges are numbers below p where limbs and carries are at their ends.
func fieldEdges() []*big.Int {
	p := fp.Modulus()
	edges := []*big.Int{big.NewInt(0), big.NewInt(1), big.NewInt(2)}
	for k := uint(0); k <= 380; k++ {
		if k%limbBits < 2 || k%limbBits > 50 || k%64 < 2 || k%64 > 62 {
			v := new(big.Int).Lsh(big.NewInt(1), k)
			edges = append(edges, v, new(big.Int).Sub(v, big.NewInt(1)), new(big.Int).Add(v, big.NewInt(1)))
		}
	}
	for _, v := range append([]*big.Int(nil), edges...) {
		w := new(big.Int).Sub(p, v)
		edges = append(edges, w.Mod(w, p))
	}
	half := new(big.Int).Rsh(p, 1)
	return append(edges, half, new(big.Int).Add(half, big.NewInt(1)))
}

// numbers are n numbers below p: the edges, then random ones.
func numbers(r *rand.Rand, n int, rotate int) []*big.Int {
	edges := fieldEdges()
	p := fp.Modulus()
	out := make([]*big.Int, n)
	for i := range out {
		if i%2 == 0 {
			out[i] = edges[(i/2+rotate)%len(edges)]
			continue
		}
		var b [56]byte
		for j := range b {
			b[j] = byte(r.Uint32())
		}
		out[i] = new(big.Int).SetBytes(b[:])
		out[i].Mod(out[i], p)
	}
	return out
}

// toBlocks writes numbers as they are.
func toBlocks(v []*big.Int) blocks {
	b := newBlocks(len(v) / blockLanes)
	for k := range v {
		l := splitLimbs(v[k])
		b.setLane(k, &l)
	}
	return b
}

func (b blocks) number(k int) *big.Int {
	l := b.lane(k)
	v := new(big.Int)
	for i := limbCount - 1; i >= 0; i-- {
		v.Lsh(v, limbBits).Add(v, new(big.Int).SetUint64(l[i]))
	}
	return v
}

// vectorCase is operands in blocks and what they stand for.
type vectorCase struct {
	numbers []*big.Int
	blocks  blocks
}

func newVectorCase(r *rand.Rand, n, rotate int) vectorCase {
	v := numbers(r, n, rotate)
	return vectorCase{v, toBlocks(v)}
}

// checkLanes compares every lane with want modulo p, and with bound.
func checkLanes(t *testing.T, name string, got blocks, bound float64, want func(k int) *big.Int) {
	t.Helper()
	p := fp.Modulus()
	limit, _ := new(big.Float).Mul(big.NewFloat(bound), new(big.Float).SetInt(p)).Int(nil)
	for k := range len(got) / limbCount {
		v := got.number(k)
		if l := got.lane(k); max(l[0], l[1], l[2], l[3], l[4], l[5], l[6]) > limbMask {
			t.Fatalf("%s lane %d: limbs %x not normalised", name, k, l)
		}
		if v.Cmp(limit) >= 0 {
			t.Fatalf("%s lane %d: %x not below %v p", name, k, v, bound)
		}
		w := want(k)
		if diff := cmp.Diff(w.Mod(w, p).Text(16), v.Mod(v, p).Text(16)); diff != "" {
			t.Fatalf("%s lane %d: %s", name, k, diff)
		}
	}
}

func requireVector(t *testing.T) {
	t.Helper()
	if !vectorSupported() {
		t.Skip("this CPU has no AVX-512 IFMA and VBMI")
	}
}

func TestVectorFieldEqualsBigInt(t *testing.T) {
	t.Parallel()
	requireVector(t)
	r := newRand(30)
	const n = 256
	lanes := n * blockLanes
	list := make([]uint32, 2*n) // of points that are only fetched
	p := fp.Modulus()
	unR := new(big.Int).ModInverse(new(big.Int).Lsh(big.NewInt(1), 416), p)
	for round := range 3 {
		a, b, c := newVectorCase(r, lanes, round), newVectorCase(r, lanes, 5*round), newVectorCase(r, lanes, 7*round)
		out := newBlocks(n)
		product := func(k int) *big.Int {
			v := new(big.Int).Mul(a.numbers[k], b.numbers[k])
			return v.Mul(v, unR)
		}
		mulVec(out.at(0), a.blocks.at(0), b.blocks.at(0), n, blockBytes, blockBytes)
		checkLanes(t, "mul", out, 1.0001, product)
		mulVec(out.at(n-1), a.blocks.at(n-1), b.blocks.at(n-1), n, -blockBytes, -blockBytes)
		checkLanes(t, "mul down", out, 1.0001, product)
		clear(out)
		mulFetchVec(out.at(0), a.blocks.at(0), b.blocks.at(0), n, blockBytes, out.at(0), &list[0], out.at(0), &list[0])
		checkLanes(t, "mul and fetch", out, 1.0001, product)
		mulSubVec(out.at(0), a.blocks.at(0), b.blocks.at(0), c.blocks.at(0), n)
		checkLanes(t, "mul sub", out, 1.0002, func(k int) *big.Int {
			return new(big.Int).Sub(product(k), c.numbers[k])
		})
		sqrSubVec(out.at(0), a.blocks.at(0), c.blocks.at(0), n)
		checkLanes(t, "sqr sub", out, 1.0002, func(k int) *big.Int {
			v := new(big.Int).Mul(a.numbers[k], a.numbers[k])
			return v.Sub(v.Mul(v, unR), c.numbers[k])
		})
		addVec(out.at(0), a.blocks.at(0), b.blocks.at(0), n, blockBytes)
		checkLanes(t, "add", out, 2, func(k int) *big.Int { return new(big.Int).Add(a.numbers[k], b.numbers[k]) })
		subVec(out.at(0), a.blocks.at(0), b.blocks.at(0), n, blockBytes)
		checkLanes(t, "sub", out, 5, func(k int) *big.Int { return new(big.Int).Sub(a.numbers[k], b.numbers[k]) })
		negVec(out.at(0), a.blocks.at(0), n)
		checkLanes(t, "neg", out, 16.001, func(k int) *big.Int { return new(big.Int).Neg(a.numbers[k]) })
	}
}

func TestVectorFp2EqualsBigInt(t *testing.T) {
	t.Parallel()
	requireVector(t)
	r := newRand(31)
	const n = 256
	lanes := n * blockLanes
	list := make([]uint32, 2*n) // of points that are only fetched
	unR := new(big.Int).ModInverse(new(big.Int).Lsh(big.NewInt(1), 416), fp.Modulus())
	for round := range 3 {
		var x [6]vectorCase
		for i := range x {
			x[i] = newVectorCase(r, lanes, (2*i+1)*round)
		}
		minus, out0, out1 := newBlocks(n), newBlocks(n), newBlocks(n)
		negVec(minus.at(0), x[3].blocks.at(0), n)
		mul := func(i, j, k int) *big.Int {
			v := new(big.Int).Mul(x[i].numbers[k], x[j].numbers[k])
			return v.Mul(v, unR)
		}
		first := func(k int) *big.Int { return new(big.Int).Sub(mul(0, 2, k), mul(1, 3, k)) }
		second := func(k int) *big.Int { return new(big.Int).Add(mul(0, 3, k), mul(1, 2, k)) }
		mulE2Vec(out0.at(0), out1.at(0), x[0].blocks.at(0), x[1].blocks.at(0), x[2].blocks.at(0), x[3].blocks.at(0),
			minus.at(0), n, blockBytes, out0.at(0), &list[0], out0.at(0), &list[0])
		checkLanes(t, "mul, first half", out0, 1.0001, first)
		checkLanes(t, "mul, second half", out1, 1.0001, second)
		mulE2SubVec(out0.at(0), out1.at(0), x[0].blocks.at(0), x[1].blocks.at(0), x[2].blocks.at(0),
			x[3].blocks.at(0), minus.at(0), x[4].blocks.at(0), x[5].blocks.at(0), n)
		checkLanes(t, "mul sub, first half", out0, 1.0002, func(k int) *big.Int {
			return new(big.Int).Sub(first(k), x[4].numbers[k])
		})
		checkLanes(t, "mul sub, second half", out1, 1.0002, func(k int) *big.Int {
			return new(big.Int).Sub(second(k), x[5].numbers[k])
		})
	}
}

func TestVectorConversions(t *testing.T) {
	t.Parallel()
	c := constants()
	for _, v := range numbers(newRand(32), 2000, 0) {
		var e fp.Element
		e.SetBigInt(v)
		l := c.limbs(&e)
		if got := c.element(&l); got != e {
			t.Fatalf("%v to limbs and back: got %v", e, got)
		}
		c.negate(&l)
		if got := c.element(&l); !got.Equal(new(fp.Element).Neg(&e)) {
			t.Fatalf("-%v: got %v", e, got)
		}
	}
}
