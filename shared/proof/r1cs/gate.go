package r1cs

import "math/bits"

// lin is a linear form over ONE, a gate's operands and its output, with small integer coefficients.
type lin struct{ one, x, y, z, t, out int }

func (l lin) eval(assignment uint, out int) int {
	bit := func(k uint) int { return int(assignment >> k & 1) }
	return l.one + l.x*bit(0) + l.y*bit(1) + l.z*bit(2) + l.t*bit(3) + l.out*out
}

// row is the description of a bit gate: the constraint a·b = c over its operands x, y, z, t and its output. Where the
// output occurs in c, its value is the one that satisfies the row; where it does not (a free bit), it is operand x.
type row struct{ a, b, c lin }

// The bit gates of spec c2-circuit.md 2.2 and 2.3. Operands are Booleans (a negated one contributes ONE − bit), but for
// xor, whose operands are the bare variables.
var (
	boolGate = compile(row{a: lin{one: 1, out: -1}, b: lin{out: 1}})
	xorGate  = compile(row{a: lin{x: 2}, b: lin{y: 1}, c: lin{x: 1, y: 1, out: -1}})
	andGate  = compile(row{a: lin{x: 1}, b: lin{y: 1}, c: lin{out: 1}})
	chGate   = compile(row{a: lin{y: 1, z: -1}, b: lin{x: 1}, c: lin{z: -1, out: 1}})
	majGate  = compile(row{a: lin{t: 2, y: -1, z: -1}, b: lin{x: 1}, c: lin{t: 1, out: -1}})
)

// gate is a compiled row: the planes of its a and b codes and of its output, as polynomials over GF(2) in the operands.
type gate struct {
	row
	a0, a1, b, out polynomial
}

// polynomial is an exclusive or of monomials; monomial m is the product of the operands whose bits are set in m.
type polynomial []uint8

// compile tabulates the row over all operand values and turns each column into a polynomial. It panics on a row whose
// values have no code: that is a fault in this file, seen at the first start.
func compile(r row) *gate {
	var a0, a1, b, out uint16
	for v := range uint(16) {
		o := solve(r, v)
		code, ok := map[int]uint16{0: 0, 1: 1, 2: 2, -1: 3}[r.a.eval(v, o)]
		bv := r.b.eval(v, o)
		if !ok || bv < 0 || bv > 1 {
			if r.reachable(v) {
				panic("r1cs: gate row has a value without a code")
			}
			continue
		}
		a0 |= code & 1 << v
		a1 |= code >> 1 << v
		b |= uint16(bv) << v
		out |= uint16(o) << v
	}
	return &gate{row: r, a0: moebius(a0), a1: moebius(a1), b: moebius(b), out: moebius(out)}
}

// reachable is false for operand values that cannot occur: the only gate with operand t is fed t = y∧z.
func (r row) reachable(v uint) bool {
	y, z, t := v>>1&1, v>>2&1, v>>3&1
	return r.a.t == 0 || t == y&z
}

// solve finds the output value that satisfies the row.
func solve(r row, v uint) int {
	if r.c.out == 0 {
		return int(v & 1)
	}
	for o := range 2 {
		if r.a.eval(v, o)*r.b.eval(v, o) == r.c.eval(v, o) {
			return o
		}
	}
	if r.reachable(v) {
		panic("r1cs: gate row has no solution")
	}
	return 0
}

// moebius turns a truth table over four operands into its algebraic normal form.
func moebius(table uint16) polynomial {
	f := table
	f ^= f & 0x5555 << 1
	f ^= f & 0x3333 << 2
	f ^= f & 0x0f0f << 4
	f ^= f & 0x00ff << 8
	var p polynomial
	for ; f != 0; f &= f - 1 {
		p = append(p, uint8(bits.TrailingZeros16(f)))
	}
	return p
}

// monomials computes the products of operand words that a gate's polynomials use.
func monomials(x, y, z, t uint64) (m [16]uint64) {
	m[0] = ^uint64(0)
	m[1], m[2], m[4], m[8] = x, y, z, t
	m[3], m[5], m[6] = x&y, x&z, y&z
	m[7] = m[3] & z
	m[9], m[10], m[12] = x&t, y&t, z&t
	m[11], m[13], m[14] = m[3]&t, m[5]&t, m[6]&t
	m[15] = m[7] & t
	return m
}

func (p polynomial) eval(m *[16]uint64) uint64 {
	var sum uint64
	for _, k := range p {
		sum ^= m[k&15]
	}
	return sum
}
