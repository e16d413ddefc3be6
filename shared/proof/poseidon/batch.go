package poseidon

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// batchLanes is how many hashes one pass of the batch computes: the width of the library's vector multiplication, and
// small enough for two states to stay in the first-level cache.
const batchLanes = 16

// batchLanesMin is the smallest remainder that a padded pass hashes faster than single hashes do.
const batchLanesMin = 7

// lane holds one state element of batchLanes hashes.
type lane [batchLanes]fr.Element

// wideState is the state of batchLanes hashes, element by element.
type wideState [maxWidth]lane

// HashMany writes to dst[k] the hash of inputs[k·arity … k·arity+arity−1] for every k. It computes several hashes side
// by side, which takes less than half the time of as many calls of Hash where the processor has 512-bit vectors, and
// allocates nothing. dst may not overlap inputs. It panics unless arity is supported and len(inputs) = arity·len(dst).
func HashMany(dst, inputs []fr.Element, arity int) {
	p := Of(arity)
	if len(inputs) != arity*len(dst) {
		panic(fmt.Sprintf("poseidon: %d inputs for %d hashes of arity %d", len(inputs), len(dst), arity))
	}
	for len(dst) >= batchLanesMin {
		count := min(len(dst), batchLanes)
		p.hashWide(dst[:count], inputs[:count*arity])
		dst, inputs = dst[count:], inputs[count*arity:]
	}
	for k := range dst {
		dst[k] = p.Hash(inputs[k*arity : (k+1)*arity])
	}
}

// hashWide computes up to batchLanes hashes; lanes without inputs hash zeros and are dropped.
func (p *Params) hashWide(dst, inputs []fr.Element) {
	var a, b wideState
	width := p.Width
	for k := range batchLanes {
		a[0][k] = p.Tag
	}
	for k := range dst {
		for i := range p.Arity {
			a[i+1][k] = inputs[k*p.Arity+i]
		}
	}
	for i := range width {
		a[i].addConstant(&p.C[i])
	}
	constants := p.C[width:]
	now, next := &a, &b
	for round := range halfFullRounds {
		constants = now.substituteAll(constants, width)
		columns := p.denseM
		if round == halfFullRounds-1 {
			columns = p.denseP
		}
		now.mixDense(next, columns, width)
		now, next = next, now
	}
	for round := range p.PartialRounds {
		now[0].fifthPower()
		now[0].addConstant(&constants[round])
		now.mixSparse(&p.Sparse[round])
	}
	constants = constants[p.PartialRounds:]
	for range halfFullRounds - 1 {
		constants = now.substituteAll(constants, width)
		now.mixDense(next, p.denseM, width)
		now, next = next, now
	}
	for i := range width {
		now[i].fifthPower()
	}
	now.dot(&next[0], p.denseM[width:2*width])
	copy(dst, next[0][:])
}

func (l *lane) mul(x, y *lane) {
	vector := fr.Vector(l[:])
	vector.Mul(x[:], y[:])
}

func (l *lane) scale(x *lane, factor *fr.Element) {
	vector := fr.Vector(l[:])
	vector.ScalarMul(x[:], factor)
}

func (l *lane) add(x *lane) {
	vector := fr.Vector(l[:])
	vector.Add(vector, x[:])
}

func (l *lane) addConstant(c *fr.Element) {
	for k := range l {
		l[k].Add(&l[k], c)
	}
}

// fifthPower is the S-box on every lane.
func (l *lane) fifthPower() {
	var fourth lane
	fourth.mul(l, l)
	fourth.mul(&fourth, &fourth)
	l.mul(l, &fourth)
}

// substituteAll applies the S-box and the post-round constants to the first width elements and returns the constants
// that are left.
func (s *wideState) substituteAll(constants []fr.Element, width int) []fr.Element {
	for i := range width {
		s[i].fifthPower()
		s[i].addConstant(&constants[i])
	}
	return constants[width:]
}

// dot writes Σ_i s_i·column_i to out, which must not be one of the elements of s.
func (s *wideState) dot(out *lane, column []fr.Element) {
	var product lane
	out.scale(&s[0], &column[0])
	for i := 1; i < len(column); i++ {
		product.scale(&s[i], &column[i])
		out.add(&product)
	}
}

// mixDense writes s·Q to next; columns are those of Q, one after another.
func (s *wideState) mixDense(next *wideState, columns []fr.Element, width int) {
	for j := range width {
		s.dot(&next[j], columns[j*width:(j+1)*width])
	}
}

// mixSparse multiplies the state by a sparse matrix in place.
func (s *wideState) mixSparse(m *Sparse) {
	var first, product lane
	s.dot(&first, m.What)
	for j := range m.V {
		product.scale(&s[0], &m.V[j])
		s[j+1].add(&product)
	}
	s[0] = first
}
