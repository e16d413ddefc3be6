package msm

// pairs are additions dst[d[k]] += src[s[k]]; see kernel.add.
type pairs struct{ d, s []uint32 }

func newPairs() *pairs {
	return &pairs{d: make([]uint32, 0, batchMax), s: make([]uint32, 0, batchMax)}
}

// adder gathers additions into one set until a batch is full, so that they share an inversion. The caller must not
// add twice to the same entry between two flushes or turns.
//
// A batch that is turned in waits until the next one is complete, so that the kernel can fetch the points of the
// next while it computes.
type adder[A any] struct {
	kernel  kernel[A]
	dst     *setOf
	src     store
	next    *pairs // being filled
	waiting *pairs
}

func newAdder[A any](k kernel[A]) *adder[A] {
	return &adder[A]{kernel: k, next: newPairs(), waiting: newPairs()}
}

// between selects where additions go and come from; nothing may be pending.
func (a *adder[A]) between(dst *setOf, src store) { a.dst, a.src = dst, src }

// push adds src[s] to dst[d], now or at a later flush or turn. It reports whether the addition is in the batch.
func (a *adder[A]) push(d, s uint32) bool {
	if !a.dst.has(d) {
		a.kernel.assign(a.dst.store, int(d), a.src, s)
		a.dst.set(d)
		return false
	}
	a.next.d, a.next.s = append(a.next.d, d), append(a.next.s, s)
	return true
}

func (a *adder[A]) full() bool { return len(a.next.d) == batchMax }

// turn starts a new batch: the present one waits, the one that waited is run.
func (a *adder[A]) turn() {
	run := a.waiting
	a.waiting, a.next = a.next, run
	for _, k := range a.kernel.add(a.dst.store, run.d, a.src, run.s, a.waiting) {
		a.vanish(run.d[k])
	}
	run.d, run.s = run.d[:0], run.s[:0]
}

// vanish marks an entry as the identity; if something is about to be added to it, it becomes that.
func (a *adder[A]) vanish(d uint32) {
	a.dst.unset(d)
	w := a.waiting
	for k := range w.d {
		if w.d[k] == d {
			last := len(w.d) - 1
			s := w.s[k]
			w.d[k], w.s[k] = w.d[last], w.s[last]
			w.d, w.s = w.d[:last], w.s[:last]
			a.kernel.assign(a.dst.store, int(d), a.src, s)
			a.dst.set(d)
			return
		}
	}
}

// flush runs everything.
func (a *adder[A]) flush() {
	for len(a.next.d)+len(a.waiting.d) > 0 {
		a.turn()
	}
}

// pushSpread is push for a caller that only ever adds to distinct entries: a full batch is turned in.
func (a *adder[A]) pushSpread(d, s uint32) {
	if a.full() {
		a.turn()
	}
	a.push(d, s)
}
