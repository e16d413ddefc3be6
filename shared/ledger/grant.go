package ledger

import (
	"slices"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Reserve is Ledger.Reserve.
func (m *Machine) Reserve(s Stamp, call Call, r *Reservation) error {
	if err := r.Check(); err != nil {
		return err
	}
	b, err := m.open(s, call, r.Node)
	if err != nil {
		return err
	}
	if e := b.Entry(r.Attempt); e != nil {
		if err := e.same(r); err != nil {
			return err
		}
		e.LeaseUntil = b.Now.Add(m.lease)
		m.commit(b)
		return nil
	}
	return m.book(b, r, job.Attempt{})
}

// Transfer is Ledger.Transfer.
func (m *Machine) Transfer(s Stamp, call Call, from job.Attempt, to *Reservation) error {
	if err := to.Check(); err != nil {
		return err
	}
	if err := checkAttempt(from); err != nil {
		return err
	}
	b, err := m.open(s, call, to.Node)
	if err != nil {
		return err
	}
	source := b.Entry(from)
	if e := b.Entry(to.Attempt); e != nil {
		if err := e.same(to); err != nil {
			return err
		}
		if source != nil {
			return BothBooked(from, to.Attempt)
		}
		e.LeaseUntil = b.Now.Add(m.lease)
		m.commit(b)
		return nil
	}
	switch {
	case source == nil:
		return NotBooked(to.Node, from)
	case source.Limbo:
		return InLimbo(to.Node, from)
	}
	return m.book(b, to, from)
}

// book adds a new reservation to a copy and commits it, in place of from's unless that is zero.
func (m *Machine) book(b *NodeBook, r *Reservation, from job.Attempt) error {
	for i := range b.Entries {
		if e := &b.Entries[i]; e.Attempt.Job == r.Attempt.Job && e.Attempt.Partition == r.Attempt.Partition &&
			e.Attempt.Fence > r.Attempt.Fence {
			return FencedOut(r.Node, r.Attempt)
		}
	}
	if len(b.Entries) >= EntriesMax && from == (job.Attempt{}) || len(b.Assets)+len(r.Assets) > 2*AssetsMax {
		return BookFull(r.Node)
	}
	if refusal := b.NewRefusal(r, from); refusal != nil {
		return refusal
	}
	need := b.need(r)
	b.remove(from)
	for i := range b.Entries {
		if e := &b.Entries[i]; e.Attempt.Job == r.Attempt.Job && e.Attempt.Partition == r.Attempt.Partition && !e.Limbo {
			b.limbo(e)
		}
	}
	b.Used = b.Sum()
	for _, pool := range need.Pools() {
		b.giveWay(pool, b.Used[pool]+need[pool]-b.Capacity[pool])
	}
	b.takeNeeded(r.Assets)
	keys := r.Keys()
	b.use(keys, 1)
	b.Entries = append(b.Entries, Entry{
		Attempt: r.Attempt, Amounts: r.Amounts.Clone(), Assets: keys, Since: b.Now, LeaseUntil: b.Now.Add(m.lease),
	})
	m.commit(b)
	return nil
}

// takeNeeded books assets, each at least with the bytes that are asked for.
func (b *NodeBook) takeNeeded(assets []Asset) {
	for _, want := range assets {
		have := b.assetAt(want.Key())
		if have == nil {
			b.Assets = append(b.Assets, AssetEntry{Asset: want})
			continue
		}
		have.Bytes = max(have.Bytes, want.Bytes)
	}
}

// giveWay takes bytes from the free segments of a pool; NewRefusal has seen that they are there.
func (b *NodeBook) giveWay(pool Pool, bytes bytesize.Bytes) {
	if bytes <= 0 {
		return
	}
	key := AssetKey{AssetSegments, pool}
	if a := b.assetAt(key); a != nil && a.Bytes > bytes {
		a.Bytes -= bytes
		return
	}
	b.Assets = slices.DeleteFunc(b.Assets, func(a AssetEntry) bool { return a.Key() == key })
}

// same tells whether a live entry is what a reservation asks for.
func (e *Entry) same(r *Reservation) error {
	switch {
	case e.Limbo:
		return InLimbo(r.Node, r.Attempt)
	case !e.Amounts.equal(r.Amounts) || !slices.Equal(e.Assets, r.Keys()):
		return OtherBooked(r.Node, r.Attempt)
	}
	return nil
}

// Errors of grants, the same for every ledger.

// InLimbo is the error for an attempt that is fenced out.
func InLimbo(node job.Node, a job.Attempt) error {
	return fault.New(fault.Lost, "node %s: %s is in limbo", node, a)
}

// FencedOut is the error for an attempt whose partition has a higher fence booked.
func FencedOut(node job.Node, a job.Attempt) error {
	return fault.New(fault.Lost, "node %s: reserve %s: a higher fence is booked", node, a)
}

// OtherBooked is the error for an attempt that holds something else than asked for.
func OtherBooked(node job.Node, a job.Attempt) error {
	return fault.New(fault.Conflict, "node %s: reserve %s: it holds other amounts or assets", node, a)
}

// BothBooked is the error for a transfer whose both ends are booked.
func BothBooked(from, to job.Attempt) error {
	return fault.New(fault.Conflict, "transfer %s to %s: both are booked", from, to)
}

// NotBooked is the error for an attempt that holds nothing.
func NotBooked(node job.Node, a job.Attempt) error {
	return fault.New(fault.NotFound, "node %s: %s is not booked", node, a)
}

// BookFull is the error for a book with too many entries or assets.
func BookFull(node job.Node) error {
	return fault.New(fault.Exhausted, "node %s: the book is full (%d entries, %d assets at most)",
		node, EntriesMax, 2*AssetsMax)
}

// InUse is the error for evicting an asset that attempts use.
func InUse(node job.Node, asset string, users int) error {
	return fault.New(fault.Conflict, "node %s: evict %s: %d attempts use it", node, asset, users)
}

// Renew is Ledger.Renew.
func (m *Machine) Renew(s Stamp, call Call, node job.Node, attempts []job.Attempt) ([]job.Attempt, error) {
	if err := CheckRenew(attempts); err != nil {
		return nil, err
	}
	b, err := m.open(s, call, node)
	if err != nil {
		return nil, err
	}
	var lost []job.Attempt
	for _, a := range attempts {
		if e := b.Entry(a); e != nil && !e.Limbo {
			e.LeaseUntil = b.Now.Add(m.lease)
		} else {
			lost = append(lost, a)
		}
	}
	m.commit(b)
	return lost, nil
}

// CheckRenew bounds a renewal.
func CheckRenew(attempts []job.Attempt) error {
	if len(attempts) > EntriesMax {
		return fault.New(fault.Invalid, "renew %d attempts: the limit is %d", len(attempts), EntriesMax)
	}
	for _, a := range attempts {
		if err := checkAttempt(a); err != nil {
			return err
		}
	}
	return nil
}

// CheckAttempt refuses an attempt that can't be booked.
func CheckAttempt(a job.Attempt) error { return checkAttempt(a) }

// Shrink is Ledger.Shrink.
func (m *Machine) Shrink(s Stamp, call Call, node job.Node, attempt job.Attempt, keep Amounts) error {
	if err := keep.Check(); err != nil {
		return err
	}
	b, err := m.open(s, call, node)
	if err != nil {
		return err
	}
	e := b.Entry(attempt)
	if e == nil {
		return NotBooked(node, attempt)
	}
	for pool, amount := range e.Amounts {
		e.Amounts[pool] = min(amount, keep[pool])
	}
	e.Amounts = e.Amounts.Clone()
	m.commit(b)
	return nil
}

// Release is Ledger.Release.
func (m *Machine) Release(s Stamp, call Call, node job.Node, attempt job.Attempt) (bool, error) {
	b, err := m.open(s, call, node)
	if err != nil {
		return false, err
	}
	released := b.remove(attempt)
	m.commit(b)
	return released, nil
}

// Expire is Ledger.Expire.
func (m *Machine) Expire(s Stamp, call Call, node job.Node) ([]job.Attempt, error) {
	b, err := m.open(s, call, node)
	if err != nil {
		return nil, err
	}
	var limbo []job.Attempt
	for i := range b.Entries {
		e := &b.Entries[i]
		if !e.Limbo && !e.LeaseUntil.After(b.Now) {
			b.limbo(e)
		}
		if e.Limbo {
			limbo = append(limbo, e.Attempt)
		}
	}
	m.commit(b)
	return limbo, nil
}

// Evict is Ledger.Evict.
func (m *Machine) Evict(s Stamp, call Call, node job.Node, asset string) (bool, error) {
	b, err := m.open(s, call, node)
	if err != nil {
		return false, err
	}
	for i := range b.Assets {
		if b.Assets[i].Name == asset && b.Assets[i].Users > 0 {
			return false, InUse(node, asset, b.Assets[i].Users)
		}
	}
	before := len(b.Assets)
	b.Assets = slices.DeleteFunc(b.Assets, func(a AssetEntry) bool { return a.Name == asset })
	m.commit(b)
	return len(b.Assets) < before, nil
}
