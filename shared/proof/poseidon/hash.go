package poseidon

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// maxWidth is the largest supported state, that of arity 11.
const maxWidth = 12

// state holds up to maxWidth elements; the first Width are in use.
type state [maxWidth]fr.Element

// Hash is the Poseidon hash of 2, 4, 8 or 11 field elements. It allocates nothing, keeps inputs unchanged, and panics
// for any other number of inputs.
func Hash(inputs []fr.Element) fr.Element {
	return Of(len(inputs)).Hash(inputs)
}

// Hash2 is the hash of two elements, as in comm_r = Hash2(comm_c, comm_r_last).
func Hash2(left, right *fr.Element) fr.Element {
	inputs := [2]fr.Element{*left, *right}
	return Of(2).Hash(inputs[:])
}

// Hash is the hash of exactly Arity field elements; another number panics.
func (p *Params) Hash(inputs []fr.Element) fr.Element {
	if len(inputs) != p.Arity {
		panic(fmt.Sprintf("poseidon: %d inputs for arity %d", len(inputs), p.Arity))
	}
	var a, b state
	width := p.Width
	a[0].Add(&p.Tag, &p.C[0])
	for i := range inputs {
		a[i+1].Add(&inputs[i], &p.C[i+1])
	}
	constants := p.C[width:]
	now, next := &a, &b
	for round := range halfFullRounds {
		substituteAll(now, constants[:width])
		constants = constants[width:]
		if round == halfFullRounds-1 {
			mixDense(now, next, p.denseP, width)
		} else {
			mixDense(now, next, p.denseM, width)
		}
		now, next = next, now
	}
	for round := range p.PartialRounds {
		fifthPower(&now[0])
		now[0].Add(&now[0], &constants[round])
		mixSparse(now, &p.Sparse[round])
	}
	constants = constants[p.PartialRounds:]
	for range halfFullRounds - 1 {
		substituteAll(now, constants[:width])
		constants = constants[width:]
		mixDense(now, next, p.denseM, width)
		now, next = next, now
	}
	for i := range width {
		fifthPower(&now[i])
	}
	return dot(now, p.denseM[width:2*width])
}

// fifthPower is the S-box.
func fifthPower(x *fr.Element) {
	var fourth fr.Element
	fourth.Square(x)
	fourth.Square(&fourth)
	x.Mul(x, &fourth)
}

// substituteAll applies the S-box and the post-round constants to as many elements as there are constants.
func substituteAll(s *state, constants []fr.Element) {
	for i := range constants {
		fifthPower(&s[i])
		s[i].Add(&s[i], &constants[i])
	}
}

// dot is Σ_i s_i·column_i.
func dot(s *state, column []fr.Element) fr.Element {
	var sum, product fr.Element
	sum.Mul(&s[0], &column[0])
	for i := 1; i < len(column); i++ {
		product.Mul(&s[i], &column[i])
		sum.Add(&sum, &product)
	}
	return sum
}

// mixDense writes now·Q to next; columns are those of Q, one after another.
func mixDense(now, next *state, columns []fr.Element, width int) {
	for j := range width {
		next[j] = dot(now, columns[j*width:(j+1)*width])
	}
}

// mixSparse multiplies the state by a sparse matrix in place.
func mixSparse(s *state, m *Sparse) {
	first := dot(s, m.What)
	var product fr.Element
	for j := range m.V {
		product.Mul(&s[0], &m.V[j])
		s[j+1].Add(&s[j+1], &product)
	}
	s[0] = first
}
