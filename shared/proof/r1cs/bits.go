package r1cs

import "math/bits"

// Bits is a list of at most 64 Booleans (spec 2.3), bit 0 first. Each is a constant, a variable or a negated variable;
// which of them is decided by the circuit, never by values.
type Bits struct {
	N     int    // how many
	Val   uint64 // their values, negation applied
	Const uint64 // which are constants
	Not   uint64 // which are negated variables

	vars []Var // the variables, N of them; nil when no structure is wanted or all bits are constants
}

// ConstBits are n ≤ 64 constants.
func ConstBits(n int, val uint64) Bits { return Bits{N: n, Val: val & low(n), Const: low(n)} }

func low(n int) uint64 { return ^uint64(0) >> (64 - uint(n)) & -b2u(n > 0) }

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// AllConst tells whether every bit is a constant.
func (b Bits) AllConst() bool { return b.Const == low(b.N) }

// Complement is the bitwise not; it allocates nothing.
func (b Bits) Complement() Bits { return b.flip(low(b.N)) }

func (b Bits) flip(mask uint64) Bits {
	b.Val ^= mask
	b.Not ^= mask &^ b.Const
	return b
}

// bare is the list of the variables themselves, negations taken off.
func (b Bits) bare() Bits {
	b.Val ^= b.Not
	b.Not = 0
	return b
}

// Slice is the list of bits from … from+n−1.
func (b Bits) Slice(from, n int) Bits {
	m := low(n)
	out := Bits{N: n, Val: b.Val >> uint(from) & m, Const: b.Const >> uint(from) & m, Not: b.Not >> uint(from) & m}
	if b.vars != nil {
		out.vars = b.vars[from : from+n]
	}
	return out
}

// Concat is b followed by c; together at most 64 bits.
func (b Bits) Concat(c Bits) Bits {
	shift := uint(b.N)
	out := Bits{N: b.N + c.N, Val: b.Val | c.Val<<shift, Const: b.Const | c.Const<<shift, Not: b.Not | c.Not<<shift}
	if b.vars != nil || c.vars != nil {
		out.vars = append(append(make([]Var, 0, out.N), b.varsOrZero()...), c.varsOrZero()...)
	}
	return out
}

func (b Bits) varsOrZero() []Var {
	if b.vars == nil {
		return make([]Var, b.N)
	}
	return b.vars
}

// permute reorders 32 bits: new bit i is old bit source(i).
func (b Bits) permute(word func(uint64) uint64, source func(int) int) Bits {
	out := Bits{N: 32, Val: word(b.Val), Const: word(b.Const), Not: word(b.Not)}
	if b.vars != nil {
		out.vars = make([]Var, 32)
		for i := range out.vars {
			out.vars[i] = b.vars[source(i)]
		}
	}
	return out
}

// RotateRight rotates a 32-bit word: new bit i is old bit (i+n) mod 32 (spec 2.4).
func (b Bits) RotateRight(n int) Bits {
	return b.permute(
		func(w uint64) uint64 { return uint64(bits.RotateLeft32(uint32(w), -n)) },
		func(i int) int { return (i + n) & 31 })
}

// ShiftRight shifts a 32-bit word: new bit i is old bit i+n, or constant false past the end (spec 2.4).
func (b Bits) ShiftRight(n int) Bits {
	return b.Slice(n, 32-n).Concat(ConstBits(n, 0))
}

// ReverseBytes reverses the four bytes of a 32-bit word and keeps the bits inside each. It carries a 32-bit
// little-endian limb to the word that SHA-256 reads from the same bytes, and back (spec 2.6, reverse_bit_numbering).
func (b Bits) ReverseBytes() Bits {
	return b.permute(
		func(w uint64) uint64 { return uint64(bits.ReverseBytes32(uint32(w))) },
		func(i int) int { return 24 - i&^7 + i&7 })
}

// ReverseBits reverses the order of all bits, so that a list becomes most significant bit first.
func (b Bits) ReverseBits() Bits {
	shift := 64 - uint(b.N)
	out := Bits{N: b.N, Val: bits.Reverse64(b.Val) >> shift, Const: bits.Reverse64(b.Const) >> shift,
		Not: bits.Reverse64(b.Not) >> shift}
	if b.vars != nil {
		out.vars = make([]Var, b.N)
		for i := range out.vars {
			out.vars[i] = b.vars[b.N-1-i]
		}
	}
	return out
}

// choose takes the bits of b where mask is set and those of c elsewhere; both have the same length.
func choose(mask uint64, b, c Bits) Bits {
	out := Bits{N: b.N, Val: pick(mask, b.Val, c.Val), Const: pick(mask, b.Const, c.Const), Not: pick(mask, b.Not, c.Not)}
	if b.vars == nil && c.vars == nil {
		return out
	}
	switch {
	case mask == 0:
		out.vars = c.vars
	case mask == low(b.N):
		out.vars = b.vars
	default:
		out.vars = append([]Var(nil), c.varsOrZero()...)
		bv := b.varsOrZero()
		for m := mask; m != 0; m &= m - 1 {
			i := bits.TrailingZeros64(m)
			out.vars[i] = bv[i]
		}
	}
	return out
}

func pick(mask, b, c uint64) uint64 { return b&mask | c&^mask }
