package groth16

import (
	"fmt"
	"math/big"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
)

// transform is the discrete Fourier transform over 2^bits points, cut into a grid of rowCount × rowLength (Bailey's four
// steps), so that one pass works on columns or rows that fit the cache and tables take rowCount + rowLength elements
// instead of twice the domain.
//
// Point n = n1·rowLength + n2 is at grid place (n1, n2). Coefficient k = k1 + rowCount·k2 is at (rev k1, rev k2), which is
// bit-reversed order of the whole.
type transform struct {
	bits                int
	rowCount, rowLength int

	columnDomain, rowDomain *fft.Domain
	root, rootInverse       fr.Element // of order 2^bits
	shift, shiftInverse     shiftTable
	workers                 int
}

// shiftTable are the powers of the coset's shift: shift^k at grid place (p, c) is row[p]·column[c].
type shiftTable struct{ row, column fr.Vector }

// Bounds of a domain: below, the grid degenerates; above, roots of unity end (spec c2-formats.md 3.1) with one bit kept
// for the shift.
const (
	domainBitsMin = 2
	domainBitsMax = 31
)

// newTransform prepares tables. The coset's shift ζ is the root of unity of twice the order, so ζ^m = −1.
func newTransform(domainBits, workers int) (*transform, error) {
	if domainBits < domainBitsMin || domainBits > domainBitsMax {
		return nil, fmt.Errorf("domain of 2^%d points: supported are 2^%d … 2^%d", domainBits, domainBitsMin, domainBitsMax)
	}
	t := &transform{bits: domainBits, workers: max(1, workers)}
	t.rowCount = 1 << (domainBits / 2)
	t.rowLength = 1 << (domainBits - domainBits/2)
	t.columnDomain, t.rowDomain = fft.NewDomain(uint64(t.rowCount)), fft.NewDomain(uint64(t.rowLength))
	zeta, err := fft.Generator(2 << domainBits)
	if err != nil {
		return nil, fmt.Errorf("domain of 2^%d points: %w", domainBits, err)
	}
	t.root.Square(&zeta)
	t.rootInverse.Inverse(&t.root)
	t.shift = t.shiftTable(zeta)
	zeta.Inverse(&zeta)
	t.shiftInverse = t.shiftTable(zeta)
	return t, nil
}

func (t *transform) shiftTable(zeta fr.Element) shiftTable {
	s := shiftTable{row: make(fr.Vector, t.rowCount), column: make(fr.Vector, t.rowLength)}
	fft.BuildExpTable(zeta, s.row)
	var step fr.Element
	step.Exp(zeta, big.NewInt(int64(t.rowCount)))
	fft.BuildExpTable(step, s.column)
	fft.BitReverse(s.row)
	fft.BitReverse(s.column)
	return s
}

// size is the number of points.
func (t *transform) size() int { return 1 << t.bits }

func reverse(i, n int) int {
	return int(bits.Reverse64(uint64(i)) >> (64 - uint(bits.TrailingZeros64(uint64(n)))))
}

// stripColumns is how many neighbouring columns are worked on at once: eight cache lines.
const stripColumns = 16

// columns does the column half: towards coefficients it transforms and then twists, towards points the other way round.
func (t *transform) columns(x fr.Vector, towardsPoints bool) {
	width := min(stripColumns, t.rowLength)
	scratch := sync.Pool{New: func() any { return &strip{buffer: make(fr.Vector, width*t.rowCount)} }}
	parallel(t.workers, t.rowLength/width, func(i int) {
		s := scratch.Get().(*strip)
		defer scratch.Put(s)
		s.transform, s.x, s.first, s.width = t, x, i*width, width
		if towardsPoints {
			s.twist(&t.root)
			s.run(func(column fr.Vector) { t.columnDomain.FFT(column, fft.DIT, fft.WithNbTasks(1)) })
			return
		}
		s.run(func(column fr.Vector) { t.columnDomain.FFTInverse(column, fft.DIF, fft.WithNbTasks(1)) })
		s.twist(&t.rootInverse)
	})
}

// strip is a few neighbouring columns.
type strip struct {
	transform    *transform
	x            fr.Vector
	first, width int
	buffer       fr.Vector // the columns one after another
}

func (s *strip) row(p int) fr.Vector {
	at := p*s.transform.rowLength + s.first
	return s.x[at : at+s.width]
}

// run transforms each column in the buffer.
func (s *strip) run(transform func(column fr.Vector)) {
	n := s.transform.rowCount
	for p := range n {
		for c, v := range s.row(p) {
			s.buffer[c*n+p] = v
		}
	}
	for c := range s.width {
		transform(s.buffer[c*n : (c+1)*n])
	}
	for p := range n {
		row := s.row(p)
		for c := range row {
			row[c] = s.buffer[c*n+p]
		}
	}
}

// twist multiplies place (rev k1, n2) by root^(k1·n2).
func (s *strip) twist(root *fr.Element) {
	var store [2 * stripColumns]fr.Element
	step, power := fr.Vector(store[:s.width]), fr.Vector(store[stripColumns:stripColumns+s.width])
	step[0].Exp(*root, big.NewInt(int64(s.first)))
	for c := 1; c < s.width; c++ {
		step[c].Mul(&step[c-1], root)
	}
	copy(power, step)
	for k1 := 1; k1 < s.transform.rowCount; k1++ {
		row := s.row(reverse(k1, s.transform.rowCount))
		row.Mul(row, power)
		power.Mul(power, step)
	}
}

// rows calls visit for every row, from all workers.
func (t *transform) rows(visit func(p int, row func(x fr.Vector) fr.Vector)) {
	parallel(t.workers, t.rowCount, func(p int) {
		visit(p, func(x fr.Vector) fr.Vector { return x[p*t.rowLength : (p+1)*t.rowLength] })
	})
}

func (t *transform) rowToCoefficients(row fr.Vector) {
	t.rowDomain.FFTInverse(row, fft.DIF, fft.WithNbTasks(1))
}
func (t *transform) rowToPoints(row fr.Vector) { t.rowDomain.FFT(row, fft.DIT, fft.WithNbTasks(1)) }

// scale multiplies the coefficients of row p by the powers in the table.
func (s *shiftTable) scale(p int, row fr.Vector) {
	row.Mul(row, s.column)
	row.ScalarMul(row, &s.row[p])
}

// toCoset turns evaluations on the domain into evaluations on the shifted domain, both in natural order.
func (t *transform) toCoset(x fr.Vector) {
	t.columns(x, false)
	t.rows(func(p int, row func(fr.Vector) fr.Vector) {
		r := row(x)
		t.rowToCoefficients(r)
		t.shift.scale(p, r)
		t.rowToPoints(r)
	})
	t.columns(x, true)
}

// transposeStrip is how many rows are read at once when coefficients are put into natural order.
const transposeStrip = 16

// naturalOrder copies coefficients from the grid to their natural places.
func (t *transform) naturalOrder(dst, grid fr.Vector) {
	width := min(transposeStrip, t.rowCount)
	parallel(t.workers, t.rowCount/width, func(i int) {
		for c := range t.rowLength {
			at := reverse(c, t.rowLength) * t.rowCount
			for k1 := i * width; k1 < (i+1)*width; k1++ {
				dst[at+k1] = grid[reverse(k1, t.rowCount)*t.rowLength+c]
			}
		}
	})
}

// parallel calls run(0) … run(n−1) from at most workers goroutines.
func parallel(workers, n int, run func(i int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range max(1, min(workers, n)) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				run(i)
			}
		})
	}
	group.Wait()
}
