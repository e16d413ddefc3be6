package msm

import "slices"

// deferredMax is how many additions wait for the next batch because their bucket is in the present one.
const deferredMax = 512

// overflowMax is how many additions to crowded buckets are set aside before they are summed among themselves.
const overflowMax = 16 << 10

// addition is one point on its way to a bucket; src may carry the negative mark.
type addition struct{ bucket, src uint32 }

// bucketer adds points to the buckets of one window in batches free of conflicts: no bucket occurs twice in a batch.
// An addition whose bucket is taken waits for the next batch; when too many wait, as with many equal scalars, they
// are set aside and summed pairwise, bucket by bucket, which is as fast as the rest.
type bucketer[A any] struct {
	adder    *adder[A]
	kernel   kernel[A]
	taken    []uint64 // bit for each bucket, from base on, that is in the present batch
	base     uint32   // first bucket of this task
	deferred []addition
	overflow []addition
	sums     *setOf // scratch of settle
}

func newBucketer[A any](k kernel[A]) *bucketer[A] {
	return &bucketer[A]{kernel: k, adder: newAdder(k), deferred: make([]addition, 0, deferredMax)}
}

// begin selects the buckets base..base+n-1 of set, base being a multiple of 64, and the points that are added to them.
func (b *bucketer[A]) begin(set *setOf, base, n int, points store) {
	if len(b.taken) < (n+63)/64 {
		b.taken = make([]uint64, (n+63)/64)
	}
	b.base = uint32(base)
	b.adder.between(set, points)
}

// push adds points[src] to a bucket. It is the inner loop of a pass: what is rare is elsewhere.
func (b *bucketer[A]) push(bucket, src uint32) {
	word, bit := &b.taken[(bucket-b.base)/64], uint64(1)<<(bucket%64)
	if *word&bit != 0 {
		b.postpone(bucket, src)
		return
	}
	a := b.adder
	if a.dst.used[bucket/64]&bit == 0 {
		a.push(bucket, src)
		return
	}
	*word |= bit
	p := a.next
	p.d, p.s = append(p.d, bucket), append(p.s, src)
	if len(p.d) == batchMax {
		b.next()
	}
}

// postpone keeps an addition for a later batch.
func (b *bucketer[A]) postpone(bucket, src uint32) {
	b.deferred = append(b.deferred, addition{bucket, src})
	if len(b.deferred) == deferredMax {
		b.next()
		if len(b.deferred) > deferredMax/2 {
			b.overflow = append(b.overflow, b.deferred...)
			b.deferred = b.deferred[:0]
		}
		if len(b.overflow) >= overflowMax {
			b.settle()
		}
	}
}

// turn turns in the present batch; its buckets are free again.
func (b *bucketer[A]) turn() {
	for _, d := range b.adder.next.d {
		b.taken[(d-b.base)/64] = 0
	}
	b.adder.turn()
}

// next turns in the present batch and starts another one with what waited for it.
func (b *bucketer[A]) next() {
	b.turn()
	kept := b.deferred[:0]
	for i, d := range b.deferred {
		if b.adder.full() {
			kept = append(kept, b.deferred[i:]...)
			break
		}
		word, bit := &b.taken[(d.bucket-b.base)/64], uint64(1)<<(d.bucket%64)
		if *word&bit != 0 {
			kept = append(kept, d)
			continue
		}
		if b.adder.push(d.bucket, d.src) {
			*word |= bit
		}
	}
	b.deferred = kept
	if b.adder.full() {
		b.turn()
	}
}

func (b *bucketer[A]) flush() {
	b.turn()
	b.adder.flush()
}

// end runs everything that waits.
func (b *bucketer[A]) end() {
	b.flush()
	b.overflow = append(b.overflow, b.deferred...)
	b.deferred = b.deferred[:0]
	b.settle()
}

// settle sums the additions set aside, each bucket's among themselves by halving, and adds one sum to each bucket.
func (b *bucketer[A]) settle() {
	list := b.overflow
	if len(list) == 0 {
		return
	}
	b.flush()
	slices.SortFunc(list, func(x, y addition) int { return int(x.bucket) - int(y.bucket) })
	if b.sums == nil || b.sums.len() < len(list) {
		b.sums = newSet(b.kernel, max(len(list), deferredMax))
	}
	set, points := b.adder.dst, b.adder.src
	b.sums.clear()
	for i, a := range list {
		b.kernel.assign(b.sums.store, i, points, a.src)
		b.sums.set(uint32(i))
	}
	runs := runsOf(list)
	b.adder.between(b.sums, b.sums.store)
	for fold(b.adder, b.sums, runs) {
		continue
	}
	b.adder.between(set, b.sums.store)
	for _, r := range runs {
		if b.sums.has(r.first) {
			b.adder.pushSpread(list[r.first].bucket, r.first)
		}
	}
	b.flush()
	b.adder.between(set, points)
	b.overflow = list[:0]
}

// run is a range of entries of a set whose sum is wanted.
type run struct{ first, count uint32 }

func runsOf(list []addition) []run {
	var runs []run
	for i := range list {
		if i > 0 && list[i].bucket == list[i-1].bucket {
			runs[len(runs)-1].count++
			continue
		}
		runs = append(runs, run{uint32(i), 1})
	}
	return runs
}

// fold adds the upper half of every run onto its lower half; false means that all runs had one entry already. The
// adder must be between(set, set).
func fold[A any](a *adder[A], set *setOf, runs []run) bool {
	more := false
	for i := range runs {
		r := &runs[i]
		if r.count < 2 {
			continue
		}
		keep := (r.count + 1) / 2
		for j := keep; j < r.count; j++ {
			if set.has(r.first + j) {
				a.pushSpread(r.first+j-keep, r.first+j)
			}
		}
		r.count = keep
		more = true
	}
	a.flush()
	return more
}
