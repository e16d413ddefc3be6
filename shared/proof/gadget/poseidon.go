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
		h.sbox(0, h.nextConstant())
		h.mix()
	}
	for range half - 1 {
		h.fullRound(true)
	}
	h.fullRound(false)
	return s.Assign(h.state[1])
}

const poseidonWidthMax = 12

// poseidonWalk is one hash in progress. A state element is an allocated variable or a combination (spec 2.8); mixing
// leaves combinations only.
type poseidonWalk struct {
	system *r1cs.System
	params *poseidon.Params
	state  [poseidonWidthMax]r1cs.Lin
	cursor int // next of the compressed round constants
	mixes  int // how many mixes were done
}

func (h *poseidonWalk) nextConstant() *fr.Element {
	h.cursor++
	return &h.params.C[h.cursor-1]
}

// sbox takes element i, a combination, to its fifth power plus post: spec ensure, then sbox.
func (h *poseidonWalk) sbox(i int, post *fr.Element) {
	s := h.system
	x := s.Lin(s.Assign(h.state[i]))
	h.fifthPower(i, &x, post)
}

// fifthPower allocates x², x⁴ and x⁵ + post, which becomes element i.
func (h *poseidonWalk) fifthPower(i int, x *r1cs.Lin, post *fr.Element) {
	s := h.system
	x2 := s.Lin(s.Product(x, x, nil))
	x4 := s.Lin(s.Product(&x2, &x2, nil))
	h.state[i] = s.Lin(s.Product(x, &x4, post))
}

// firstFullRound takes the domain tag through by constant arithmetic and adds the first constants on the way in.
func (h *poseidonWalk) firstFullRound(inputs []r1cs.Num) {
	s, t := h.system, h.params.Width
	pre, post := h.params.C[:t], h.params.C[t:2*t]
	h.cursor = 2 * t
	h.state[0] = s.Constant(tagThroughFirstRound(h.params))
	for i, input := range inputs {
		x := s.Shift(input, &pre[i+1])
		h.fifthPower(i+1, &x, &post[i+1])
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
	for i := range h.params.Width {
		var post *fr.Element
		if constants {
			post = h.nextConstant()
		}
		h.sbox(i, post)
	}
	h.mix()
}

// mix chooses the matrix by the number of mixes before (spec 2.8).
func (h *poseidonWalk) mix() {
	first := h.params.FullRounds / 2
	switch m := h.mixes; {
	case m == first-1:
		h.mixDense(h.params.ColumnP)
	case m >= first && m < first+h.params.PartialRounds:
		h.mixSparse(&h.params.Sparse[m-first])
	default:
		h.mixDense(h.params.ColumnM)
	}
	h.mixes++
}

func (h *poseidonWalk) mixDense(column func(j int) []fr.Element) {
	t := h.params.Width
	old := h.state
	for j := range t {
		h.state[j] = h.system.Combine(column(j), old[:t])
	}
}

func (h *poseidonWalk) mixSparse(m *poseidon.Sparse) {
	t := h.params.Width
	first := h.system.Combine(m.What, h.state[:t])
	for j := 1; j < t; j++ {
		h.system.AddScaled(&h.state[j], &m.V[j-1], &h.state[0])
	}
	h.state[0] = first
}
