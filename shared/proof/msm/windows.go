package msm

import (
	"context"
	"fmt"

	"github.com/proofrack/proofrack/shared/internal/workers"
)

// partsPerWorker is how many parts of windows each worker gets where there are more workers than windows.
const partsPerWorker = 3

// segmentsMax is how many running sums advance side by side in the reduction of a window.
const segmentsMax = batchMax

// pass adds the pending points to the buckets. At the first pass the window size is picked for n full scalars.
func (a *accumulator[A, J, P]) pass(ctx context.Context, n int) error {
	pending := int(a.pending.Load())
	if pending == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("add points to buckets: %w", err)
	}
	if a.buckets == nil {
		a.open(n)
	}
	a.recodeAll(pending)
	shares := windowShares(a.recoder.windows, len(a.workers), 1<<(a.recoder.bits-1))
	err := workers.Each(len(a.workers), len(shares), func(w, task int) error {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("add points to buckets: %w", err)
		}
		a.fill(a.workers[w].buckets, shares[task], pending)
		return nil
	})
	a.pending.Store(0)
	return err
}

// open makes the buckets.
func (a *accumulator[A, J, P]) open(n int) {
	k := a.workers[0].kernel
	a.recoder = newRecoder(a.config.windowBits(n, k.pointBytes()))
	a.buckets = make([]*setOf, a.recoder.windows)
	for w := range a.buckets {
		a.buckets[w] = newSet(k, 1<<(a.recoder.bits-1))
	}
}

// share is the buckets base..base+count-1 of a window.
type share struct{ window, base, count int }

// windowShares divides the buckets of all windows into tasks. As many windows as go round the workers stay whole: a
// task reads every point, in order, which is cheap only if it uses most of them. The others are split into ranges of
// at least 64 buckets, the marks of which share no word, so that the workers end together.
func windowShares(windows, workers, buckets int) []share {
	whole := windows / workers * workers
	tail, wanted := windows-whole, workers
	if whole == 0 {
		wanted *= partsPerWorker
	}
	parts := 1
	for tail*parts < wanted && buckets/(2*parts) >= 64 {
		parts *= 2
	}
	var shares []share
	for w := range windows {
		n := 1
		if w >= whole {
			n = parts
		}
		for i := range n {
			shares = append(shares, share{w, i * buckets / n, buckets / n})
		}
	}
	return shares
}

func (a *accumulator[A, J, P]) recodeAll(n int) {
	if len(a.codes) < n*codeBytes+codePadding {
		a.codes = newCodes(len(a.scalars))
	}
	const step = 4096
	// No task fails.
	_ = workers.Each(len(a.workers), (n+step-1)/step, func(_, task int) error {
		for i := task * step; i < min(n, (task+1)*step); i++ {
			a.recoder.encode(a.codes, i, &a.scalars[i])
		}
		return nil
	})
}

// fill adds the first n pending points to some of the buckets.
func (a *accumulator[A, J, P]) fill(b *bucketer[A], s share, n int) {
	b.begin(a.buckets[s.window], s.base, s.count, a.points)
	cut := a.recoder.cutter(s.window)
	base, count := uint32(s.base), uint32(s.count)
	for i := range n {
		d := cut.digit(a.codes, i)
		minus := uint32(d >> 31)
		bucket := (uint32(d) ^ minus) - minus - 1
		if bucket-base < count { // false for d = 0
			b.push(bucket, uint32(i)|minus&negative)
		}
	}
	b.end()
}

// reduce returns the sum of each window: bucket i counts i+1 times.
func (a *accumulator[A, J, P]) reduce(ctx context.Context) ([]J, error) {
	sums := make([]J, len(a.buckets))
	err := workers.Each(len(a.workers), len(a.buckets), func(w, i int) error {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("reduce buckets: %w", err)
		}
		sums[i] = reduceWindow[A, J, P](a.workers[w], a.buckets[i])
		return nil
	})
	return sums, err
}

// plainReduceMax is up to how many buckets are reduced one by one: segments would be too few to share inversions.
const plainReduceMax = 1 << 10

// weighted adds up the points of a set, entry i counting i + first times, first being 0 or 1.
func weighted[A, J any, P jacobian[A, J]](k kernel[A], set *setOf, first int) J {
	var running, total J
	for i := set.len() - 1; i >= 1-first; i-- {
		if set.has(uint32(i)) {
			p := k.affine(set.store, i)
			P(&running).AddMixed(&p)
		}
		P(&total).AddAssign(&running)
	}
	return total
}

// reduceWindow splits the buckets into segments of equal length and takes one bucket of every segment at a time,
// from the top: run[j] is the sum of the buckets of segment j so far, sum[j] the sum of those running sums. In the
// end sum[j] counts each bucket by its place in the segment, from 1; the places before the segment are added as
// (j length) run[j].
func reduceWindow[A, J any, P jacobian[A, J]](w *worker[A], buckets *setOf) J {
	if buckets.len() <= plainReduceMax {
		return weighted[A, J, P](w.kernel, buckets, 1)
	}
	segments := min(segmentsMax, buckets.len()/8)
	length := buckets.len() / segments
	run, sum := newSet(w.kernel, segments), newSet(w.kernel, segments)
	for k := length - 1; k >= 0; k-- {
		w.adder.between(run, buckets.store)
		for j := range segments {
			if at := uint32(j*length + k); buckets.has(at) {
				w.adder.push(uint32(j), at)
			}
		}
		w.adder.flush()
		w.adder.between(sum, run.store)
		for j := range segments {
			if run.has(uint32(j)) {
				w.adder.push(uint32(j), uint32(j))
			}
		}
		w.adder.flush()
	}
	total := weighted[A, J, P](w.kernel, run, 0)
	for l := length; l > 1; l /= 2 {
		P(&total).DoubleAssign()
	}
	addSet[A, J, P](&total, w.kernel, sum)
	return total
}
