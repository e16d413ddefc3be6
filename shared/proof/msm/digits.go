package msm

import (
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// scalarBits is the room signed digits need: |s| < 2^254 after recode's choice of sign, plus one bit for the carry.
const scalarBits = 255

// order is r, the order of G1 and G2, in little-endian words.
func order() [fr.Limbs]uint64 {
	minusOne := fr.NewElement(0)
	one := fr.One()
	minusOne.Sub(&minusOne, &one)
	r := minusOne.Bits()
	r[0]++ // r-1 is even, so no carry
	return r
}

// recode writes the signed digits of s to digits[0], digits[stride], ...: one for each window of c bits, each in
// -2^(c-1)..2^(c-1), with s = sum digits[w] 2^(cw) mod r. The smaller of s and r-s is taken, so that its digits
// never carry out of windowCount(c) windows.
func recode(digits []int32, stride int, s *fr.Element, c int, r *[fr.Limbs]uint64) {
	v := s.Bits()
	sign := int32(1)
	var n [fr.Limbs]uint64
	var borrow uint64
	for i := range n {
		n[i], borrow = bits.Sub64(r[i], v[i], borrow)
	}
	if less(&n, &v) {
		v, sign = n, -1
	}
	carry := uint64(0)
	half, mask := uint64(1)<<(c-1), uint64(1)<<c-1
	for w, at := 0, 0; w < windowCount(c); w, at = w+1, at+stride {
		d := window(&v, w*c, mask) + carry
		carry = 0
		if d > half {
			digits[at] = sign * (int32(d) - int32(1)<<c)
			carry = 1
			continue
		}
		digits[at] = sign * int32(d)
	}
}

// window returns the bits of v from bit at, cut to mask; bits past the end are 0.
func window(v *[fr.Limbs]uint64, at int, mask uint64) uint64 {
	i, shift := at/64, uint(at%64)
	if i >= len(v) {
		return 0
	}
	d := v[i] >> shift
	if shift > 0 && i+1 < len(v) {
		d |= v[i+1] << (64 - shift)
	}
	return d & mask
}

func less(a, b *[fr.Limbs]uint64) bool {
	for i := len(a) - 1; i >= 0; i-- {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}
