package r1cs_test

import (
	"cmp"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/r1cs/r1cstest"
)

// model is spec c2-circuit.md 2.1 to 2.4 taken literally: one Boolean at a time, first matching rule, combinations as
// maps.
type model struct {
	aux  []fr.Element
	rows []modelRow
}

type modelLC map[r1cs.Var]fr.Element

type modelRow struct{ a, b, c modelLC }

// modelBool is Const(false), Const(true), Is(v) or Not(v), with its value, negation applied.
type modelBool struct {
	constant, negated, value bool
	v                        r1cs.Var
}

func newModel() *model { return &model{} }

func (m *model) alloc(v fr.Element) r1cs.Var {
	m.aux = append(m.aux, v)
	return r1cs.AuxVar(len(m.aux) - 1)
}

func (m *model) allocBit(v bool) modelBool {
	return modelBool{value: v, v: m.alloc(r1cs.Element(number(v)))}
}

func (m *model) enforce(a, b, c modelLC) { m.rows = append(m.rows, modelRow{a, b, c}) }

func number(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func integer(k int64) fr.Element {
	var e fr.Element
	e.SetInt64(k)
	return e
}

// plus adds k·v, merging.
func (l modelLC) plus(k fr.Element, v r1cs.Var) modelLC {
	sum := l[v]
	sum.Add(&sum, &k)
	l[v] = sum
	return l
}

// bool adds k·lc(b) (spec 2.3).
func (l modelLC) bool(k fr.Element, b modelBool) modelLC {
	var minus fr.Element
	minus.Neg(&k)
	switch {
	case b.constant && !b.value:
		return l
	case b.constant:
		return l.plus(k, r1cs.One)
	case b.negated:
		return l.plus(k, r1cs.One).plus(minus, b.v)
	}
	return l.plus(k, b.v)
}

// bare is the variable of a Boolean without its negation.
func (b modelBool) bare() modelBool { return modelBool{v: b.v, value: b.value != b.negated} }

func (b modelBool) not() modelBool {
	b.value = !b.value
	b.negated = !b.negated && !b.constant
	return b
}

func (b modelBool) is(v bool) bool { return b.constant && b.value == v }

func (m *model) allocBits(n int, v uint64, constrained bool) []modelBool {
	var l []modelBool
	for i := range n {
		b := m.allocBit(v>>i&1 == 1)
		if constrained {
			m.enforce(modelLC{}.bool(integer(1), b.not()), modelLC{}.bool(integer(1), b), modelLC{})
		}
		l = append(l, b)
	}
	return l
}

func constBools(n int, v uint64) []modelBool {
	var l []modelBool
	for i := range n {
		l = append(l, modelBool{constant: true, value: v>>i&1 == 1})
	}
	return l
}

func mapBools(l []modelBool, f func(modelBool) modelBool) []modelBool {
	var out []modelBool
	for _, b := range l {
		out = append(out, f(b))
	}
	return out
}

// each applies a gate to the i-th bits of its operands, for all i in order.
func (m *model) each(gate func(...modelBool) modelBool, operands ...word) []modelBool {
	var out []modelBool
	for i := range operands[0].model {
		var b []modelBool
		for _, o := range operands {
			b = append(b, o.model[i])
		}
		out = append(out, gate(b...))
	}
	return out
}

func (m *model) xor(a, b modelBool) modelBool {
	switch {
	case a.is(false):
		return b
	case b.is(false):
		return a
	case a.is(true):
		return b.not()
	case b.is(true):
		return a.not()
	case !a.negated && b.negated:
		return m.xorBits(a, b.bare()).not()
	case a.negated && !b.negated:
		return m.xorBits(b, a.bare()).not()
	}
	return m.xorBits(a.bare(), b.bare())
}

func (m *model) xorBits(a, b modelBool) modelBool {
	c := m.allocBit(a.value != b.value)
	m.enforce(modelLC{}.bool(integer(2), a), modelLC{}.bool(integer(1), b),
		modelLC{}.bool(integer(1), a).bool(integer(1), b).bool(integer(-1), c))
	return c
}

func (m *model) and(a, b modelBool) modelBool {
	switch {
	case a.is(false), b.is(false):
		return modelBool{constant: true}
	case a.is(true):
		return b
	case b.is(true):
		return a
	case !a.negated && b.negated:
		return m.andBits(a, b)
	case a.negated && !b.negated:
		return m.andBits(b, a)
	}
	return m.andBits(a, b)
}

// andBits is bit.and, bit.and_not or bit.nor: they differ by the negations alone.
func (m *model) andBits(a, b modelBool) modelBool {
	c := m.allocBit(a.value && b.value)
	m.enforce(modelLC{}.bool(integer(1), a), modelLC{}.bool(integer(1), b), modelLC{}.bool(integer(1), c))
	return c
}

func (m *model) ch(a, b, c modelBool) modelBool {
	value := (a.value && b.value) || (!a.value && c.value)
	switch {
	case a.constant && b.constant && c.constant:
		return modelBool{constant: true, value: value}
	case a.is(false):
		return c
	case b.is(false):
		return m.and(a.not(), c)
	case c.is(false):
		return m.and(a, b)
	case c.is(true):
		return m.and(a, b.not()).not()
	case b.is(true):
		return m.and(a.not(), c.not()).not()
	}
	h := m.allocBit(value)
	m.enforce(modelLC{}.bool(integer(1), b).bool(integer(-1), c), modelLC{}.bool(integer(1), a),
		modelLC{}.bool(integer(1), h).bool(integer(-1), c))
	return h
}

func (m *model) maj(a, b, c modelBool) modelBool {
	value := number(a.value)+number(b.value)+number(c.value) >= 2
	switch {
	case a.constant && b.constant && c.constant:
		return modelBool{constant: true, value: value}
	case a.is(false):
		return m.and(b, c)
	case b.is(false):
		return m.and(a, c)
	case c.is(false):
		return m.and(a, b)
	case c.is(true):
		return m.and(a.not(), b.not()).not()
	case b.is(true):
		return m.and(a.not(), c.not()).not()
	case a.is(true):
		return m.and(b.not(), c.not()).not()
	}
	out := m.allocBit(value)
	t := m.and(b, c)
	m.enforce(modelLC{}.bool(integer(2), t).bool(integer(-1), b).bool(integer(-1), c), modelLC{}.bool(integer(1), a),
		modelLC{}.bool(integer(1), t).bool(integer(-1), out))
	return out
}

// numBits allocates x and its 255 bits, and pads them with a constant (spec 2.1 to_bits_le, 2.6).
func (m *model) numBits(x fr.Element) []modelBool {
	v := m.alloc(x)
	words := x.Bits()
	sum, k := modelLC{}, integer(1)
	var l []modelBool
	for i := range 255 {
		b := m.allocBits(1, words[i/64]>>(i%64)&1, true)[0]
		l = append(l, b)
		sum.bool(k, b)
		k.Double(&k)
	}
	m.enforce(modelLC{}, modelLC{}, sum.plus(integer(-1), v))
	return append(l, modelBool{constant: true})
}

// show allocates x = Σ 2^(shift+i)·l_i and enforces it.
func (m *model) show(l []modelBool, shift int) {
	sum, k := modelLC{}, integer(1<<shift)
	for _, b := range l {
		sum.bool(k, b)
		k.Double(&k)
	}
	var value fr.Element
	for v, coeff := range sum {
		term := fr.One()
		if v != r1cs.One {
			term = m.aux[v.Index()]
		}
		value.Add(&value, term.Mul(&term, &coeff))
	}
	m.enforce(sum, modelLC{}.plus(integer(1), r1cs.One), modelLC{}.plus(integer(1), m.alloc(value)))
}

func valueOf(l []modelBool) uint64 {
	var v uint64
	for i, b := range l {
		v |= number(b.value) << i
	}
	return v
}

func allConst(l []modelBool) bool {
	return !slices.ContainsFunc(l, func(b modelBool) bool { return !b.constant })
}

// rowsInNormalForm are the rows with terms sorted and zeros dropped.
func (m *model) rowsInNormalForm() []r1cstest.Row {
	normal := func(l modelLC) r1cs.LC {
		var lc r1cs.LC
		for v, k := range l {
			if !k.IsZero() {
				lc = append(lc, r1cs.Term{Var: v, Coeff: k})
			}
		}
		slices.SortFunc(lc, func(a, b r1cs.Term) int { return cmp.Compare(a.Var, b.Var) })
		return lc
	}
	rows := make([]r1cstest.Row, 0, len(m.rows))
	for _, r := range m.rows {
		rows = append(rows, r1cstest.Row{A: normal(r.a), B: normal(r.b), C: normal(r.c)})
	}
	return rows
}
