package groth16

import (
	"context"
	"fmt"
	"math/bits"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/msm"
)

// assignment is a partition's assignment by scalar class. *compact.Segment has it.
type assignment interface {
	Inputs() []fr.Element
	AuxOnes() []uint64
	AuxFullMask() []uint64
	AuxFull() []fr.Element
}

// points is one list of points of a parameter file, encoded or decoded. srs.Section has it.
type points interface {
	Name() string
	Len() int
	Points(from, to int) []byte
	Decoded() bool
	G1(from, to int) []bls12381.G1Affine
	G2(from, to int) []bls12381.G2Affine
	Expect(from, to int)
	Release(from, to int)
}

// basesG1 refers to points of a list in G1.
func basesG1(p points, from, to int) (msm.G1Bases, error) {
	if p.Decoded() {
		return msm.AffineG1(p.G1(from, to)), nil
	}
	return msm.EncodedG1(p.Points(from, to))
}

// basesG2 refers to points of a list in G2.
func basesG2(p points, from, to int) (msm.G2Bases, error) {
	if p.Decoded() {
		return msm.AffineG2(p.G2(from, to)), nil
	}
	return msm.EncodedG2(p.Points(from, to))
}

// query is one list of a parameter file with the variables that it has points for (spec c2-circuit.md 1.4): inputs
// first, then auxiliaries, those left out that do not occur.
type query struct {
	points   points
	inputs   []uint64 // which inputs have a point
	aux      []uint64 // which auxiliaries have one; nil means all
	auxCount int
}

// accumulator is a streamed sum over bases of type B.
type accumulator[B any] interface {
	Add(ctx context.Context, bases B, scalars []fr.Element) error
	AddSplit(ctx context.Context, bases B, split msm.Split) error
}

// chunkWords is how many words of an auxiliary bitmap go to the accumulator at once: 2^18 variables.
const chunkWords = 1 << 12

// sum adds scalar · point over all variables of the query, chunk after chunk, and gives the file's pages back.
func sum[B any](
	ctx context.Context, q *query, w assignment, list func(p points, from, to int) (B, error), acc accumulator[B],
) error {
	next := 0
	advance := func(n int, add func(bases B) error) error {
		if n > q.points.Len()-next {
			return q.mismatch(next + n)
		}
		q.points.Expect(next+n, min(next+2*n, q.points.Len()))
		bases, err := list(q.points, next, next+n)
		if err == nil {
			err = add(bases)
		}
		if err != nil {
			return fmt.Errorf("sum points %d…%d of section %s: %w", next, next+n, q.points.Name(), err)
		}
		q.points.Release(next, next+n)
		next += n
		return nil
	}
	scalars := q.inputScalars(w.Inputs())
	if err := advance(len(scalars), func(b B) error { return acc.Add(ctx, b, scalars) }); err != nil {
		return err
	}
	var s splitter
	ones, mask, full := w.AuxOnes(), w.AuxFullMask(), w.AuxFull()
	for from := 0; from < len(ones); from += chunkWords {
		s.reset()
		for i := from; i < min(from+chunkWords, len(ones)); i++ {
			full = s.word(ones[i], mask[i], q.auxDensity(i), full)
		}
		if err := advance(s.count, func(b B) error { return acc.AddSplit(ctx, b, s.split) }); err != nil {
			return err
		}
	}
	if next != q.points.Len() {
		return q.mismatch(next)
	}
	return nil
}

func (q *query) mismatch(used int) error {
	return fmt.Errorf("%w: section %s has %d points, the circuit uses %d or more",
		ErrCounts, q.points.Name(), q.points.Len(), used)
}

func (q *query) inputScalars(inputs []fr.Element) []fr.Element {
	var dense []fr.Element
	for i := range inputs {
		if q.inputs[i/64]>>(i%64)&1 == 1 {
			dense = append(dense, inputs[i])
		}
	}
	return dense
}

// auxDensity is word i of the auxiliaries that have points.
func (q *query) auxDensity(i int) uint64 {
	switch {
	case q.aux != nil:
		return q.aux[i]
	case 64*(i+1) > q.auxCount:
		return 1<<(q.auxCount%64) - 1
	}
	return ^uint64(0)
}

// splitter lines scalars up with points: it closes the gaps of variables without a point.
type splitter struct {
	split msm.Split
	count int // variables with a point so far
}

func (s *splitter) reset() {
	s.split = msm.Split{Ones: s.split.Ones[:0], Escapes: s.split.Escapes[:0], Full: s.split.Full[:0]}
	s.count = 0
}

// word takes the next 64 variables; full are the full elements from here on, and what is left of them is returned.
func (s *splitter) word(ones, mask, density uint64, full []fr.Element) []fr.Element {
	for m := mask; m != 0; m &= m - 1 {
		if density>>uint(bits.TrailingZeros64(m))&1 == 1 {
			s.split.Full = append(s.split.Full, full[0])
		}
		full = full[1:]
	}
	fill := uint(s.count % 64)
	n := bits.OnesCount64(density)
	for 64*len(s.split.Ones) < s.count+n {
		s.split.Ones, s.split.Escapes = append(s.split.Ones, 0), append(s.split.Escapes, 0)
	}
	s.put(s.split.Ones, extract(ones, density), fill, n)
	s.put(s.split.Escapes, extract(mask, density), fill, n)
	s.count += n
	return full
}

func (s *splitter) put(bitmap []uint64, bits uint64, fill uint, n int) {
	if n == 0 {
		return
	}
	at := s.count / 64
	bitmap[at] |= bits << fill
	if rest := bits >> (64 - fill); fill > 0 && at+1 < len(bitmap) {
		bitmap[at+1] |= rest
	}
}

// extract gathers the bits of w at the positions of mask to the low end.
func extract(w, mask uint64) uint64 {
	if mask == ^uint64(0) {
		return w
	}
	var out uint64
	for shift := uint(0); mask != 0; {
		skip := uint(bits.TrailingZeros64(mask))
		w, mask = w>>skip, mask>>skip
		run := uint(bits.TrailingZeros64(^mask))
		out |= w & (1<<run - 1) << shift
		shift += run
		w, mask = w>>run, mask>>run
	}
	return out
}
