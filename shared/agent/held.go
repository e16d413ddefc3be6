package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Held is a booking that this worker holds. Its methods may be called from several goroutines; after HandOver or Remove
// they fail with ErrMoved.
type Held struct {
	book *Book

	mu      sync.Mutex
	booking Booking
	gone    bool
	freed   bool // its attempt has ended
}

// Booking is what is booked now.
func (h *Held) Booking() Booking {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.booking
}

// update changes the booking in the book, if it is still ours.
func (h *Held) update(ctx context.Context, what string, next func(Booking) (*Booking, error)) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.booking.Attempt
	if h.gone {
		return fmt.Errorf("%s of attempt %s: %w", what, a, fault.As(fault.Conflict, ErrMoved))
	}
	var changed *Booking
	err := h.book.change(ctx, a, func(old *Booking) (_ *Booking, err error) {
		if old.Owner.Instance != h.book.owner.Instance || old.Handed {
			return nil, fault.As(fault.Conflict, ErrMoved)
		}
		changed, err = next(*old)
		return changed, err
	})
	if err != nil {
		return fmt.Errorf("%s of attempt %s: %w", what, a, err)
	}
	if changed != nil {
		h.booking = *changed
	}
	return nil
}

// SetStage notes how far the attempt is. The note is for reports alone, so a folder without room for it (Exhausted)
// does not fail the attempt.
func (h *Held) SetStage(ctx context.Context, stage job.Stage) error {
	err := h.update(ctx, "book stage", func(b Booking) (*Booking, error) {
		b.Stage, b.At = stage, time.Now()
		return &b, nil
	})
	if fault.KindOf(err) == fault.Exhausted {
		return nil
	}
	return err
}

// Shrink gives back bytes that are gone although the attempt goes on. It refuses more than is booked (Invalid).
func (h *Held) Shrink(ctx context.Context, gone ledger.Amounts) error {
	return h.update(ctx, "shrink booking", func(b Booking) (*Booking, error) {
		rest, err := b.Amounts.Minus(gone)
		if err != nil {
			return nil, fault.As(fault.Invalid, err)
		}
		if b.Shrunk, err = b.Shrunk.Plus(gone); err != nil {
			return nil, fault.As(fault.Invalid, err)
		}
		b.Amounts, b.At = rest, time.Now()
		return &b, nil
	})
}

// Rebook changes the amounts, e.g. from shm to disk, if the new ones fit; otherwise it is a *Veto and nothing changes.
func (h *Held) Rebook(ctx context.Context, amounts ledger.Amounts) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	a := h.booking.Attempt
	if h.gone {
		return fmt.Errorf("rebook attempt %s: %w", a, fault.As(fault.Conflict, ErrMoved))
	}
	if err := amounts.Check(); err != nil {
		return fmt.Errorf("rebook attempt %s: %w", a, err)
	}
	capacity, err := h.book.capacity()
	if err != nil {
		return fmt.Errorf("rebook attempt %s: %w", a, err)
	}
	err = h.book.locked(ctx, func() error {
		c, err := h.book.scan()
		if err != nil {
			return err
		}
		old := c.bookings[a]
		if old == nil || old.Owner.Instance != h.book.owner.Instance || old.Handed {
			return fault.As(fault.Conflict, ErrMoved)
		}
		changed := *old
		changed.Amounts, changed.At = amounts.Clone(), time.Now()
		if err := h.book.place(c, &changed, Request{}, capacity); err != nil {
			return err
		}
		h.booking = changed
		return nil
	})
	if err != nil {
		return fmt.Errorf("rebook attempt %s: %w", a, err)
	}
	return nil
}

// HandOver passes the booking on with its sealed segment: from now on the segment holds it, until a worker takes it. Do
// it before the segment is announced.
func (h *Held) HandOver(ctx context.Context) error {
	err := h.update(ctx, "hand over booking", func(b Booking) (*Booking, error) {
		if !h.book.sealedHere(b.Attempt) {
			return nil, fault.New(fault.Invalid, "its segment is not sealed")
		}
		b.Stage, b.Handed, b.At = job.Sealed, true, time.Now()
		return &b, nil
	})
	h.leave(err)
	return err
}

// Remove takes the booking out of the book. Call it only when all its bytes are gone: the segment given back, buffers
// and device memory freed. A booking that is gone already is no error.
func (h *Held) Remove(ctx context.Context) error {
	err := h.update(ctx, "remove booking", func(b Booking) (*Booking, error) {
		if h.freed {
			h.book.noteFreed(b.Attempt)
		}
		return nil, nil
	})
	if errors.Is(err, ErrNotBooked) || errors.Is(err, ErrMoved) && h.isGone() {
		err = nil
	}
	h.leave(err)
	return err
}

// Free ends the booking of an attempt that has ended, for good: it is not booked here again (ErrFreed). Its segment was
// given back, or was to be: segmentErr is what came of that. If anything went wrong the booking is abandoned. The error
// is for a log alone, and no part of the attempt's outcome: a proof that is stored stays a success.
func (h *Held) Free(ctx context.Context, segmentErr error) error {
	h.mu.Lock()
	h.freed = true
	h.mu.Unlock()
	err := segmentErr
	if err == nil {
		err = h.Remove(context.WithoutCancel(ctx))
	}
	if err != nil {
		h.Abandon()
	}
	return err
}

// Abandon has the agent of this worker take the booking out of the book, after Remove failed: it tries with every beat
// until the booking is gone, and reclaims the segment first.
func (h *Held) Abandon() {
	b := h.book
	b.owedMu.Lock()
	defer b.owedMu.Unlock()
	b.owed[h.Booking().Attempt] = h
}

// removeAbandoned takes abandoned bookings out of the book and gives those that are gone.
func (b *Book) removeAbandoned(ctx context.Context) (gone []job.Attempt, err error) {
	b.owedMu.Lock()
	owed := maps.Clone(b.owed)
	b.owedMu.Unlock()
	for a, h := range owed {
		if segments := b.config.Segments; segments != nil {
			if e := segments.Reclaim(a); e != nil {
				err = errors.Join(err, e)
				continue
			}
		}
		if e := h.Remove(ctx); e != nil {
			err = errors.Join(err, e)
			if ctx.Err() != nil {
				break
			}
			continue
		}
		gone = append(gone, a)
		b.owedMu.Lock()
		delete(b.owed, a)
		b.owedMu.Unlock()
	}
	return gone, err
}

func (h *Held) isGone() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.gone
}

func (h *Held) leave(err error) {
	if err == nil {
		h.mu.Lock()
		h.gone = true
		h.mu.Unlock()
	}
}
