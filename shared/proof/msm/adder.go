package msm

// adder gathers additions into one set until a batch is full, so that they share an inversion. The caller must not
// add twice to the same entry between two flushes.
type adder[A any] struct {
	kernel kernel[A]
	dst    *setOf
	src    store
	d, s   []uint32
}

func newAdder[A any](k kernel[A]) *adder[A] {
	return &adder[A]{kernel: k, d: make([]uint32, 0, batchMax), s: make([]uint32, 0, batchMax)}
}

// between selects where additions go and come from; nothing may be pending.
func (a *adder[A]) between(dst *setOf, src store) { a.dst, a.src = dst, src }

// push adds src[s] to dst[d], now or at the next flush. It reports whether the entry is pending.
func (a *adder[A]) push(d, s uint32) bool {
	if !a.dst.has(d) {
		a.kernel.assign(a.dst.store, int(d), a.src, s)
		a.dst.set(d)
		return false
	}
	a.d, a.s = append(a.d, d), append(a.s, s)
	return true
}

func (a *adder[A]) full() bool { return len(a.d) == batchMax }

func (a *adder[A]) flush() {
	if len(a.d) == 0 {
		return
	}
	for _, k := range a.kernel.add(a.dst.store, a.d, a.src, a.s) {
		a.dst.unset(a.d[k])
	}
	a.d, a.s = a.d[:0], a.s[:0]
}

// pushSpread is push for a caller that only ever adds to distinct entries: a full batch is flushed.
func (a *adder[A]) pushSpread(d, s uint32) {
	if a.full() {
		a.flush()
	}
	a.push(d, s)
}
