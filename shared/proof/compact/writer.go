package compact

import (
	"fmt"
	"sync/atomic"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// writer appends the values of one section to a segment. It implements r1cs.PatternValues. Words that the section
// shares with its neighbours are merged atomically.
type writer struct {
	segment *Segment
	rows    stream[[rowPlanes]uint64]
	aux     stream[[auxPlanes]uint64]

	inputs, fullA, fullB, fullX []fr.Element // what is left to fill
}

// stream packs bits into planes. P holds one word of each plane.
type stream[P any] struct {
	planes [][]uint64
	acc    P
	fill   uint // bits in acc
	word   int  // where acc goes
	shared bool // the word at hand belongs to the section before, too
}

func (s *Segment) section(start, end r1cs.Position) *writer {
	w := &writer{
		segment: s,
		inputs:  s.Inputs()[start.Inputs:end.Inputs],
		fullA:   view[fr.Element](s, s.fullA)[start.FullA:end.FullA],
		fullB:   view[fr.Element](s, s.fullB)[start.FullB:end.FullB],
		fullX:   view[fr.Element](s, s.fullX)[start.FullAux:end.FullAux],
	}
	for i := range s.rows {
		w.rows.planes = append(w.rows.planes, s.rowPlane(i))
	}
	for i := range s.aux {
		w.aux.planes = append(w.aux.planes, s.auxPlane(i))
	}
	w.rows.word, w.rows.fill, w.rows.shared = start.Rows/64, uint(start.Rows%64), start.Rows%64 != 0
	w.aux.word, w.aux.fill, w.aux.shared = start.Aux/64, uint(start.Aux%64), start.Aux%64 != 0
	return w
}

func (w *writer) SmallRows(n int, a0, a1, b uint64) {
	s := &w.rows
	fill := s.fill
	s.acc[planeA0] |= a0 << fill
	s.acc[planeA1] |= a1 << fill
	s.acc[planeB0] |= b << fill
	s.fill += uint(n)
	if s.fill >= 64 {
		w.storeRows()
		used := 64 - fill
		s.acc = [rowPlanes]uint64{planeA0: a0 >> used, planeA1: a1 >> used, planeB0: b >> used}
		s.fill -= 64
	}
}

func (w *writer) row(b0, aFull, bFull uint64) {
	s := &w.rows
	s.acc[planeB0] |= b0 << s.fill
	s.acc[planeAFull] |= aFull << s.fill
	s.acc[planeBFull] |= bFull << s.fill
	s.fill++
	if s.fill == 64 {
		w.storeRows()
		s.acc, s.fill = [rowPlanes]uint64{}, 0
	}
}

func (w *writer) FullRow(a, b *fr.Element) {
	w.row(0, 1, 1)
	w.fullA[0], w.fullB[0] = *a, *b
	w.fullA, w.fullB = w.fullA[1:], w.fullB[1:]
}

func (w *writer) FullBitRow(a *fr.Element, b uint64) {
	w.row(b, 1, 0)
	w.fullA[0] = *a
	w.fullA = w.fullA[1:]
}

func (w *writer) AuxBits(n int, v uint64) {
	s := &w.aux
	fill := s.fill
	s.acc[planeX0] |= v << fill
	s.fill += uint(n)
	if s.fill >= 64 {
		w.storeAux()
		s.acc = [auxPlanes]uint64{planeX0: v >> (64 - fill)}
		s.fill -= 64
	}
}

func (w *writer) AuxFull(v *fr.Element) {
	s := &w.aux
	s.acc[planeXFull] |= 1 << s.fill
	s.fill++
	if s.fill == 64 {
		w.storeAux()
		s.acc, s.fill = [auxPlanes]uint64{}, 0
	}
	w.fullX[0] = *v
	w.fullX = w.fullX[1:]
}

func (w *writer) Input(v *fr.Element) {
	w.inputs[0] = *v
	w.inputs = w.inputs[1:]
}

// Pattern takes a whole pattern; see r1cs.PatternValues.
func (w *writer) Pattern(p *r1cs.Pattern, list []fr.Element) {
	for i := range p.Full {
		n := min(64, len(p.A)-64*i)
		w.fullRows(n, p.Bits[i], p.Full[i])
	}
	for left := len(p.Aux); left > 0; left -= 64 {
		w.fullAux(min(64, left))
	}
	w.fullA = gather(w.fullA, list, p.A)
	w.fullB = gather(w.fullB, list, p.B)
	w.fullX = gather(w.fullX, list, p.Aux)
}

// gather fills dst with the elements at the places and returns what is left of it.
func gather(dst, list []fr.Element, places []int32) []fr.Element {
	for i, place := range places {
		dst[i] = list[place]
	}
	return dst[len(places):]
}

// fullRows appends the codes of n ≤ 64 rows with full a.
func (w *writer) fullRows(n int, b0, bFull uint64) {
	s := &w.rows
	fill, aFull := s.fill, ^uint64(0)>>(64-uint(n))
	s.acc[planeB0] |= b0 << fill
	s.acc[planeAFull] |= aFull << fill
	s.acc[planeBFull] |= bFull << fill
	s.fill += uint(n)
	if s.fill >= 64 {
		w.storeRows()
		used := 64 - fill
		s.acc = [rowPlanes]uint64{planeB0: b0 >> used, planeAFull: aFull >> used, planeBFull: bFull >> used}
		s.fill -= 64
	}
}

// fullAux appends the codes of n ≤ 64 full auxiliaries.
func (w *writer) fullAux(n int) {
	s := &w.aux
	fill, full := s.fill, ^uint64(0)>>(64-uint(n))
	s.acc[planeXFull] |= full << fill
	s.fill += uint(n)
	if s.fill >= 64 {
		w.storeAux()
		s.acc = [auxPlanes]uint64{planeXFull: full >> (64 - fill)}
		s.fill -= 64
	}
}

func (w *writer) storeRows() { store(&w.rows, w.rows.acc[:]) }
func (w *writer) storeAux()  { store(&w.aux, w.aux.acc[:]) }

func store[P any](s *stream[P], acc []uint64) {
	if s.shared {
		merge(s, acc)
	} else {
		for i, v := range acc {
			s.planes[i][s.word] = v
		}
	}
	s.word++
	s.shared = false
}

func merge[P any](s *stream[P], acc []uint64) {
	for i, v := range acc {
		atomic.OrUint64(&s.planes[i][s.word], v)
	}
}

// finish writes the last, shared words and checks that the section ended where its circuit says.
func (w *writer) finish(end r1cs.Position) {
	rows, aux := 64*w.rows.word+int(w.rows.fill), 64*w.aux.word+int(w.aux.fill)
	left := len(w.inputs) + len(w.fullA) + len(w.fullB) + len(w.fullX)
	if rows != end.Rows || aux != end.Aux || left != 0 {
		panic(fmt.Sprintf("compact: section ended at row %d, aux %d with %d elements missing; its circuit says %+v",
			rows, aux, left, end))
	}
	if w.rows.fill > 0 {
		merge(&w.rows, w.rows.acc[:])
	}
	if w.aux.fill > 0 {
		merge(&w.aux, w.aux.acc[:])
	}
}
