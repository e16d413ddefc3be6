package msm

import (
	"context"
	"fmt"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/internal/workers"
)

// tableBitsMax bounds the window of a fixed-base table: 16 bits make 16 windows of 2^15 points, 50 to 128 MiB.
const tableBitsMax = 16

// fixedBase multiplies one point by many scalars: the multiples d 2^(cw) of the point for every window w and
// 1 <= d <= 2^(c-1) are kept, so that a product is one addition for each window.
type fixedBase[A, J any, P jacobian[A, J]] struct {
	group   group[A, J, P]
	config  Config
	size    int // bytes per encoded point
	recoder recoder
	table   *setOf // multiple d of window w is entry w<<(bits-1) + d-1
	workers []*multiplier[A]
}

// multiplier is what one goroutine owns.
type multiplier[A any] struct {
	kernel kernel[A]
	adder  *adder[A]
	sums   *setOf
	codes  codes
	// Multiples of one window and the sums they belong to.
	places, multiples []uint32
}

func newFixedBase[A, J any, P jacobian[A, J]](
	ctx context.Context, g group[A, J, P], base A, size int, c Config,
) (*fixedBase[A, J, P], error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure fixed-base table: %w", err)
	}
	if c.WindowBits > tableBitsMax {
		return nil, fmt.Errorf("window bits %d above %d for a table: %w", c.WindowBits, tableBitsMax, ErrConfig)
	}
	f := &fixedBase[A, J, P]{group: g, config: c, size: size, recoder: newRecoder(c.tableBits())}
	for range c.workers() {
		k := g.newKernel(c.Portable)
		f.workers = append(f.workers, &multiplier[A]{
			kernel: k, adder: newAdder(k), sums: newSet(k, batchMax),
			codes: newCodes(batchMax),
		})
	}
	return f, f.fillTable(ctx, base)
}

// tableBits picks the window of a table for ScalarCount multiplications, 0 meaning many.
func (c Config) tableBits() int {
	if c.WindowBits != 0 {
		return c.WindowBits
	}
	if c.ScalarCount == 0 {
		return tableBitsMax
	}
	best := tableBitsMax
	cost := func(w int) int { return windowCount(w) * (c.ScalarCount + 1<<(w-1)) }
	for w := tableBitsMax - 1; w >= WindowBitsMin; w-- {
		if cost(w) < cost(best) {
			best = w
		}
	}
	return best
}

// fillTable computes the multiples: those up to 2k are those up to k and their sums with multiple k. Half a window
// is 2^(bits-1) entries; the first one of the next window is twice the last one of this.
func (f *fixedBase[A, J, P]) fillTable(ctx context.Context, base A) error {
	windows, half := f.recoder.windows, 1<<(f.recoder.bits-1)
	f.table = newSet(f.workers[0].kernel, windows*half)
	if f.group.isInfinity(&base) {
		return nil
	}
	first := f.workers[0].kernel.newStore(windows)
	var j J
	P(&j).FromAffine(&base)
	for w := range windows {
		a := f.group.fromJac(&j)
		if f.group.isInfinity(&a) { // cannot be in a group of odd prime order
			return fmt.Errorf("double fixed base to window %d: %w", w, ErrEncoding)
		}
		if err := f.workers[0].kernel.load(first, w, Bases[A]{affine: []A{a}}, []int32{0}); err != nil {
			return err
		}
		for range f.recoder.bits {
			P(&j).DoubleAssign()
		}
	}
	return f.fillWindows(ctx, first, windows, half)
}

// fillWindows works on groups of windows whose marks share no word.
func (f *fixedBase[A, J, P]) fillWindows(ctx context.Context, first store, windows, half int) error {
	together := max(1, 64/half)
	tasks := (windows + together - 1) / together
	return workers.Each(len(f.workers), tasks, func(w, task int) error {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("fill fixed-base table: %w", err)
		}
		m := f.workers[w]
		for i := task * together; i < min(windows, (task+1)*together); i++ {
			at := i * half
			m.kernel.assign(f.table.store, at, first, uint32(i))
			f.table.set(uint32(at))
			m.adder.between(f.table, f.table.store)
			for k := 1; k < half; k *= 2 {
				for d := range k {
					m.kernel.assign(f.table.store, at+k+d, f.table.store, uint32(at+d))
					f.table.set(uint32(at + k + d))
					m.adder.pushSpread(uint32(at+k+d), uint32(at+k-1))
				}
				m.adder.flush()
			}
		}
		return nil
	})
}

// each multiplies the scalars in batches and gives each batch of sums to use.
func (f *fixedBase[A, J, P]) each(
	ctx context.Context, scalars []fr.Element, use func(m *multiplier[A], from, n int),
) error {
	return workers.Each(len(f.workers), (len(scalars)+batchMax-1)/batchMax, func(w, task int) error {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("multiply fixed base: %w", err)
		}
		from := task * batchMax
		n := min(batchMax, len(scalars)-from)
		m := f.workers[w]
		for i := range n {
			f.recoder.encode(m.codes, i, &scalars[from+i])
		}
		m.sums.clear()
		m.adder.between(m.sums, f.table.store)
		for w := range f.recoder.windows {
			f.addWindow(m, w, n)
		}
		m.adder.flush()
		use(m, from, n)
		return nil
	})
}

// addWindow adds the multiples of window w to the first n sums. Those of the first window are copied, one by one, so
// they are fetched ahead; the others are fetched while the window before is computed.
func (f *fixedBase[A, J, P]) addWindow(m *multiplier[A], w, n int) {
	at := uint32(w) << (f.recoder.bits - 1)
	cut := f.recoder.cutter(w)
	m.places, m.multiples = m.places[:0], m.multiples[:0]
	for i := range n {
		d, sign := cut.digit(m.codes, i), uint32(0)
		if d < 0 {
			d, sign = -d, negative
		}
		if entry := at + uint32(d) - 1; d != 0 && f.table.has(entry) {
			m.places, m.multiples = append(m.places, uint32(i)), append(m.multiples, entry|sign)
		}
	}
	if w == 0 {
		m.kernel.fetch(f.table.store, m.multiples)
	}
	for k, i := range m.places {
		m.adder.push(i, m.multiples[k])
	}
	m.adder.turn()
}

// encode writes the encoded products.
func (f *fixedBase[A, J, P]) encode(ctx context.Context, out []byte, scalars []fr.Element) error {
	if len(out) != len(scalars)*f.size {
		return fmt.Errorf("encode %d points to %d bytes: %w", len(scalars), len(out), ErrLength)
	}
	return f.each(ctx, scalars, func(m *multiplier[A], from, n int) {
		to := out[from*f.size : (from+n)*f.size]
		m.kernel.encode(to, m.sums.store, n)
		for i := range n {
			if !m.sums.has(uint32(i)) {
				clear(to[i*f.size : (i+1)*f.size])
				to[i*f.size] = flagInfinity
			}
		}
	})
}

// multiply returns the products; the identity is the zero value of A.
func (f *fixedBase[A, J, P]) multiply(ctx context.Context, scalars []fr.Element) ([]A, error) {
	out := make([]A, len(scalars))
	err := f.each(ctx, scalars, func(m *multiplier[A], from, n int) {
		m.kernel.export(out[from:from+n], m.sums.store, n)
		var identity A
		for i := range n {
			if !m.sums.has(uint32(i)) {
				out[from+i] = identity
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// FixedBaseG1 multiplies one G1 point by many scalars. It is not safe for concurrent use; each call spreads its work
// over Config.Workers goroutines.
type FixedBaseG1 struct {
	table *fixedBase[bls12381.G1Affine, bls12381.G1Jac, *bls12381.G1Jac]
}

// NewFixedBaseG1 builds the table for base, which must be in the prime-order subgroup or the identity; at most
// 64 MiB. Config.ScalarCount is the number of multiplications to come, 0 meaning millions; Config.WindowBits is at
// most 16. The error wraps ErrConfig or the context's.
func NewFixedBaseG1(ctx context.Context, base bls12381.G1Affine, c Config) (*FixedBaseG1, error) {
	f, err := newFixedBase(ctx, g1Group(), base, G1Bytes, c)
	if err != nil {
		return nil, err
	}
	return &FixedBaseG1{f}, nil
}

// Multiply returns scalars[i] times the base, (0, 0) for the identity.
func (f *FixedBaseG1) Multiply(ctx context.Context, scalars []fr.Element) ([]bls12381.G1Affine, error) {
	return f.table.multiply(ctx, scalars)
}

// Encode writes the uncompressed encodings of scalars[i] times the base to out, which must have G1Bytes for each
// scalar (ErrLength otherwise).
func (f *FixedBaseG1) Encode(ctx context.Context, out []byte, scalars []fr.Element) error {
	return f.table.encode(ctx, out, scalars)
}

// FixedBaseG2 is FixedBaseG1 for G2.
type FixedBaseG2 struct {
	table *fixedBase[bls12381.G2Affine, bls12381.G2Jac, *bls12381.G2Jac]
}

// NewFixedBaseG2 is NewFixedBaseG1 for G2; the table has at most 128 MiB.
func NewFixedBaseG2(ctx context.Context, base bls12381.G2Affine, c Config) (*FixedBaseG2, error) {
	f, err := newFixedBase(ctx, g2Group(), base, G2Bytes, c)
	if err != nil {
		return nil, err
	}
	return &FixedBaseG2{f}, nil
}

// Multiply returns scalars[i] times the base, (0, 0) for the identity.
func (f *FixedBaseG2) Multiply(ctx context.Context, scalars []fr.Element) ([]bls12381.G2Affine, error) {
	return f.table.multiply(ctx, scalars)
}

// Encode writes the uncompressed encodings of scalars[i] times the base to out, which must have G2Bytes for each
// scalar (ErrLength otherwise).
func (f *FixedBaseG2) Encode(ctx context.Context, out []byte, scalars []fr.Element) error {
	return f.table.encode(ctx, out, scalars)
}
