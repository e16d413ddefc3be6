package msm

import (
	"slices"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
)

// blocks2 are the two halves of elements of Fp2.
type blocks2 [2]blocks

func newBlocks2(n int) blocks2 { return blocks2{newBlocks(n), newBlocks(n)} }

func (b blocks2) lane(k int) (l [2]limbs) { return [2]limbs{b[0].lane(k), b[1].lane(k)} }

// vectorFp2 adds G2 points; see vectorFp.
type vectorFp2 struct {
	constants           *vectorConstants
	dx, dy, x1, y1, sum blocks2
	prefix, back        blocks2
	minus               blocks // second half of a factor, negated
	one                 blocks
	infinite            []int
	fetch               fetch
}

func newVectorFp2() *vectorFp2 {
	c := constants()
	f := &vectorFp2{constants: c, one: filled(c.one), minus: newBlocks(batchBlocks)}
	for _, b := range []*blocks2{&f.dx, &f.dy, &f.x1, &f.y1, &f.sum} {
		*b = newBlocks2(batchBlocks)
	}
	f.prefix, f.back = newBlocks2(batchBlocks+2), newBlocks2(batchBlocks+2)
	return f
}

func (f *vectorFp2) sums(dst, src *vectorStore, p pairs, n, count int, ahead pairs) []int {
	const shift = 8
	d, s := p.d, p.s
	f.fetch = fetch{dst.coord(0), src.coord(0), ahead}
	for c := range 2 {
		gatherX(f.dx[c].at(0), f.x1[c].at(0), f.sum[c].at(0), dst.coord(c), &d[0], src.coord(c), &s[0], n, shift)
		gatherY(f.dy[c].at(0), f.y1[c].at(0), dst.coord(2+c), &d[0], src.coord(2+c), &s[0], n, shift)
	}
	f.infinite = f.infinite[:0]
	if !f.invert(n) {
		f.special(n * blockLanes)
		if !f.invert(n) {
			panic("msm: zero denominator left in a batch")
		}
	}
	lambda, x3, y3 := f.dy, f.sum, f.y1
	f.mul(f.prefix, f.prefix, blocks2{f.back[0][2*blockWords:], f.back[1][2*blockWords:]}, n, 2)
	f.mul(lambda, f.dy, f.prefix, n, 3)
	f.squareSub(x3, lambda, f.sum, n)
	for c := range 2 {
		subVec(f.x1[c].at(0), f.x1[c].at(0), x3[c].at(0), n, blockBytes)
	}
	negVec(f.minus.at(0), f.x1[1].at(0), n)
	mulE2SubVec(y3[0].at(0), y3[1].at(0), lambda[0].at(0), lambda[1].at(0), f.x1[0].at(0), f.x1[1].at(0),
		f.minus.at(0), f.y1[0].at(0), f.y1[1].at(0), n)
	for c := range 2 {
		scatterVec(dst.coord(c), &d[0], x3[c].at(0), n, shift)
		scatterVec(dst.coord(2+c), &d[0], y3[c].at(0), n, shift)
	}
	return slices.DeleteFunc(f.infinite, func(k int) bool { return k >= count })
}

// mul sets dst to a b and fetches a quarter of the points ahead; dst may be a, not b.
func (f *vectorFp2) mul(dst, a, b blocks2, n, quarter int) {
	negVec(f.minus.at(0), b[1].at(0), n)
	d, s := f.fetch.quarter(quarter, n)
	mulE2Vec(dst[0].at(0), dst[1].at(0), a[0].at(0), a[1].at(0), b[0].at(0), b[1].at(0), f.minus.at(0),
		n, blockBytes, f.fetch.dst, d, f.fetch.src, s)
}

// squareSub sets dst to a^2 - c, brought down for keeping: (a0+a1)(a0-a1) - c0 and 2 a0 a1 - c1. The prefixes are
// its scratch; dst may be c.
func (f *vectorFp2) squareSub(dst, a, c blocks2, n int) {
	u, v := f.prefix[0].at(0), f.prefix[1].at(0)
	addVec(u, a[0].at(0), a[1].at(0), n, blockBytes)
	subVec(v, a[0].at(0), a[1].at(0), n, blockBytes)
	mulSubVec(dst[0].at(0), u, v, c[0].at(0), n)
	addVec(u, a[0].at(0), a[0].at(0), n, blockBytes)
	mulSubVec(dst[1].at(0), u, a[1].at(0), c[1].at(0), n)
}

// invert is vectorFp.invert.
func (f *vectorFp2) invert(n int) bool {
	for i := range 2 {
		copy(f.prefix[0][i*blockWords:], f.one)
		clear(f.prefix[1][i*blockWords : (i+1)*blockWords])
	}
	negVec(f.minus.at(0), f.dx[1].at(0), n)
	d, s := f.fetch.quarter(0, n)
	mulE2Vec(f.prefix[0].at(2), f.prefix[1].at(2), f.prefix[0].at(0), f.prefix[1].at(0),
		f.dx[0].at(0), f.dx[1].at(0), f.minus.at(0), n, blockBytes, f.fetch.dst, d, f.fetch.src, s)
	var e, products [2 * blockLanes]bls12381.E2
	var product bls12381.E2
	product.SetOne()
	for k := range e {
		l := f.prefix.lane(n*blockLanes + k)
		e[k] = bls12381.E2{A0: f.constants.join(&l[0]), A1: f.constants.join(&l[1])}
		if e[k].IsZero() {
			return false
		}
		products[k] = product
		product.Mul(&product, &e[k])
	}
	product.Inverse(&product)
	product.MulByElement(&product, &f.constants.undo)
	for k := len(e) - 1; k >= 0; k-- {
		var inverse bls12381.E2
		inverse.Mul(&product, &products[k])
		product.Mul(&product, &e[k])
		for c, half := range []*fp.Element{&inverse.A0, &inverse.A1} {
			l := cut((*[fp.Limbs]uint64)(half))
			f.back[c].setLane(n*blockLanes+k, &l)
		}
	}
	if n > 2 {
		d, s = f.fetch.quarter(1, n)
		mulE2Vec(f.back[0].at(n-1), f.back[1].at(n-1), f.back[0].at(n+1), f.back[1].at(n+1),
			f.dx[0].at(n-1), f.dx[1].at(n-1), f.minus.at(n-1), n-2, -blockBytes,
			f.fetch.dst, d, f.fetch.src, s)
	}
	return true
}

// special is vectorFp.special.
func (f *vectorFp2) special(lanes int) {
	for k := range lanes {
		dx := f.element(f.dx, k)
		if !dx.IsZero() {
			continue
		}
		slope, x, y := f.element(f.dy, k), f.element(f.x1, k), f.element(f.y1, k)
		if !slope.IsZero() || y.IsZero() {
			f.infinite = append(f.infinite, k)
			one := bls12381.E2{}
			f.setElement(f.dx, k, one.SetOne())
			continue
		}
		var x2 bls12381.E2
		x2.Square(&x)
		slope.Double(&x2)
		slope.Add(&slope, &x2)
		y.Double(&y)
		f.setElement(f.dx, k, &y)
		f.setElement(f.dy, k, &slope)
	}
}

func (f *vectorFp2) element(b blocks2, k int) bls12381.E2 {
	l := b.lane(k)
	return bls12381.E2{A0: f.constants.element(&l[0]), A1: f.constants.element(&l[1])}
}

func (f *vectorFp2) setElement(b blocks2, k int, e *bls12381.E2) {
	for c, half := range []*fp.Element{&e.A0, &e.A1} {
		l := f.constants.limbs(half)
		b[c].setLane(k, &l)
	}
}
