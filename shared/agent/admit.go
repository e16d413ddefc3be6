package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Admit books an attempt for this worker if it fits, and sets a free segment aside for it. Errors: *Veto (Exhausted),
// ErrBooked, ErrHandedOver, ErrFreed; a booking that a dead worker left is taken over.
func (b *Book) Admit(ctx context.Context, r Request) (*Held, error) {
	if err := r.check(); err != nil {
		return nil, fmt.Errorf("book attempt: %w", err)
	}
	booking := &Booking{
		Version: bookVersion, Attempt: r.Attempt, Circuit: r.Circuit, Device: r.Device, Stage: job.Reserved,
		Amounts: r.Amounts.Clone(), Owner: b.owner, At: time.Now(), TraceParent: r.TraceParent,
	}
	capacity, err := b.capacity()
	if err != nil {
		return nil, fmt.Errorf("book attempt %s: %w", r.Attempt, err)
	}
	err = b.locked(ctx, func() error {
		c, err := b.scan()
		if err != nil {
			return err
		}
		if old := c.bookings[r.Attempt]; old != nil {
			switch {
			case old.Handed && b.sealedHere(r.Attempt):
				return fault.As(fault.Conflict, ErrHandedOver)
			case !old.Handed && b.alive(old.Owner):
				return fault.As(fault.Conflict, fmt.Errorf("%w (%s, process %d)", ErrBooked, old.Owner.Role,
					old.Owner.Process.PID))
			}
		} else if exists(b.freedPath(r.Attempt)) { // its message came once more, and late
			return fault.As(fault.Lost, ErrFreed)
		}
		return b.place(c, booking, r, capacity)
	})
	if err != nil {
		return nil, fmt.Errorf("book attempt %s: %w", r.Attempt, err)
	}
	return &Held{book: b, booking: *booking}, nil
}

// place checks that a booking fits in place of the attempt's present one, writes it, and makes free segments give way.
func (b *Book) place(c *content, booking *Booking, r Request, capacity ledger.Amounts) error {
	if len(c.bookings) >= BookingsMax && c.bookings[booking.Attempt] == nil {
		return fault.New(fault.Exhausted, "%d attempts are booked, at most %d can be", len(c.bookings), BookingsMax)
	}
	old := c.bookings[booking.Attempt]
	delete(c.bookings, booking.Attempt)
	if err := c.room(booking.Amounts, capacity); err != nil {
		return err
	}
	name := booking.Attempt.String()
	if err := b.write(name, booking); err != nil {
		return err
	}
	c.bookings[booking.Attempt] = booking
	if b.config.Segments == nil {
		return nil
	}
	if r.SegmentBytes > 0 {
		if _, err := b.config.Segments.Lend(r.Attempt, r.SegmentKind, r.SegmentBytes); err != nil {
			return errors.Join(err, b.undo(name, old))
		}
	}
	if err := b.giveWay(c, capacity); err != nil {
		return errors.Join(err, b.undo(name, old))
	}
	return nil
}

// undo puts back what was booked before.
func (b *Book) undo(name string, old *Booking) error {
	if old != nil {
		return b.write(name, old)
	}
	return b.remove(name)
}

// capacity is what the node has. It may take a while to find out, so it is asked without the lock.
func (b *Book) capacity() (ledger.Amounts, error) {
	capacity, err := b.config.Capacity()
	if err != nil {
		return nil, fmt.Errorf("ask for capacity: %w", err)
	}
	return capacity, nil
}

// room tells whether amounts fit beside everything in the book, free segments left aside.
func (c *content) room(need, capacity ledger.Amounts) error {
	if err := c.whole(); err != nil {
		return err
	}
	sum, err := c.sum()
	if err != nil {
		return err
	}
	for _, pool := range need.Pools() {
		if free := max(0, capacity[pool]-sum[pool]); need[pool] > free {
			return c.veto(pool, need[pool], free, capacity[pool])
		}
	}
	return nil
}

// holdersMax is how many holders a veto names.
const holdersMax = 5

func (c *content) veto(pool ledger.Pool, need, free, capacity bytesize.Bytes) *Veto {
	type holder struct {
		name  string
		bytes bytesize.Bytes
	}
	var all []holder
	for a, booking := range c.bookings {
		if n := booking.Amounts[pool]; n > 0 {
			all = append(all, holder{a.String(), n})
		}
	}
	for _, a := range c.assets {
		if a.Pool == pool {
			all = append(all, holder{a.Name, a.Bytes})
		}
	}
	slices.SortFunc(all, func(a, b holder) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.name, b.name))
	})
	v := &Veto{Pool: pool, NeedBytes: need, FreeBytes: free, CapacityBytes: capacity}
	for _, h := range all[:min(len(all), holdersMax)] {
		v.Holders = append(v.Holders, h.name+" "+h.bytes.String())
	}
	return v
}

// giveWay unlinks free segments until they fit beside everything in the book. It fails with a veto when they cannot go
// because some process still holds them.
func (b *Book) giveWay(c *content, capacity ledger.Amounts) error {
	if b.config.Segments == nil {
		return nil
	}
	free, err := b.config.Segments.FreeBytes()
	if err != nil {
		return err
	}
	if free[handoff.SHM] == 0 && free[handoff.Disk] == 0 {
		return nil
	}
	sum, err := c.sum()
	if err != nil {
		return err
	}
	for kind, pools := range map[handoff.Kind][]ledger.Pool{
		handoff.SHM: {ledger.PoolSHM, ledger.PoolRAM}, handoff.Disk: {ledger.PoolDisk},
	} {
		if free[kind] == 0 {
			continue
		}
		keep, tightest := free[kind], pools[0]
		for _, pool := range pools {
			if rest := max(0, capacity[pool]-sum[pool]); rest < keep {
				keep, tightest = rest, pool
			}
		}
		if keep == free[kind] {
			continue
		}
		free, err := b.config.Segments.Trim(kind, keep)
		b.later = append(b.later, free)
		if err != nil {
			return err
		}
		left, err := b.config.Segments.FreeBytes()
		if err != nil {
			return err
		}
		if left[kind] > keep {
			return c.veto(tightest, left[kind], keep, capacity[tightest])
		}
	}
	return nil
}

// Take makes this worker the owner of an attempt whose segment was handed over, or whose worker died. Errors:
// ErrNotBooked, ErrBooked.
func (b *Book) Take(ctx context.Context, a job.Attempt) (*Held, error) {
	var taken Booking
	err := b.change(ctx, a, func(old *Booking) (*Booking, error) {
		if !old.Handed && b.alive(old.Owner) {
			return nil, fault.As(fault.Conflict, fmt.Errorf("%w (%s, process %d)", ErrBooked, old.Owner.Role,
				old.Owner.Process.PID))
		}
		taken = *old
		taken.Owner, taken.Handed, taken.At = b.owner, false, time.Now()
		return &taken, nil
	})
	if err != nil {
		return nil, fmt.Errorf("take booking of attempt %s: %w", a, err)
	}
	return &Held{book: b, booking: taken}, nil
}

// change replaces a booking by what next makes of it; nil removes it.
func (b *Book) change(ctx context.Context, a job.Attempt, next func(*Booking) (*Booking, error)) error {
	return b.locked(ctx, func() error {
		name := a.String()
		if !exists(b.path(name)) {
			return fault.As(fault.NotFound, ErrNotBooked)
		}
		entry, err := b.read(name)
		if err != nil {
			return err
		}
		booking, err := next(entry.booking)
		if err != nil {
			return err
		}
		if booking == nil {
			return b.remove(name)
		}
		return b.write(name, booking)
	})
}
