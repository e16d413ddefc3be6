package msm

import (
	"encoding/binary"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// scalarBits is the room signed digits need: |s| < 2^254 after the choice of sign, plus one bit for the carry.
const scalarBits = 255

// codes are scalars prepared for cutting into signed digits, codeBytes each; see recoder.encode. The last is followed
// by codePadding bytes, so that a window can be read as part of a whole word.
type codes []byte

const (
	codeBytes   = fr.Bytes
	codePadding = 8
	// codeMinus marks, in the last word of a code, that all digits change sign; the bits below are below 2^255.
	codeMinus = uint64(1) << 63
)

func newCodes(n int) codes { return make(codes, n*codeBytes+codePadding) }

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

// encode prepares s as code i: the smaller of s and r-s is taken, so that its digits never carry out of the last
// window, and the sign kept.
func (r *recoder) encode(to codes, i int, s *fr.Element) {
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
	for k, word := range sum {
		binary.LittleEndian.PutUint64(to[i*codeBytes+8*k:], word)
	}
}

// cutter extracts the digits of one window.
type cutter struct {
	at    int // byte that has the window's lowest bit
	shift int
	mask  uint64
	bias  int32
}

func (r *recoder) cutter(w int) cutter {
	at := w * r.bits
	c := cutter{at: at / 8, shift: at % 8, mask: 1<<r.bits - 1, bias: 1 << (r.bits - 1)}
	if w == r.windows-1 {
		c.bias = 0
		c.mask = 1<<(scalarBits-at) - 1
	}
	return c
}

// digit returns a digit of code i, in -2^(c-1)..2^(c-1).
func (c *cutter) digit(s codes, i int) int32 {
	word := binary.LittleEndian.Uint64(s[i*codeBytes+c.at:])
	minus := -int32(s[i*codeBytes+codeBytes-1] >> 7)
	return (int32(word>>(c.shift&7)&c.mask) - c.bias ^ minus) - minus
}

func less(a, b *[fr.Limbs]uint64) bool {
	for i := len(a) - 1; i >= 0; i-- {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}
