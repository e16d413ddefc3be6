package generate

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// columns are the sums u, v and w of variables of one kind with indices first, first+1, …, and which of them occur in A
// and in B.
type columns struct {
	first        int
	u, v, w      []fr.Element
	usedA, usedB []uint64 // a bit for each variable
}

// newColumns makes sums on the heap, for the few variables that all sections share.
func newColumns(n int) *columns {
	words := (n + 63) / 64
	return &columns{
		u: make([]fr.Element, n), v: make([]fr.Element, n), w: make([]fr.Element, n),
		usedA: make([]uint64, words), usedB: make([]uint64, words),
	}
}

// merge adds the sums of another worker.
func (c *columns) merge(other *columns) {
	for i := range c.u {
		c.u[i].Add(&c.u[i], &other.u[i])
		c.v[i].Add(&c.v[i], &other.v[i])
		c.w[i].Add(&c.w[i], &other.w[i])
	}
	for i := range c.usedA {
		c.usedA[i] |= other.usedA[i]
		c.usedB[i] |= other.usedB[i]
	}
}

// finish turns w into (beta u + alpha v + w)/divisor in place and packs u and v to their non-zero elements, whose
// numbers it returns. That the non-zero elements are those of the variables that occur is checked: anything else would
// give a file that provers index wrongly (spec c2-circuit.md 1.4). kind is I or A, for errors.
func (c *columns) finish(s *Scalars, inverse *fr.Element, kind byte) (nu, nv int, err error) {
	var beta, alpha, x fr.Element
	beta.Mul(&s.Beta, inverse)
	alpha.Mul(&s.Alpha, inverse)
	for i := range c.u {
		u, v, w := &c.u[i], &c.v[i], &c.w[i]
		w.Mul(w, inverse)
		if !u.IsZero() {
			w.Add(w, x.Mul(u, &beta))
		}
		if !v.IsZero() {
			w.Add(w, x.Mul(v, &alpha))
		}
		if w.IsZero() {
			return 0, 0, fmt.Errorf("variable %c%d is unconstrained: %w", kind, c.first+i, ErrUnconstrained)
		}
		if u.IsZero() == has(c.usedA, i) || v.IsZero() == has(c.usedB, i) {
			return 0, 0, fmt.Errorf("sums of variable %c%d vanish at tau: %w", kind, c.first+i, ErrScalars)
		}
		if !u.IsZero() {
			c.u[nu] = *u
			nu++
		}
		if !v.IsZero() {
			c.v[nv] = *v
			nv++
		}
	}
	return nu, nv, nil
}

func has(words []uint64, i int) bool { return words[i/64]>>(i%64)&1 == 1 }

// rows receives the constraints of one section and adds them up.
type rows struct {
	lagrange *lagrange
	inputs   *columns
	shared   *columns // auxiliaries that any section may use
	private  *columns // those of this section
	tick     func() (goOn bool)
	count    int
	stopped  bool
}

// tickRows is how many rows there are between two ticks.
const tickRows = 1 << 14

// Row adds one constraint. After a tick says to stop, the rest of the walk is ignored.
func (r *rows) Row(a, b, c r1cs.LC) {
	if r.stopped {
		return
	}
	l := r.lagrange.next()
	for i := range a {
		to, at := r.at(a[i].Var)
		addScaled(&to.u[at], &a[i].Coeff, l)
		to.usedA[at/64] |= 1 << (at % 64)
	}
	for i := range b {
		to, at := r.at(b[i].Var)
		addScaled(&to.v[at], &b[i].Coeff, l)
		to.usedB[at/64] |= 1 << (at % 64)
	}
	for i := range c {
		to, at := r.at(c[i].Var)
		addScaled(&to.w[at], &c[i].Coeff, l)
	}
	if r.count++; r.count%tickRows == 0 {
		r.stopped = !r.tick()
	}
}

// at finds a variable's sums. A circuit that uses a variable of another section breaks its contract.
func (r *rows) at(v r1cs.Var) (*columns, int) {
	i := v.Index()
	to := r.inputs
	if v.IsAux() {
		to = r.shared
		if i >= len(to.u) {
			to = r.private
			i -= to.first
		}
	}
	if i < 0 || i >= len(to.u) {
		panic(fmt.Sprintf("generate: row %d uses variable %v outside its section of %d from A%d",
			r.count, v, len(r.private.u), r.private.first))
	}
	return to, i
}

// addScaled adds k l to sum; most coefficients are 1.
func addScaled(sum, k, l *fr.Element) {
	if k.IsOne() {
		sum.Add(sum, l)
		return
	}
	var x fr.Element
	sum.Add(sum, x.Mul(k, l))
}
