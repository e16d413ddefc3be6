package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Entry is a booking and whether what holds it is there: its live owner, or its sealed segment.
type Entry struct {
	Booking
	Alive bool
}

// Listing is the book at one instant.
type Listing struct {
	Entries []Entry // sorted by attempt
	Assets  []ledger.Asset
	// Freed are attempts that ended here and whose records do not say so yet, as far as this was seen.
	Freed []job.Attempt
	// Complete is false when entries could not be read: then an attempt that is not listed may hold bytes all the same.
	Complete bool
}

// List reads the book.
func (b *Book) List(ctx context.Context) (Listing, error) {
	var l Listing
	err := b.locked(ctx, func() error {
		c, err := b.scan()
		if err != nil {
			return err
		}
		l.Complete = len(c.broken) == 0
		alive := b.aliveOnce()
		for _, booking := range c.bookings {
			l.Entries = append(l.Entries, Entry{Booking: *booking, Alive: b.holds(booking, alive)})
		}
		for _, a := range c.assets {
			l.Assets = append(l.Assets, a)
		}
		l.Freed = c.freed
		return nil
	})
	if err != nil {
		return Listing{}, fmt.Errorf("list book: %w", err)
	}
	slices.SortFunc(l.Entries, func(x, y Entry) int { return compareText(x.Attempt.String(), y.Attempt.String()) })
	slices.SortFunc(l.Assets, func(x, y ledger.Asset) int { return compareText(assetFile(x), assetFile(y)) })
	slices.SortFunc(l.Freed, func(x, y job.Attempt) int { return compareText(x.String(), y.String()) })
	return l, nil
}

func compareText(x, y string) int {
	switch {
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// aliveOnce is alive, asked once per owner.
func (b *Book) aliveOnce() func(Owner) bool {
	known := map[Owner]bool{}
	return func(o Owner) bool {
		is, ok := known[o]
		if !ok {
			is = b.alive(o)
			known[o] = is
		}
		return is
	}
}

// holds tells whether what holds a booking is there.
func (b *Book) holds(booking *Booking, alive func(Owner) bool) bool {
	if booking.Handed {
		return b.sealedHere(booking.Attempt)
	}
	return alive(booking.Owner)
}

// Orphan is a booking whose worker died and whose sealed segment is here: any worker may Take it and prove it.
type Orphan struct {
	Booking
	// Segment is where the segment lies.
	Segment handoff.Kind
}

// Orphans lists them, the longest booked first.
func (b *Book) Orphans(ctx context.Context) ([]Orphan, error) {
	var all []Orphan
	err := b.locked(ctx, func() error {
		c, err := b.scan()
		if err != nil {
			return err
		}
		alive := b.aliveOnce()
		for a, booking := range c.bookings {
			if b.config.Segments == nil || alive(booking.Owner) || !b.sealedHere(a) {
				continue
			}
			_, kind, err := b.config.Segments.Lookup(a)
			if err == nil {
				all = append(all, Orphan{Booking: *booking, Segment: kind})
			}
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("look for orphans in the book: %w", err)
	}
	slices.SortFunc(all, func(x, y Orphan) int {
		return cmp.Or(x.At.Compare(y.At), compareText(x.Attempt.String(), y.Attempt.String()))
	})
	return all, nil
}

// Booked tells whether an attempt has a booking, dead or alive.
func (b *Book) Booked(a job.Attempt) bool { return exists(b.path(a.String())) }

// Mended is what Mend changed.
type Mended struct {
	// Removed are attempts whose bytes are gone. HandedOver are those whose worker died after it had sealed the segment.
	Removed, HandedOver []job.Attempt
	// Busy are attempts that are over, but some process still holds their segment.
	Busy []job.Attempt
	// AssetsRemoved are assets that no worker holds any more.
	AssetsRemoved []string
	// FreedForgotten counts marks of ended attempts that were removed: nobody can ask for these any more.
	FreedForgotten int
	// HalvesRemoved counts files that were left half written.
	HalvesRemoved int
}

// Changed tells whether the book is another one now.
func (m *Mended) Changed() bool {
	return len(m.Removed)+len(m.HandedOver)+len(m.AssetsRemoved) > 0
}

// Mend takes out of the book what is dead. A booking whose worker died with a sealed segment counts as handed over; any
// other one of a dead worker goes, once its segment is reclaimed. Current is asked about bookings without a live
// worker: when it says no (the fence was raised, the job ended), the attempt is over and its segment goes, too; nil or
// an error of it means yes. Only the process that speaks for the host calls it.
func (b *Book) Mend(ctx context.Context, current func(context.Context, job.Attempt) (bool, error)) (Mended, error) {
	stale, err := b.stale(ctx, current)
	if err != nil {
		return Mended{}, fmt.Errorf("mend book: %w", err)
	}
	var m Mended
	err = b.locked(ctx, func() error {
		c, err := b.scan()
		if err != nil {
			return err
		}
		var all error
		for _, name := range c.halves { // nobody else writes while we hold the lock
			if err := b.remove(name); err != nil {
				all = errors.Join(all, err)
				continue
			}
			m.HalvesRemoved++
		}
		alive := b.aliveOnce()
		for a, booking := range c.bookings {
			all = errors.Join(all, b.mendBooking(booking, alive, stale[a], &m))
		}
		for _, a := range m.Removed {
			delete(c.bookings, a)
		}
		for _, name := range c.broken {
			all = errors.Join(all, b.mendBroken(name, &m))
		}
		all = errors.Join(all, b.mendFreed(c.freed, stale, &m))
		for name := range c.assets {
			if b.assets[name] == nil && !b.assetHeld(name) {
				all = errors.Join(all, b.remove(name))
				m.AssetsRemoved = append(m.AssetsRemoved, name)
			}
		}
		return errors.Join(all, b.mendProcs(c))
	})
	if err != nil {
		return m, fmt.Errorf("mend book: %w", err)
	}
	return m, nil
}

// stale asks about the bookings that no live worker holds, and the marks of ended attempts. It does so without the
// lock.
func (b *Book) stale(
	ctx context.Context, current func(context.Context, job.Attempt) (bool, error),
) (map[job.Attempt]bool, error) {
	if current == nil {
		return nil, nil
	}
	l, err := b.List(ctx)
	if err != nil {
		return nil, err
	}
	stale := map[job.Attempt]bool{}
	for _, e := range l.Entries {
		if e.Alive && !e.Handed {
			continue
		}
		if is, err := current(ctx, e.Attempt); err == nil && !is {
			stale[e.Attempt] = true
		}
	}
	freed, err := b.freed(ctx)
	for _, a := range freed {
		if is, err := current(ctx, a); err == nil && !is {
			stale[a] = true
		}
	}
	return stale, errors.Join(err, ctx.Err())
}

func (b *Book) mendBooking(booking *Booking, alive func(Owner) bool, stale bool, m *Mended) error {
	a := booking.Attempt
	if !booking.Handed && alive(booking.Owner) {
		return nil
	}
	if !stale && b.sealedHere(a) {
		if booking.Handed {
			return nil
		}
		changed := *booking
		changed.Stage, changed.Handed = job.Sealed, true
		m.HandedOver = append(m.HandedOver, a)
		return b.write(a.String(), &changed)
	}
	if b.config.Segments != nil {
		if err := b.config.Segments.Reclaim(a); fault.KindOf(err) == fault.Conflict {
			m.Busy = append(m.Busy, a)
			return nil
		} else if err != nil {
			return err
		}
	}
	m.Removed = append(m.Removed, a)
	if len(booking.Shrunk) > 0 && !stale { // what it gave back is somebody else's by now: it cannot begin anew
		b.noteFreed(a)
	}
	return b.remove(a.String())
}

// mendBroken removes an entry that cannot be read once its segment is gone. Nothing we write is ever half a file, so it
// was damaged from outside.
func (b *Book) mendBroken(name string, m *Mended) error {
	a, err := job.ParseAttempt(name)
	if err != nil { // an asset
		if !b.assetHeld(name) {
			m.AssetsRemoved = append(m.AssetsRemoved, name)
			return b.remove(name)
		}
		return nil
	}
	if b.config.Segments != nil {
		if err := b.config.Segments.Reclaim(a); errors.Is(err, handoff.ErrBusy) {
			m.Busy = append(m.Busy, a)
			return nil
		} else if err != nil {
			return err
		}
	}
	m.Removed = append(m.Removed, a)
	return b.remove(name)
}

// mendProcs removes the locks of dead workers that own no booking any more.
func (b *Book) mendProcs(c *content) error {
	owners := map[string]bool{b.config.Instance: true}
	for _, booking := range c.bookings {
		owners[booking.Owner.Instance] = true
	}
	var all error
	for _, instance := range c.procs {
		if owners[instance] {
			continue
		}
		f, err := os.OpenFile(b.procPath(instance), os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
			all = errors.Join(all, b.remove(procPrefix+instance))
		}
		all = errors.Join(all, release(f))
	}
	return all
}
