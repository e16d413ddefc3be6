package msm

import (
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// scalarBits is the room signed digits need: |s| < 2^254 after the choice of sign, plus one bit for the carry.
const scalarBits = 255

// code is a scalar prepared for cutting into signed digits: see recoder.encode.
type code [fr.Limbs]uint64

// codeMinus marks a code whose digits all change sign; the bits below are below 2^255.
const codeMinus = uint64(1) << 63

// recoder cuts scalars into signed digits of c bits.
type recoder struct {
	bits    int
	windows int
	order   [fr.Limbs]uint64 // r
	// bias is 2^(c-1) in every window but the last. Added to a number, it makes the carries between its signed
	// digits at once: digit w is window w of the sum less 2^(c-1). The last digit has no bias.
	bias [fr.Limbs]uint64
}

func newRecoder(c int) recoder {
	r := recoder{bits: c, windows: windowCount(c), order: order()}
	for w := range r.windows - 1 {
		at := w*c + c - 1
		r.bias[at/64] |= 1 << (at % 64)
	}
	return r
}

// order is r, the order of G1 and G2, in little-endian words.
func order() [fr.Limbs]uint64 {
	var minusOne fr.Element
	one := fr.One()
	minusOne.Neg(&one)
	r := minusOne.Bits()
	r[0]++ // r-1 is even, so no carry
	return r
}

// encode prepares s: the smaller of s and r-s is taken, so that its digits never carry out of the last window, and
// the sign kept.
func (r *recoder) encode(s *fr.Element) code {
	v := s.Bits()
	var n, sum [fr.Limbs]uint64
	var borrow, carry uint64
	for i := range n {
		n[i], borrow = bits.Sub64(r.order[i], v[i], borrow)
	}
	minus := less(&n, &v)
	if minus {
		v = n
	}
	for i := range sum {
		sum[i], carry = bits.Add64(v[i], r.bias[i], carry)
	}
	if minus {
		sum[fr.Limbs-1] |= codeMinus
	}
	return sum
}

// cutter extracts the digits of one window.
type cutter struct {
	word, shift int
	mask        uint64
	bias        int32
}

func (r *recoder) cutter(w int) cutter {
	at := w * r.bits
	c := cutter{word: at / 64, shift: at % 64, mask: 1<<r.bits - 1, bias: 1 << (r.bits - 1)}
	if w == r.windows-1 {
		c.bias = 0
	}
	return c
}

// digit returns a digit of the prepared scalar, in -2^(c-1)..2^(c-1).
func (c *cutter) digit(s *code) int32 {
	last := s[fr.Limbs-1] &^ codeMinus
	var d uint64
	switch {
	case c.word == fr.Limbs-1:
		d = last >> c.shift
	case c.word == fr.Limbs-2:
		d = s[c.word]>>c.shift | last<<1<<(63-c.shift)
	default:
		d = s[c.word]>>c.shift | s[c.word+1]<<1<<(63-c.shift)
	}
	digit := int32(d&c.mask) - c.bias
	if s[fr.Limbs-1]&codeMinus != 0 {
		return -digit
	}
	return digit
}

func less(a, b *[fr.Limbs]uint64) bool {
	for i := len(a) - 1; i >= 0; i-- {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}
