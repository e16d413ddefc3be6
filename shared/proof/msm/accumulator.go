package msm

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/internal/workers"
)

const (
	// roundPoints is how many bases are walked between two looks at the context.
	roundPoints = 1 << 17
	// pendingMax is how many points with full scalars wait for a pass over the buckets.
	pendingMax = 2 * roundPoints
)

// jacobian is what the final, scalar part of a sum needs of gnark's points.
type jacobian[A, J any] interface {
	*J
	FromAffine(*A) *J
	AddAssign(*J) *J
	AddMixed(*A) *J
	DoubleAssign() *J
}

// group binds the parts of the package to G1 or G2.
type group[A, J any, P jacobian[A, J]] struct {
	newKernel  func(portable bool) kernel[A]
	isInfinity func(*A) bool
	fromJac    func(*J) A
}

// worker is what one goroutine owns.
type worker[A any] struct {
	kernel  kernel[A]
	buckets *bucketer[A]
	adder   *adder[A]
	picked  picked
	// ones holds batchMax partial sums of the points with scalar 1, the points going round them.
	ones   *setOf
	stage  store // points on their way to ones
	staged int
}

// accumulator sums scalar multiples of streamed points; see G1Accumulator.
type accumulator[A, J any, P jacobian[A, J]] struct {
	group   group[A, J, P]
	config  Config
	workers []*worker[A]

	// points and scalars wait for a pass over the buckets; those of identity points are 0.
	points  store
	scalars []fr.Element
	pending atomic.Int64

	// Buckets of each window; bucket i holds the points with digits i+1 and, negated, -i-1. Set at the first pass.
	recoder recoder
	buckets []*setOf
	codes   codes
	failed  error
}

func newAccumulator[A, J any, P jacobian[A, J]](g group[A, J, P], c Config) (*accumulator[A, J, P], error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("configure accumulator: %w", err)
	}
	a := &accumulator[A, J, P]{group: g, config: c}
	for range c.workers() {
		k := g.newKernel(c.Portable)
		a.workers = append(a.workers, &worker[A]{kernel: k, buckets: newBucketer(k), adder: newAdder(k)})
	}
	return a, nil
}

func (a *accumulator[A, J, P]) addDense(ctx context.Context, bases Bases[A], scalars []fr.Element) error {
	if bases.Len() != len(scalars) {
		return fmt.Errorf("add %d bases with %d scalars: %w", bases.Len(), len(scalars), ErrLength)
	}
	return a.walk(ctx, bases, dense(scalars))
}

func (a *accumulator[A, J, P]) addSplit(ctx context.Context, bases Bases[A], s Split) error {
	x, err := newSplitIndex(s, bases.Len())
	if err != nil {
		return err
	}
	return a.walk(ctx, bases, x)
}

// walk reads the selected bases once, in rounds.
func (a *accumulator[A, J, P]) walk(ctx context.Context, bases Bases[A], s selection) error {
	if a.failed != nil {
		return a.failed
	}
	if bases.Len() > 1<<31-1 {
		return fmt.Errorf("add %d bases at once, more than 2^31-1: %w", bases.Len(), ErrLength)
	}
	for from := 0; from < s.len(); from += roundPoints {
		to := min(from+roundPoints, s.len())
		if err := a.round(ctx, bases, s, from, to); err != nil {
			a.failed = fmt.Errorf("accumulator after an error: %w", err)
			return err
		}
	}
	return nil
}

func (a *accumulator[A, J, P]) round(ctx context.Context, bases Bases[A], s selection, from, to int) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("add bases: %w", err)
	}
	a.reserve(to - from)
	err := workers.Each(len(a.workers), (to-from+taskPoints-1)/taskPoints, func(w, task int) error {
		lo := from + task*taskPoints
		return a.take(a.workers[w], bases, s, lo, min(lo+taskPoints, to))
	})
	if err != nil {
		return err
	}
	if int(a.pending.Load()) > pendingMax-roundPoints {
		n := a.config.ScalarCount
		if n == 0 {
			n = scalarCountDefault
		}
		return a.pass(ctx, n)
	}
	return nil
}

// reserve makes room for n more pending points.
func (a *accumulator[A, J, P]) reserve(n int) {
	have := int(a.pending.Load())
	need := have + n
	if need <= len(a.scalars) {
		return
	}
	size := min(max(need, 2*len(a.scalars)), pendingMax)
	points := a.workers[0].kernel.newStore(size)
	for i := range have {
		a.workers[0].kernel.assign(points, i, a.points, uint32(i))
	}
	scalars := make([]fr.Element, size)
	copy(scalars, a.scalars[:have])
	a.points, a.scalars = points, scalars
}

// take adds the points with scalar 1 of one task and puts those with full scalars among the pending ones.
func (a *accumulator[A, J, P]) take(w *worker[A], bases Bases[A], s selection, from, to int) error {
	p := &w.picked
	p.reset()
	s.pick(p, from, to)
	ones, err := a.dropInfinity(bases, p.ones, nil)
	if err != nil {
		return err
	}
	if err := w.addOnes(bases, ones); err != nil {
		return err
	}
	full, err := a.dropInfinity(bases, p.full, p.scalars)
	if err != nil || len(full) == 0 {
		return err
	}
	at := int(a.pending.Add(int64(len(full)))) - len(full)
	copy(a.scalars[at:], p.scalars[:len(full)])
	return w.kernel.load(a.points, at, bases, full)
}

// dropInfinity removes the identity points of a list, and their scalars, in place. It reports wrong flags.
func (a *accumulator[A, J, P]) dropInfinity(bases Bases[A], idx []int32, scalars []fr.Element) ([]int32, error) {
	kept := 0
	for k, i := range idx {
		var infinite bool
		var err error
		if bases.size > 0 {
			infinite, err = checkFlags(bases.point(int(i)))
		} else {
			infinite = a.group.isInfinity(&bases.affine[i])
		}
		if err != nil {
			return nil, fmt.Errorf("decode point %d: %w", i, err)
		}
		if infinite {
			continue
		}
		idx[kept] = i
		if scalars != nil {
			scalars[kept] = scalars[k]
		}
		kept++
	}
	return idx[:kept], nil
}

// addOnes adds bases[idx] to the partial sums.
func (w *worker[A]) addOnes(bases Bases[A], idx []int32) error {
	if len(idx) == 0 {
		return nil
	}
	if w.ones == nil {
		w.ones, w.stage = newSet(w.kernel, batchMax), w.kernel.newStore(batchMax)
	}
	for len(idx) > 0 {
		n := min(len(idx), batchMax-w.staged)
		if err := w.kernel.load(w.stage, w.staged, bases, idx[:n]); err != nil {
			return err
		}
		w.staged += n
		idx = idx[n:]
		if w.staged == batchMax {
			w.drain()
		}
	}
	return nil
}

// drain adds the staged points to the partial sums.
func (w *worker[A]) drain() {
	if w.staged == 0 {
		return
	}
	w.adder.between(w.ones, w.stage)
	for i := range w.staged {
		w.adder.push(uint32(i), uint32(i))
	}
	w.adder.flush()
	w.staged = 0
}

// result runs what is pending and returns the sum so far.
func (a *accumulator[A, J, P]) result(ctx context.Context) (A, error) {
	var zero A
	if a.failed != nil {
		return zero, a.failed
	}
	if err := a.pass(ctx, int(a.pending.Load())); err != nil {
		a.failed = fmt.Errorf("accumulator after an error: %w", err)
		return zero, err
	}
	var sum J
	if a.buckets != nil {
		windows, err := a.reduce(ctx)
		if err != nil {
			return zero, err
		}
		for w := len(windows) - 1; w >= 0; w-- {
			for range a.recoder.bits {
				P(&sum).DoubleAssign()
			}
			P(&sum).AddAssign(&windows[w])
		}
	}
	for _, w := range a.workers {
		w.drain()
		addSet[A, J, P](&sum, w.kernel, w.ones)
	}
	return a.group.fromJac(&sum), nil
}

// addSet adds all points of a set, which may be nil.
func addSet[A, J any, P jacobian[A, J]](sum *J, k kernel[A], set *setOf) {
	if set == nil {
		return
	}
	for i := range set.len() {
		if set.has(uint32(i)) {
			p := k.affine(set.store, i)
			P(sum).AddMixed(&p)
		}
	}
}
