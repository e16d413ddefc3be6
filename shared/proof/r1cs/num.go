package r1cs

import "github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

// Num is an allocated variable that holds a field element.
type Num struct {
	Val fr.Element
	v   Var
}

// NumOf makes the handle of a variable that was allocated before this walk's section, e.g. in the circuit's head.
func NumOf(v Var, val fr.Element) Num { return Num{Val: val, v: v} }

// Lin is a linear combination with its value.
type Lin struct {
	Val fr.Element
	lc  LC
}

// Lin is the combination 1·n.
func (s *System) Lin(n Num) Lin {
	l := Lin{Val: n.Val}
	if s.rows != nil {
		l.lc = LC{{Var: n.v, Coeff: fr.One()}}
	}
	return l
}

// Constant is the combination k·ONE.
func (s *System) Constant(k fr.Element) Lin {
	l := Lin{Val: k}
	if s.rows != nil && !k.IsZero() {
		l.lc = LC{{Var: One, Coeff: k}}
	}
	return l
}

// Combine is Σ coeffs[i]·items[i].
func (s *System) Combine(coeffs []fr.Element, items []Lin) Lin {
	var sum Lin
	var product fr.Element
	for i := range coeffs {
		product.Mul(&coeffs[i], &items[i].Val)
		sum.Val.Add(&sum.Val, &product)
	}
	if s.rows != nil {
		total := 0
		for i := range items {
			total += len(items[i].lc)
		}
		terms := make([]Term, 0, total)
		for i := range coeffs {
			for _, t := range items[i].lc {
				t.Coeff.Mul(&t.Coeff, &coeffs[i])
				terms = append(terms, t)
			}
		}
		sum.lc = normalize(terms)
	}
	return sum
}

// Plus is a + k·b.
func (s *System) Plus(a Lin, k fr.Element, b Lin) Lin {
	s.AddScaled(&a, &k, &b)
	return a
}

// AddScaled adds k·b to a.
func (s *System) AddScaled(a *Lin, k *fr.Element, b *Lin) {
	var scaled fr.Element
	scaled.Mul(k, &b.Val)
	a.Val.Add(&a.Val, &scaled)
	if s.rows == nil {
		return
	}
	terms := append(make([]Term, 0, len(a.lc)+len(b.lc)), a.lc...)
	for _, t := range b.lc {
		t.Coeff.Mul(&t.Coeff, k)
		terms = append(terms, t)
	}
	a.lc = normalize(terms)
}

// Shift is n + k·ONE.
func (s *System) Shift(n Num, k *fr.Element) Lin {
	l := s.Lin(n)
	l.Val.Add(&l.Val, k)
	if s.rows != nil {
		l.lc = normalize(append(l.lc, Term{Var: One, Coeff: *k}))
	}
	return l
}

// Alloc allocates a variable without any constraint.
func (s *System) Alloc(val fr.Element) Num {
	n := Num{Val: val, v: AuxVar(s.pos.Aux)}
	s.pos.Aux++
	s.pos.FullAux++
	if s.values != nil {
		s.handed[0] = val
		s.values.AuxFull(&s.handed[0])
	}
	return n
}

func (s *System) allocInput(val fr.Element) Num {
	n := Num{Val: val, v: InputVar(s.pos.Inputs)}
	s.pos.Inputs++
	if s.values != nil {
		s.handed[0] = val
		s.values.Input(&s.handed[0])
	}
	return n
}

// full counts and emits one row with full a and full b.
func (s *System) full(a, b *Lin, c LC) {
	s.pos.Rows++
	s.pos.FullA++
	s.pos.FullB++
	if s.values != nil {
		s.handed = [2]fr.Element{a.Val, b.Val}
		s.values.FullRow(&s.handed[0], &s.handed[1])
	}
	if s.rows != nil {
		s.rows.Row(a.lc, b.lc, c)
	}
}

// fullBit counts and emits one row with full a and a Boolean b.
func (s *System) fullBit(a Lin, b Bits, c LC) {
	s.pos.Rows++
	s.pos.FullA++
	if s.values != nil {
		s.handed[0] = a.Val
		s.values.FullBitRow(&s.handed[0], b.Val)
	}
	if s.rows != nil {
		s.lc[1] = b.appendBit(s.lc[1][:0], 0, 1)
		s.rows.Row(a.lc, normalize(s.lc[1]), c)
	}
}

// times emits a·ONE = c.
func (s *System) times(a Lin, c LC) { s.fullBit(a, ConstBits(1, 1), c) }

// lcOf is the combination of one variable, nil when no structure is wanted.
func (s *System) lcOf(n Num) LC {
	if s.rows == nil {
		return nil
	}
	return LC{{Var: n.v, Coeff: fr.One()}}
}

// Product allocates y = a·b + post and enforces a·b = y − post·ONE (spec 2.1 square, 2.8 sbox). A nil post is zero.
func (s *System) Product(a, b *Lin, post *fr.Element) Num {
	var val fr.Element
	val.Mul(&a.Val, &b.Val)
	if post != nil {
		val.Add(&val, post)
	}
	y := s.Alloc(val)
	var c LC
	if s.rows != nil {
		c = LC{{Var: One}, {Var: y.v, Coeff: fr.One()}}
		if post != nil {
			c[0].Coeff.Neg(post)
		}
		c = normalize(c)
	}
	s.full(a, b, c)
	return y
}

// Assign allocates x = l and enforces l·ONE = x (spec 2.8 ensure, 3.1 add).
func (s *System) Assign(l Lin) Num {
	x := s.Alloc(l.Val)
	s.times(l, s.lcOf(x))
	return x
}

// AssignInput allocates a public input p = l and enforces l·ONE = p (spec 2.6 pack_into_inputs).
func (s *System) AssignInput(l Lin) {
	p := s.allocInput(l.Val)
	s.times(l, s.lcOf(p))
}

// Inputize exposes a variable as a public input p and enforces p·ONE = x: the input is in a (spec 2.1).
func (s *System) Inputize(x Num) {
	p := s.allocInput(x.Val)
	s.times(s.Lin(p), s.lcOf(x))
}

// Equal enforces a·ONE = b (spec 3.1).
func (s *System) Equal(a, b Num) { s.times(s.Lin(a), s.lcOf(b)) }

// Pick returns a where the bit cond is true and b where it is false, and enforces (b − a)·cond = b − p (spec 3.2).
func (s *System) Pick(cond Bits, a, b Num) Num {
	val := b.Val
	if cond.Val&1 == 1 {
		val = a.Val
	}
	p := s.Alloc(val)
	s.fullBit(s.minus(b, a), cond, s.minus(b, p).lc)
	return p
}

// minus is a − b.
func (s *System) minus(a, b Num) Lin {
	var l Lin
	l.Val.Sub(&a.Val, &b.Val)
	if s.rows != nil {
		l.lc = LC{{Var: a.v, Coeff: fr.One()}, {Var: b.v}}
		l.lc[1].Coeff.Neg(&l.lc[0].Coeff)
		l.lc = normalize(l.lc)
	}
	return l
}
