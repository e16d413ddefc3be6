package poseidon

import (
	"fmt"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// FullRounds is the number of full rounds of every instance, half of them before the partial rounds.
const FullRounds = 8

const halfFullRounds = FullRounds / 2

// Sparse is one matrix of the partial rounds, as its first column and the rest of its first row:
// new_0 = Σ_i What[i]·e_i, and for j ≥ 1 new_j = e_j + V[j−1]·e_0.
type Sparse struct {
	// What has Width elements.
	What []fr.Element
	// V has Width − 1 elements.
	V []fr.Element
}

// Params are the constants of one arity (c2-circuit.md 2.8, 2.9). They are shared and must not be changed.
type Params struct {
	// Arity is the number of inputs, Width = Arity + 1 the number of state elements.
	Arity, Width int
	// FullRounds is 8; PartialRounds is 55, 56, 57, 57 for arity 2, 4, 8, 11.
	FullRounds, PartialRounds int
	// Tag is the domain tag 2^Arity − 1, the first state element.
	Tag fr.Element
	// C are the compressed round constants in order of use: 8·Width + PartialRounds of them.
	C []fr.Element
	// M is the MDS matrix, P the pre-sparse matrix of the last mix before the partial rounds; Width × Width each.
	M, P [][]fr.Element
	// Sparse are the PartialRounds matrices of the partial rounds, in order of use.
	Sparse []Sparse

	// columns of M and P, one after another, for the native hash.
	denseM, denseP []fr.Element
}

// The instances, each computed at its first use.
var (
	arity2  = sync.OnceValue(func() *Params { return derive(2, 55) })
	arity4  = sync.OnceValue(func() *Params { return derive(4, 56) })
	arity8  = sync.OnceValue(func() *Params { return derive(8, 57) })
	arity11 = sync.OnceValue(func() *Params { return derive(11, 57) })
)

// Of gives the constants for an arity of 2, 4, 8 or 11. It panics for any other arity.
func Of(arity int) *Params {
	switch arity {
	case 2:
		return arity2()
	case 4:
		return arity4()
	case 8:
		return arity8()
	case 11:
		return arity11()
	}
	panic(fmt.Sprintf("poseidon: arity %d is none of 2, 4, 8, 11", arity))
}

// ColumnM is column j of M, ColumnP that of P: Width elements each, not to be changed.
func (p *Params) ColumnM(j int) []fr.Element { return p.denseM[j*p.Width : (j+1)*p.Width] }

// ColumnP is column j of P; see ColumnM.
func (p *Params) ColumnP(j int) []fr.Element { return p.denseP[j*p.Width : (j+1)*p.Width] }

// derive computes all constants of one arity.
func derive(arity, partialRounds int) *Params {
	width := arity + 1
	m := mds(width)
	p := &Params{
		Arity: arity, Width: width, FullRounds: FullRounds, PartialRounds: partialRounds,
		C: compress(rawConstants(width, FullRounds, partialRounds), m, partialRounds),
		M: m,
	}
	p.Tag.SetUint64(1<<arity - 1)
	pre, sparse := factorize(m, partialRounds)
	p.P, p.Sparse = pre, sparse
	p.denseM, p.denseP = flattenColumns(m), flattenColumns(pre)
	return p
}

// compress turns raw round constants into the ones that are added after the S-boxes: those of a full round are pulled
// back through the mix before it, those of the partial rounds are folded into one element per round.
func compress(raw []fr.Element, m matrix, partialRounds int) []fr.Element {
	width := len(m)
	inverse := m.inverse()
	row := func(round int) []fr.Element { return raw[round*width : (round+1)*width] }

	out := append([]fr.Element(nil), row(0)...)
	for i := 1; i < halfFullRounds; i++ {
		out = append(out, inverse.leftMul(row(i))...)
	}
	folded := make([]fr.Element, partialRounds)
	last := halfFullRounds + partialRounds
	acc := append([]fr.Element(nil), row(last)...)
	for i := range partialRounds {
		pulled := inverse.leftMul(acc)
		folded[partialRounds-1-i] = pulled[0]
		pulled[0].SetZero()
		for j := range acc {
			acc[j].Add(&row(last - 1 - i)[j], &pulled[j])
		}
	}
	out = append(out, inverse.leftMul(acc)...)
	out = append(out, folded...)
	for i := 1; i < halfFullRounds; i++ {
		out = append(out, inverse.leftMul(row(last+i))...)
	}
	return out
}

// factorize splits the MDS matrices of the partial rounds into one dense pre-sparse matrix and one sparse matrix per
// round.
func factorize(m matrix, partialRounds int) (matrix, []Sparse) {
	sparse := make([]Sparse, partialRounds)
	current := m
	for i := range partialRounds {
		minor := current.minor()
		w := make([]fr.Element, len(minor))
		for j := range w {
			w[j] = current[j+1][0]
		}
		sparse[partialRounds-1-i] = Sparse{
			What: append([]fr.Element{current[0][0]}, minor.inverse().leftMul(w)...),
			V:    append([]fr.Element(nil), current[0][1:]...),
		}
		current = m.mul(minor.bordered())
	}
	return current, sparse
}

// flattenColumns lays the columns of a matrix one after another.
func flattenColumns(m matrix) []fr.Element {
	out := make([]fr.Element, 0, len(m)*len(m))
	for j := range m {
		for i := range m {
			out = append(out, m[i][j])
		}
	}
	return out
}
