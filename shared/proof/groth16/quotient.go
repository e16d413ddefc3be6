package groth16

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/internal/workers"
	"github.com/proofrack/proofrack/shared/proof/groth16/internal/ntt"
)

// vectors are a partition's evaluations, block by block. *compact.Segment has it.
type vectors interface {
	ExpandA(from int, dst []fr.Element)
	ExpandB(from int, dst []fr.Element)
	ExpandC(from int, dst []fr.Element)
}

// ErrQuotient says that a quotient has a coefficient of degree m − 1, which no A·B − C has: arithmetic or memory is at
// fault. (An assignment that does not satisfy the circuit is not noticed here, since C is taken as A·B.)
var ErrQuotient = errors.New("quotient has too high a degree")

// quotient computes quotient polynomials on the domain of one circuit.
type quotient struct {
	domain  *ntt.Domain
	bits    int
	workers int
	// ofDomain and ofCoset are 1/(2m) and 1/(2m³): the halves of the two terms without the factors m that
	// interpolation leaves.
	ofDomain, ofCoset fr.Element
}

func newQuotient(domainBits, workers int) (*quotient, error) {
	domain, err := ntt.New(domainBits, workers)
	if err != nil {
		return nil, fmt.Errorf("prepare quotients: %w", err)
	}
	q := &quotient{domain: domain, bits: domainBits, workers: max(1, workers)}
	var m fr.Element
	m.SetUint64(uint64(domain.Size()))
	q.ofDomain.Double(&m).Inverse(&q.ofDomain)
	m.Square(&m).Inverse(&m)
	q.ofCoset.Mul(&q.ofDomain, &m)
	return q, nil
}

// size is the number of points, and of coefficients.
func (q *quotient) size() int { return q.domain.Size() }

// compute puts the coefficients of h = (A·B − C)/(x^m − 1) (spec c2-formats.md 3.6) into first, in natural order;
// second is scratch. Both have the domain's size. rowCount evaluations are given, the rest of the domain is zero.
//
// With P = A·B, of degree below 2m, and C ≡ P modulo x^m − 1, h is the upper half of P. P modulo x^m − 1 interpolates
// a·b on the domain, and P modulo x^m + 1 interpolates a·b on the coset where x^m = −1. The two are lower + upper half
// and lower − upper half, so h is half their difference: six transforms instead of seven, and c is never stored.
//
// Errors: ErrQuotient, and the context's, which is looked at between steps.
func (q *quotient) compute(ctx context.Context, v vectors, rowCount int, first, second fr.Vector) error {
	steps := []func(){
		func() { q.expand(v.ExpandA, rowCount, first) },
		func() { q.domain.Interpolate(first, ntt.Cyclic) },
		func() { q.domain.Evaluate(first, ntt.Negacyclic) },
		func() { q.expand(v.ExpandB, rowCount, second) },
		func() { q.domain.Interpolate(second, ntt.Cyclic) },
		func() { q.domain.Evaluate(second, ntt.Negacyclic) },
		func() { q.multiply(first, second) },
		func() { q.domain.Interpolate(first, ntt.Negacyclic) },
		func() { q.expand(v.ExpandC, rowCount, second) },
		func() { q.domain.Interpolate(second, ntt.Cyclic) },
		func() { q.halfDifference(first, second) },
	}
	for _, step := range steps {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("compute quotient: %w", err)
		}
		step()
	}
	if top := &first[len(first)-1]; !top.IsZero() {
		return fmt.Errorf("compute quotient on 2^%d points: %w", q.bits, ErrQuotient)
	}
	return nil
}

// multiply sets the elements of first to the products with those of second.
func (q *quotient) multiply(first, second fr.Vector) {
	q.chunks(func(from, to int) {
		r := first[from:to]
		r.Mul(r, second[from:to])
	})
}

// halfDifference takes the factors off both terms and puts half their difference into the first.
func (q *quotient) halfDifference(onCoset, onDomain fr.Vector) {
	q.chunks(func(from, to int) {
		c, d := onCoset[from:to], onDomain[from:to]
		c.ScalarMul(c, &q.ofCoset)
		d.ScalarMul(d, &q.ofDomain)
		c.Sub(d, c)
	})
}

// chunkElements is how many elements of each vector one step of element-wise work takes.
const chunkElements = 1 << 12

func (q *quotient) chunks(run func(from, to int)) {
	_ = workers.Each(q.workers, (q.size()+chunkElements-1)/chunkElements, func(_, i int) error {
		run(i*chunkElements, min((i+1)*chunkElements, q.size()))
		return nil
	})
}

// tileBits is the binary logarithm of the side of the squares in which evaluations are put in bit-reversed order: their
// rows are runs of evaluations, their columns runs of the vector.
const tileBits = 6

// expand fills a vector with evaluations and zeros, in bit-reversed order: evaluation high·mid·low goes to the place
// with the bits rev(low)·rev(mid)·rev(high).
func (q *quotient) expand(expand func(from int, dst []fr.Element), rowCount int, x fr.Vector) {
	t := min(tileBits, q.bits/2)
	side, midBits := 1<<t, q.bits-2*t
	tiles := sync.Pool{New: func() any { return new([1 << (2 * tileBits)]fr.Element) }}
	_ = workers.Each(q.workers, 1<<midBits, func(_, mid int) error {
		tile := tiles.Get().(*[1 << (2 * tileBits)]fr.Element)
		defer tiles.Put(tile)
		for high := range side {
			from := high<<(q.bits-t) | mid<<t
			run := tile[reverse(high, t)*side:][:side]
			n := max(0, min(side, rowCount-from))
			if n > 0 {
				expand(from, run[:n])
			}
			clear(run[n:])
		}
		for low := range side {
			to := x[reverse(low, t)<<(q.bits-t)|reverse(mid, midBits)<<t:][:side]
			for high := range to {
				to[high] = tile[high*side+low]
			}
		}
		return nil
	})
}

// reverse gives the lowest n bits of i in reverse.
func reverse(i, n int) int { return int(bits.Reverse64(uint64(i)) >> (64 - uint(n))) }
