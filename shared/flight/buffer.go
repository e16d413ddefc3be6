package flight

import (
	"runtime"
	"time"
)

// Buffer is one large piece of memory as the recorder knows it: who has the memory has the handle. Its methods may be
// called from several goroutines and on nil.
type Buffer struct {
	recorder *Recorder
	class    uint8
	backing  Backing
	bytes    int64
	label    string

	// The rest is the recorder's to lock.
	stage      Stage
	asset      bool // stays between attempts
	heap       bool // the garbage collector says when it is gone
	tried      bool // Collect has run the collector for it
	lost       bool // its end is not counted: a planted leak
	since      time.Duration
	releasedAt time.Duration
	prev, next *Buffer
}

// insert puts a piece at the end of the list whose head is h.
func (h *Buffer) insert(b *Buffer) {
	b.prev, b.next = h.prev, h
	b.prev.next, b.next.prev = b, b
}

func (b *Buffer) remove() {
	b.prev.next, b.next.prev = b.next, b.prev
	b.prev, b.next = nil, nil
}

// Keep makes the buffer an asset: it stays when nothing runs. It returns the buffer.
func (b *Buffer) Keep() *Buffer {
	if b == nil {
		return nil
	}
	r := b.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	if !b.asset && b.stage != Gone {
		b.asset = true
		r.classes[b.class].kept.add(1, b.bytes)
	}
	return b
}

// Seal says that the buffer is complete.
func (b *Buffer) Seal() { b.enter(Sealed) }

// HandOver says that it belongs to another process from now on.
func (b *Buffer) HandOver() { b.enter(HandedOver) }

// OnDevice says that the device has what it needs of it.
func (b *Buffer) OnDevice() { b.enter(OnDevice) }

// Release says that nobody needs it any more; its memory is about to be given back.
func (b *Buffer) Release() { b.enter(Released) }

// Gone says that the system has its memory back. It must have been released.
func (b *Buffer) Gone() { b.enter(Gone) }

// enter moves the buffer to a later stage.
func (b *Buffer) enter(next Stage) {
	if b == nil {
		return
	}
	r := b.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	switch {
	case next <= b.stage:
		r.wrong(b, "it cannot become "+next.String())
		return
	case next == Gone && b.stage != Released:
		r.wrong(b, "it is gone and was not released")
		b.releasedAt = now
	}
	if next == Gone {
		b.end(now)
		return
	}
	r.change(b, b.stage, -1, now)
	b.stage = next
	if next == Released {
		b.releasedAt = now
	}
	r.change(b, next, 1, now)
}

// end takes a buffer that is gone out of all counts.
func (b *Buffer) end(now time.Duration) {
	if b.lost {
		return
	}
	r := b.recorder
	s := &r.classes[b.class]
	r.change(b, b.stage, -1, now)
	b.stage = Gone
	b.remove()
	s.sum.add(-1, -b.bytes)
	s.gone.add(1, b.bytes)
	if b.asset {
		s.kept.add(-1, -b.bytes)
	}
	s.backings[b.backing] -= b.bytes
	r.sum -= b.bytes
	s.lag[lagOf(now-b.releasedAt)]++
}

// OnHeap has the garbage collector say when a buffer is gone whose memory is what ptr points to, or is held by that
// alone; Gone must not be called for it. It returns the buffer.
func OnHeap[T any](b *Buffer, ptr *T) *Buffer {
	if b == nil || ptr == nil {
		return b
	}
	b.recorder.mu.Lock()
	b.heap = true
	b.recorder.mu.Unlock()
	runtime.AddCleanup(ptr, func(b *Buffer) { b.enter(Gone) }, b)
	return b
}

// lagCount is how many buckets there are.
const lagCount = 7

// LagBounds are the upper bounds of the buckets of ClassReport.Lag; the last bucket has none.
func LagBounds() [lagCount - 1]time.Duration {
	return [...]time.Duration{
		time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute,
	}
}

func lagOf(d time.Duration) int {
	for i, bound := range LagBounds() {
		if d <= bound {
			return i
		}
	}
	return lagCount - 1
}
