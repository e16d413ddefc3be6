package gadget

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/poseidon"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// Poseidon is the legacy Poseidon circuit over 2, 4, 8 or 11 inputs (spec c2-circuit.md 2.8).
func Poseidon(s *r1cs.System, inputs []r1cs.Num) r1cs.Num {
	h := poseidonWalk{system: s, params: poseidon.Of(len(inputs))}
	h.firstFullRound(inputs)
	half := h.params.FullRounds / 2
	for range half - 1 {
		h.fullRound(true)
	}
	for range h.params.PartialRounds {
		h.state[0] = h.sbox(h.state[0], h.nextConstant())
		h.mix()
	}
	for range half - 1 {
		h.fullRound(true)
	}
	h.fullRound(false)
	return h.ensure(h.state[1]).num
}

// element is one state element: an allocated variable or a linear combination (spec 2.8).
type element struct {
	lin       r1cs.Lin
	num       r1cs.Num
	allocated bool
}

const poseidonWidthMax = 12

// poseidonWalk is one hash in progress.
type poseidonWalk struct {
	system *r1cs.System
	params *poseidon.Params
	state  [poseidonWidthMax]element
	cursor int // next of the compressed round constants
	mixes  int // how many mixes were done
}

func (h *poseidonWalk) width() int { return h.params.Width }

func (h *poseidonWalk) nextConstant() fr.Element {
	h.cursor++
	return h.params.C[h.cursor-1]
}

func (h *poseidonWalk) variable(n r1cs.Num) element {
	return element{lin: h.system.Lin(n), num: n, allocated: true}
}

func (h *poseidonWalk) ensure(e element) element {
	if e.allocated {
		return e
	}
	return h.variable(h.system.Assign(e.lin))
}

// sbox is x ↦ x⁵ + post on any element.
func (h *poseidonWalk) sbox(e element, post fr.Element) element {
	e = h.ensure(e)
	return h.fifthPower(e.lin, post)
}

// fifthPower allocates x², x⁴ and x⁵ + post for a combination x.
func (h *poseidonWalk) fifthPower(x r1cs.Lin, post fr.Element) element {
	var zero fr.Element
	s := h.system
	x2 := s.Lin(s.Product(x, x, zero))
	x4 := s.Lin(s.Product(x2, x2, zero))
	return h.variable(s.Product(x, x4, post))
}

// firstFullRound takes the domain tag through by constant arithmetic and adds the first constants on the way in.
func (h *poseidonWalk) firstFullRound(inputs []r1cs.Num) {
	s, t := h.system, h.width()
	pre, post := h.params.C[:t], h.params.C[t:2*t]
	h.cursor = 2 * t
	h.state[0] = element{lin: s.Constant(tagThroughFirstRound(h.params))}
	one := s.Constant(fr.One())
	for i, input := range inputs {
		h.state[i+1] = h.fifthPower(s.Plus(s.Lin(input), pre[i+1], one), post[i+1])
	}
	h.mix()
}

// tagThroughFirstRound is (tag + pre_0)⁵ + post_0.
func tagThroughFirstRound(p *poseidon.Params) fr.Element {
	var x, x4 fr.Element
	x.Add(&p.Tag, &p.C[0])
	x4.Square(&x).Square(&x4)
	x.Mul(&x, &x4).Add(&x, &p.C[p.Width])
	return x
}

func (h *poseidonWalk) fullRound(constants bool) {
	for i := range h.width() {
		var post fr.Element
		if constants {
			post = h.nextConstant()
		}
		h.state[i] = h.sbox(h.state[i], post)
	}
	h.mix()
}

// mix chooses the matrix by the number of mixes before (spec 2.8).
func (h *poseidonWalk) mix() {
	first := h.params.FullRounds / 2
	switch m := h.mixes; {
	case m == first-1:
		h.mixDense(h.params.P)
	case m >= first && m < first+h.params.PartialRounds:
		h.mixSparse(&h.params.Sparse[m-first])
	default:
		h.mixDense(h.params.M)
	}
	h.mixes++
}

// lins are the state's elements as combinations.
func (h *poseidonWalk) lins() (lins [poseidonWidthMax]r1cs.Lin) {
	for i := range h.width() {
		lins[i] = h.state[i].lin
	}
	return lins
}

func (h *poseidonWalk) mixDense(q [][]fr.Element) {
	t := h.width()
	lins := h.lins()
	var column [poseidonWidthMax]fr.Element
	for j := range t {
		for i := range t {
			column[i] = q[i][j]
		}
		h.state[j] = element{lin: h.system.Combine(column[:t], lins[:t])}
	}
}

func (h *poseidonWalk) mixSparse(m *poseidon.Sparse) {
	t := h.width()
	lins := h.lins()
	h.state[0] = element{lin: h.system.Combine(m.What, lins[:t])}
	for j := 1; j < t; j++ {
		h.state[j] = element{lin: h.system.Plus(lins[j], m.V[j-1], lins[0])}
	}
}
