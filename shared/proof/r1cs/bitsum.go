package r1cs

import (
	"encoding/binary"
	"math/bits"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// BitSum is a linear combination of bits with powers of two: Σ 2^shift·(bits). Its value is an integer below 2^256; the
// circuits here stay below the field's modulus (spec 2.5).
type BitSum struct {
	system *System
	value  [4]uint64
	terms  []Term
	used   bool
}

// BitSum starts an empty sum.
func (s *System) BitSum() BitSum { return BitSum{system: s} }

// Empty tells whether nothing was added since the start.
func (b *BitSum) Empty() bool { return !b.used }

// Reset empties the sum and keeps its memory.
func (b *BitSum) Reset() { *b = BitSum{system: b.system, terms: b.terms[:0]} }

// Add adds 2^shift · Σ 2^i·bits_i.
func (b *BitSum) Add(v Bits, shift int) {
	b.used = true
	b.addValue(v.Val, shift)
	if b.system.rows == nil {
		return
	}
	pow := powersOfTwo()
	for i := range v.N {
		k := &pow[shift+i]
		switch at := uint64(1) << uint(i); {
		case v.Const&at != 0:
			if v.Val&at != 0 {
				b.terms = append(b.terms, Term{One, *k})
			}
		case v.Not&at != 0:
			var minus fr.Element
			minus.Neg(k)
			b.terms = append(b.terms, Term{One, *k}, Term{v.vars[i], minus})
		default:
			b.terms = append(b.terms, Term{v.vars[i], *k})
		}
	}
}

func (b *BitSum) addValue(v uint64, shift int) {
	word, offset := shift/64, uint(shift%64)
	var carry uint64
	b.value[word], carry = bits.Add64(b.value[word], v<<offset, 0)
	for next := v >> 1 >> (63 - offset); word < 3; next = 0 {
		word++
		b.value[word], carry = bits.Add64(b.value[word], next, carry)
	}
}

// element is the value as a field element.
func (b *BitSum) element() fr.Element {
	var buf [32]byte
	for i, w := range b.value {
		binary.BigEndian.PutUint64(buf[24-8*i:], w)
	}
	var e fr.Element
	e.SetBytes(buf[:])
	return e
}

// Lin is the sum as a linear combination. The sum must not be used again until Reset.
func (b *BitSum) Lin() Lin { return Lin{Val: b.element(), lc: normalize(b.terms)} }

// EqualSums enforces l·ONE = r and resets both (spec 2.5 flush).
func (s *System) EqualSums(l, r *BitSum) {
	s.times(l.Lin(), normalize(r.terms))
	l.Reset()
	r.Reset()
}

var powersOfTwo = sync.OnceValue(func() *[256]fr.Element {
	var p [256]fr.Element
	p[0].SetOne()
	for i := 1; i < len(p); i++ {
		p[i].Double(&p[i-1])
	}
	return &p
})

// NumBitCount is the number of bits of a decomposition: the field's (spec 2.1 to_bits_le).
const NumBitCount = fr.Bits

// Limbs is a 256-bit string as eight 32-bit lists, least significant first.
type Limbs [8]Bits

// NumBits is the non-strict decomposition of x (spec 2.1 to_bits_le): 255 bits, least significant first, padded with a
// constant false bit.
func (s *System) NumBits(x Num) Limbs {
	words := x.Val.Bits()
	sum := s.BitSum()
	var limbs Limbs
	for i, w := range words {
		n := min(64, NumBitCount-64*i)
		b := s.AllocBits(n, w)
		sum.Add(b, 64*i)
		limbs[2*i] = b.Slice(0, 32)
		limbs[2*i+1] = b.Slice(32, n-32)
	}
	limbs[7] = limbs[7].Concat(ConstBits(1, 0))
	s.pos.Rows++
	if s.values != nil {
		s.values.SmallRows(1, 0, 0, 0)
	}
	if s.rows != nil {
		minus := Term{Var: x.v, Coeff: fr.One()}
		minus.Coeff.Neg(&minus.Coeff)
		s.rows.Row(nil, nil, normalize(append(sum.terms, minus)))
	}
	return limbs
}
