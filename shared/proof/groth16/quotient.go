package groth16

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// vectors are a partition's evaluations, block by block. *compact.Segment has it.
type vectors interface {
	ExpandA(from int, dst []fr.Element)
	ExpandB(from int, dst []fr.Element)
	ExpandC(from int, dst []fr.Element)
}

// quotient computes the coefficients of h = (A·B − C)/Z (spec c2-formats.md 3.6) into first, in natural order; second is
// scratch. Both have the domain's size. rowCount evaluations are given, the rest of the domain is zero.
//
// With P = A·B, of degree below 2m, and C ≡ P modulo x^m − 1, h is the upper half of P. P modulo x^m − 1 interpolates
// a·b on the domain, and P modulo x^m + 1 interpolates a·b on the coset where x^m = −1. The two are lower + upper half
// and lower − upper half, so h is half their difference: six transforms instead of seven, and c is never stored.
func (t *transform) quotient(v vectors, rowCount int, first, second fr.Vector) {
	t.expand(v.ExpandA, rowCount, first)
	t.toCoset(first)
	t.expand(v.ExpandB, rowCount, second)
	t.toCoset(second)
	t.rows(func(_ int, row func(fr.Vector) fr.Vector) {
		r := row(first)
		r.Mul(r, row(second))
	})
	t.columns(first, false)
	t.expand(v.ExpandC, rowCount, second)
	t.columns(second, false)
	var half fr.Element
	half.SetUint64(2).Inverse(&half)
	t.rows(func(p int, row func(fr.Vector) fr.Vector) {
		onCoset, onDomain := row(first), row(second)
		t.rowToCoefficients(onCoset)
		t.shiftInverse.scale(p, onCoset)
		t.rowToCoefficients(onDomain)
		onDomain.Sub(onDomain, onCoset)
		onDomain.ScalarMul(onDomain, &half)
	})
	t.naturalOrder(first, second)
}

// expandBlock is how many evaluations are expanded at once.
const expandBlock = 1 << 14

// expand fills a vector with evaluations and zeros.
func (t *transform) expand(expand func(from int, dst []fr.Element), rowCount int, x fr.Vector) {
	blocks := (t.size() + expandBlock - 1) / expandBlock
	parallel(t.workers, blocks, func(i int) {
		from := i * expandBlock
		block := x[from:min(from+expandBlock, len(x))]
		n := max(0, min(len(block), rowCount-from))
		if n > 0 {
			expand(from, block[:n])
		}
		clear(block[n:])
	})
}
