package r1cs

import "fmt"

// Xor is the bitwise exclusive or (spec 2.3, bool.xor).
func (s *System) Xor(a, b Bits) Bits {
	n := sameLength(a, b)
	if a.Const|b.Const|a.Not|b.Not == 0 { // nothing to fold or swap: the bulk of a compression
		s.begin(n, low(n), 0)
		w := s.gate(xorGate, low(n), 0, 0, a, b, Bits{}, Bits{})
		s.end()
		return w
	}
	both := low(n) &^ (a.Const | b.Const)
	swap := a.Not &^ b.Not & both // the plain operand comes first
	u, v := choose(swap, b, a), choose(swap, a, b)
	s.begin(n, both, 0)
	w := s.gate(xorGate, both, 0, 0, u.bare(), v.bare(), Bits{}, Bits{})
	s.end()
	w = w.flip((a.Not ^ b.Not) & both)
	passed := choose(a.Const, b.flip(a.Val&a.Const), a.flip(b.Val&b.Const&^a.Const))
	return choose(both, w, passed)
}

// And is the bitwise and (spec 2.3, bool.and).
func (s *System) And(a, b Bits) Bits {
	n := sameLength(a, b)
	s.begin(n, andMask(a, b), 0)
	out := s.andIn(low(n), 0, 0, a, b)
	s.end()
	return out
}

// andMask are the positions at which a∧b needs a variable.
func andMask(a, b Bits) uint64 { return low(a.N) &^ (a.Const | b.Const) }

// andIn is a∧b at the positions of mask within the current emission.
func (s *System) andIn(mask uint64, rowSlot, varSlot int, a, b Bits) Bits {
	if a.Const|b.Const|a.Not|b.Not == 0 { // nothing to fold or swap
		return s.gate(andGate, mask, rowSlot, varSlot, a, b, Bits{}, Bits{})
	}
	both := andMask(a, b) & mask
	swap := a.Not &^ b.Not & both // and_not: the plain operand comes first
	w := s.gate(andGate, both, rowSlot, varSlot, choose(swap, b, a), choose(swap, a, b), Bits{}, Bits{})
	falseBits := a.Const&^a.Val | b.Const&^b.Val
	passed := choose(falseBits, ConstBits(a.N, 0), choose(a.Const, b, a))
	return choose(both, w, passed)
}

// NotBoth is ¬a∧¬b, a single gate without a booleanity constraint (spec 2.2, bit.nor).
func (s *System) NotBoth(a, b Bits) Bits { return s.And(a.Complement(), b.Complement()) }

// Ch is (a∧b) ⊕ (¬a∧c) (spec 2.3, bool.ch; the comments give its rule numbers).
func (s *System) Ch(a, b, c Bits) Bits {
	n := sameLength(a, b, c)
	left := low(n)
	aFalse := take(&left, a.Const&^a.Val) // 2
	bFalse := take(&left, b.Const&^b.Val) // 3
	cFalse := take(&left, c.Const&^c.Val) // 4
	cTrue := take(&left, c.Const&c.Val)   // 5
	bTrue := take(&left, b.Const&b.Val)   // 6
	x := a.flip(bFalse | bTrue)
	y := choose(bFalse, c, choose(cFalse, b, choose(cTrue, b.Complement(), c.Complement())))
	viaAnd := bFalse | cFalse | cTrue | bTrue

	s.begin(n, andMask(x, y)&viaAnd|left, 0)
	w := s.andIn(viaAnd, 0, 0, x, y).flip(cTrue | bTrue)
	h := s.gate(chGate, left, 0, 0, a, b, c, Bits{})
	s.end()
	return choose(left, h, choose(aFalse, c, w))
}

// majBitsMax is how many bits one Maj takes: it allocates two variables for each, and an emission has room for 64.
const majBitsMax = 32

// Maj is the majority of words of at most 32 bits (spec 2.3, bool.maj; the comments give its rule numbers).
func (s *System) Maj(a, b, c Bits) Bits {
	n := sameLength(a, b, c)
	if n > majBitsMax {
		panic(fmt.Sprintf("r1cs: majority over %d bits, the limit is %d", n, majBitsMax))
	}
	left := low(n)
	aFalse := take(&left, a.Const&^a.Val) // 2
	_ = take(&left, b.Const&^b.Val)       // 3
	cFalse := take(&left, c.Const&^c.Val) // 4
	cTrue := take(&left, c.Const&c.Val)   // 5
	bTrue := take(&left, b.Const&b.Val)   // 6
	aTrue := take(&left, a.Const&a.Val)   // 7
	negated := cTrue | bTrue | aTrue
	x := choose(aFalse|aTrue, b, a).flip(negated)
	y := choose(cFalse|cTrue, b, c).flip(negated)
	viaAnd := low(n) &^ left

	s.begin(n, andMask(x, y)&viaAnd|left, left)
	w := s.andIn(viaAnd, 0, 0, x, y).flip(negated)
	t := s.andIn(left, 0, 1, b, c) // the helper's row comes first, its variable second
	m := s.gate(majGate, left, 1, 0, a, b, c, t)
	s.end()
	return choose(left, m, w)
}

// take removes from *left the positions of rule and returns those it removed.
func take(left *uint64, rule uint64) uint64 {
	taken := *left & rule
	*left &^= rule
	return taken
}

func sameLength(first Bits, others ...Bits) int {
	for _, b := range others {
		if b.N != first.N {
			panic(fmt.Sprintf("r1cs: gate over %d and %d bits", first.N, b.N))
		}
	}
	return first.N
}
