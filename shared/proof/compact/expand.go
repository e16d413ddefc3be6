package compact

import (
	"fmt"
	"math/bits"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// codes are the field elements of the codes 0, 1, 2 and 3.
var codes = sync.OnceValue(func() *[4]fr.Element {
	var c [4]fr.Element
	c[1].SetOne()
	c[2].SetUint64(2)
	c[3].SetInt64(-1)
	return &c
})

// vector is one of the three vectors, ready to be expanded.
type vector struct {
	low, high, full []uint64 // high is nil where codes have one bit
	rank            []uint32
	elements        []fr.Element
	length          int
}

func (s *Segment) vectorA() vector {
	return vector{s.rowPlane(planeA0), s.rowPlane(planeA1), s.rowPlane(planeAFull), view[uint32](s, s.rankA),
		view[fr.Element](s, s.fullA), s.counts.RowsTotal()}
}

func (s *Segment) vectorB() vector {
	return vector{s.rowPlane(planeB0), nil, s.rowPlane(planeBFull), view[uint32](s, s.rankB),
		view[fr.Element](s, s.fullB), s.counts.RowsTotal()}
}

func (s *Segment) vectorAux() vector {
	return vector{s.auxPlane(planeX0), nil, s.auxPlane(planeXFull), view[uint32](s, s.rankX), s.AuxFull(), s.counts.Aux}
}

// ExpandA writes the a evaluations of rows from … from+len(dst)−1, the appended input rows included. It panics when the
// range leaves the vector.
func (s *Segment) ExpandA(from int, dst []fr.Element) { v := s.vectorA(); v.expand(from, dst) }

// ExpandB is ExpandA for the b evaluations.
func (s *Segment) ExpandB(from int, dst []fr.Element) { v := s.vectorB(); v.expand(from, dst) }

// ExpandAux is ExpandA for the auxiliaries.
func (s *Segment) ExpandAux(from int, dst []fr.Element) { v := s.vectorAux(); v.expand(from, dst) }

// ExpandC writes c = a·b for the rows from … from+len(dst)−1.
func (s *Segment) ExpandC(from int, dst []fr.Element) {
	s.ExpandA(from, dst)
	v := s.vectorB()
	v.check(from, len(dst))
	next := v.fullBefore(from)
	for k := range dst {
		w, at := (from+k)/64, uint((from+k)%64)
		switch {
		case v.full[w]>>at&1 == 1:
			dst[k].Mul(&dst[k], &v.elements[next])
			next++
		case v.low[w]>>at&1 == 0:
			dst[k] = fr.Element{}
		}
	}
}

func (v *vector) fullBefore(i int) int { return rankOf(v.full, v.rank, i) }

func (v *vector) check(from, n int) {
	if from < 0 || n > v.length-from {
		panic(fmt.Sprintf("compact: positions %d…%d of a vector of %d", from, from+n-1, v.length))
	}
}

func (v *vector) expand(from int, dst []fr.Element) {
	v.check(from, len(dst))
	if len(dst) == 0 {
		return
	}
	table := codes()
	next := v.fullBefore(from)
	for len(dst) > 0 {
		w, at := from/64, from%64
		n := min(64-at, len(dst))
		low, full, high := v.low[w]>>uint(at), v.full[w]>>uint(at), uint64(0)
		if v.high != nil {
			high = v.high[w] >> uint(at)
		}
		for k := range n {
			dst[k] = table[low>>uint(k)&1|high>>uint(k)&1<<1]
		}
		if n < 64 {
			full &= 1<<uint(n) - 1
		}
		for ; full != 0; full &= full - 1 {
			dst[bits.TrailingZeros64(full)] = v.elements[next]
			next++
		}
		dst, from = dst[n:], from+n
	}
}

// Value is the value of one variable. It is for checks: reading many values in a row is what ExpandAux is for.
func (s *Segment) Value(v r1cs.Var) fr.Element {
	if !v.IsAux() {
		return s.Inputs()[v.Index()]
	}
	var e [1]fr.Element
	s.ExpandAux(v.Index(), e[:])
	return e[0]
}
