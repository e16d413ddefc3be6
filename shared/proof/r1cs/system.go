package r1cs

import (
	"fmt"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// System is one walk over a circuit or over one section of it. It is not safe for concurrent use.
type System struct {
	pos    Position
	rows   RowSink
	values Values
	cells  emission
	lc     [3][]Term // scratch for the combinations of one row

	// handed are values on their way to a Values. It takes pointers, and variables whose address goes through an
	// interface would each be allocated on the heap.
	handed [2]fr.Element
}

// NewSystem starts a walk at a position. Either end may be nil.
func NewSystem(start Position, rows RowSink, values Values) *System {
	return &System{pos: start, rows: rows, values: values}
}

// Position is how far the walk has come.
func (s *System) Position() Position { return s.pos }

// emission collects the gates of one word of bits. At every bit position zero, one or two variables are allocated and
// as many rows emitted; slot 0 comes before slot 1, and all of a position come before those of the next.
type emission struct {
	n         int
	mask      [2]uint64 // positions that use slot 0, slot 1; the second is a subset of the first
	a0, a1, b [2]uint64 // planes by row slot
	vals      [2]uint64 // values by variable slot
	first     int       // auxiliary index of the first variable
	lines     []line    // in the order of their rows; empty when no structure is wanted
}

// line is one gate applied at the positions of mask.
type line struct {
	gate       *gate
	mask       uint64
	x, y, z, t Bits
	rowSlot    int
	out        []Var
}

// begin starts an emission over n positions; one and two are the positions with at least one, and with two, variables.
func (s *System) begin(n int, one, two uint64) {
	s.cells = emission{n: n, mask: [2]uint64{one, two}, first: s.pos.Aux, lines: s.cells.lines[:0]}
}

// gate applies a gate at the positions of mask and returns its output there; elsewhere the result is unspecified.
func (s *System) gate(g *gate, mask uint64, rowSlot, varSlot int, x, y, z, t Bits) Bits {
	e := &s.cells
	m := monomials(x.Val, y.Val, z.Val, t.Val)
	out := Bits{N: e.n, Val: g.out.eval(&m) & mask}
	e.a0[rowSlot] |= g.a0.eval(&m) & mask
	e.a1[rowSlot] |= g.a1.eval(&m) & mask
	e.b[rowSlot] |= g.b.eval(&m) & mask
	e.vals[varSlot] |= out.Val
	if s.rows != nil && mask != 0 {
		out.vars = e.number(mask, varSlot)
		e.lines = append(e.lines, line{gate: g, mask: mask, x: x, y: y, z: z, t: t, rowSlot: rowSlot, out: out.vars})
	}
	return out
}

// number gives the variables of one slot at the positions of mask.
func (e *emission) number(mask uint64, varSlot int) []Var {
	vars := make([]Var, e.n)
	for m := mask; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		below := low(i)
		vars[i] = AuxVar(e.first + bits.OnesCount64(e.mask[0]&below) + bits.OnesCount64(e.mask[1]&below) + varSlot)
	}
	return vars
}

// end emits what was collected.
func (s *System) end() {
	e := &s.cells
	if s.rows != nil {
		s.endStructure(e)
	}
	count := bits.OnesCount64(e.mask[0]) + bits.OnesCount64(e.mask[1])
	s.pos.Aux += count
	s.pos.Rows += count
	if s.values == nil || count == 0 {
		return
	}
	if e.mask[1] == 0 {
		m := e.mask[0]
		s.values.SmallRows(count, compress(e.a0[0], m), compress(e.a1[0], m), compress(e.b[0], m))
		s.values.AuxBits(count, compress(e.vals[0], m))
		return
	}
	m := interleave(e.mask[0], e.mask[1])
	s.values.SmallRows(count, compress(interleave(e.a0[0], e.a0[1]), m), compress(interleave(e.a1[0], e.a1[1]), m),
		compress(interleave(e.b[0], e.b[1]), m))
	s.values.AuxBits(count, compress(interleave(e.vals[0], e.vals[1]), m))
}

func (s *System) endStructure(e *emission) {
	for m := e.mask[0]; m != 0; m &= m - 1 {
		i := bits.TrailingZeros64(m)
		for slot := range 2 {
			for k := range e.lines {
				if l := &e.lines[k]; l.rowSlot == slot && l.mask>>uint(i)&1 == 1 {
					s.gateRow(l, i)
				}
			}
		}
	}
}

func (s *System) gateRow(l *line, i int) {
	s.lc[0] = l.expand(s.lc[0][:0], l.gate.row.a, i)
	s.lc[1] = l.expand(s.lc[1][:0], l.gate.row.b, i)
	s.lc[2] = l.expand(s.lc[2][:0], l.gate.row.c, i)
	s.rows.Row(normalize(s.lc[0]), normalize(s.lc[1]), normalize(s.lc[2]))
}

// expand appends the combination that a linear form stands for at position i.
func (l *line) expand(terms []Term, form lin, i int) []Term {
	terms = appendTerm(terms, One, form.one)
	terms = l.x.appendBit(terms, i, form.x)
	terms = l.y.appendBit(terms, i, form.y)
	terms = l.z.appendBit(terms, i, form.z)
	terms = l.t.appendBit(terms, i, form.t)
	if form.out != 0 {
		terms = appendTerm(terms, l.out[i], form.out)
	}
	return terms
}

// appendBit appends the contribution of one Boolean with coefficient k (spec 2.3, lc).
func (b Bits) appendBit(terms []Term, i, k int) []Term {
	if k == 0 {
		return terms
	}
	switch at := uint64(1) << uint(i); {
	case b.Const&at != 0:
		if b.Val&at != 0 {
			terms = appendTerm(terms, One, k)
		}
	case b.Not&at != 0:
		terms = appendTerm(appendTerm(terms, One, k), b.vars[i], -k)
	default:
		terms = appendTerm(terms, b.vars[i], k)
	}
	return terms
}

func appendTerm(terms []Term, v Var, k int) []Term {
	if k == 0 {
		return terms
	}
	t := Term{Var: v}
	t.Coeff.SetInt64(int64(k))
	return append(terms, t)
}

// compress gathers the bits of w at the positions of mask to the low end.
func compress(w, mask uint64) uint64 {
	if mask&(mask+1) == 0 { // already at the low end
		return w & mask
	}
	var out uint64
	for shift := uint(0); mask != 0; {
		skip := uint(bits.TrailingZeros64(mask))
		w, mask = w>>skip, mask>>skip
		run := uint(bits.TrailingZeros64(^mask))
		out |= w & low(int(run)) << shift
		shift += run
		if run == 64 {
			break
		}
		w, mask = w>>run, mask>>run
	}
	return out
}

// interleave puts the low 32 bits of even at even positions and those of odd at odd ones.
func interleave(even, odd uint64) uint64 { return spread(even) | spread(odd)<<1 }

func spread(w uint64) uint64 {
	w &= 0xffffffff
	w = (w | w<<16) & 0x0000ffff0000ffff
	w = (w | w<<8) & 0x00ff00ff00ff00ff
	w = (w | w<<4) & 0x0f0f0f0f0f0f0f0f
	w = (w | w<<2) & 0x3333333333333333
	return (w | w<<1) & 0x5555555555555555
}

// AllocBits allocates n ≤ 64 bits with their booleanity constraints (spec 2.2, bit.alloc).
func (s *System) AllocBits(n int, val uint64) Bits {
	if n < 0 || n > 64 || val&^low(n) != 0 {
		panic(fmt.Sprintf("r1cs: %d bits cannot hold %#x", n, val))
	}
	s.begin(n, low(n), 0)
	out := s.gate(boolGate, low(n), 0, 0, Bits{N: n, Val: val}, Bits{}, Bits{}, Bits{})
	s.end()
	return out
}

// AllocPlainBits allocates n ≤ 64 variables that hold bits but are not constrained to. The PoRep circuit has none; the
// fine fixtures of spec 6.3 do.
func (s *System) AllocPlainBits(n int, val uint64) Bits {
	out := Bits{N: n, Val: val & low(n)}
	if s.rows != nil {
		out.vars = make([]Var, n)
		for i := range out.vars {
			out.vars[i] = AuxVar(s.pos.Aux + i)
		}
	}
	s.pos.Aux += n
	if s.values != nil {
		s.values.AuxBits(n, out.Val)
	}
	return out
}

// Element is the field element of a small integer.
func Element(v uint64) fr.Element {
	var e fr.Element
	e.SetUint64(v)
	return e
}
