package ledger

import (
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Declare is Ledger.Declare.
func (m *Machine) Declare(s Stamp, call Call, d *Declaration) (*Drift, error) {
	after, drift, err := Declared(m.lease, s, call, m.books[d.Node], d)
	if err != nil || drift.Stale {
		return drift, err
	}
	m.books[d.Node] = after
	return drift, nil
}

// Declared is what becomes of a book by a declaration, and what was found. before is nil for a node without a book; it
// is not changed. A Closed book is opened, or refused if the declaration is a correction.
func Declared(
	lease time.Duration, s Stamp, call Call, before *NodeBook, d *Declaration,
) (after *NodeBook, drift *Drift, err error) {
	if err := d.Check(); err != nil {
		return nil, nil, err
	}
	if before == nil {
		before = &NodeBook{Node: d.Node}
	}
	if call.Term < before.Term {
		return nil, nil, TermOver(call, before.Term)
	}
	b := before.clone()
	if b.Closed == "" {
		b.Closed = b.closedTo(s, call)
	}
	drift = &Drift{Why: b.ClosedFor(call.Epoch)}
	drift.Opened = drift.Why != ""
	if drift.Opened && d.Correction {
		return nil, nil, &Refusal{Node: d.Node, Closed: drift.Why}
	}
	if !drift.Opened && b.Instance == d.Instance && d.Seq <= b.Seq {
		return nil, &Drift{Stale: true}, nil
	}
	drift.Rebooted = b.Boot != "" && b.Boot != d.Boot
	b.Tick(s.Now)
	b.Term, b.Epoch, b.Run, b.Closed = call.Term, call.Epoch, s.Run, ""
	b.Boot, b.Instance, b.Seq = d.Boot, d.Instance, d.Seq
	b.Capacity = d.Capacity.Clone()
	if drift.Opened || b.Now.Sub(b.WrittenAt) > lease {
		b.rearm(lease)
	}
	b.takeAssets(d)
	b.takeHoldings(d, lease, drift)
	if !d.Correction {
		b.takeClaims(d, lease, drift)
	}
	b.countUsers(d)
	b.fitSegments()
	for pool, amount := range b.Sum() {
		if amount > bytesize.Max {
			return nil, nil, fault.New(fault.Invalid, "declare %s: pool %s would hold more than can be counted", d.Node, pool)
		}
	}
	b.settle()
	b.Ops = max(b.Ops, s.Seen) + 1
	drift.Over = b.Over()
	return b, drift, nil
}

// takeHoldings corrects entries by what the host holds.
func (b *NodeBook) takeHoldings(d *Declaration, lease time.Duration, drift *Drift) {
	held, claimed := map[job.Attempt]bool{}, map[job.Attempt]bool{}
	for i := range d.Claims {
		claimed[d.Claims[i].Attempt] = true
	}
	for i := range d.Holdings {
		h := &d.Holdings[i]
		held[h.Attempt] = true
		e := b.Entry(h.Attempt)
		if e == nil {
			drift.Unknown = append(drift.Unknown, h.Attempt)
			b.Entries = append(b.Entries, Entry{Attempt: h.Attempt, Amounts: h.Amounts.Clone(), Since: b.Now})
			e = &b.Entries[len(b.Entries)-1]
			e.LeaseUntil = b.Now.Add(lease)
			for _, key := range h.Assets {
				if b.assetAt(key) != nil && !slices.Contains(e.Assets, key) {
					e.Assets = append(e.Assets, key)
				}
			}
			slices.SortFunc(e.Assets, compareKeys)
			if h.Dead || b.fenced(h.Attempt) {
				b.limbo(e)
			}
			continue
		}
		for pool := range mergeKeys(e.Amounts, h.Amounts) {
			if e.Amounts[pool] != h.Amounts[pool] {
				drift.Changed = append(drift.Changed, Change{h.Attempt, pool, e.Amounts[pool], h.Amounts[pool]})
			}
		}
		e.Amounts = h.Amounts.Clone()
	}
	b.Entries = slices.DeleteFunc(b.Entries, func(e Entry) bool {
		switch {
		case held[e.Attempt] || d.Partial:
		case e.Limbo && claimed[e.Attempt]:
		case e.Limbo:
			drift.Freed = append(drift.Freed, e.Attempt)
			return true
		default:
			drift.Unheld = append(drift.Unheld, e.Attempt)
		}
		return false
	})
	for _, list := range [][]job.Attempt{drift.Unknown, drift.Freed, drift.Unheld} {
		slices.SortFunc(list, compareAttempts)
	}
	slices.SortFunc(drift.Changed, func(x, y Change) int {
		if c := compareAttempts(x.Attempt, y.Attempt); c != 0 {
			return c
		}
		return compareKeys(AssetKey{Pool: x.Pool}, AssetKey{Pool: y.Pool})
	})
}

// takeClaims books what may still begin and is not in the book.
func (b *NodeBook) takeClaims(d *Declaration, lease time.Duration, drift *Drift) {
	for i := range d.Claims {
		c := &d.Claims[i]
		if b.Entry(c.Attempt) != nil || b.fenced(c.Attempt) {
			continue
		}
		b.takeNeeded(c.Assets)
		b.Entries = append(b.Entries, Entry{
			Attempt: c.Attempt, Amounts: c.Amounts.Clone(), Assets: c.Keys(), Since: b.Now, LeaseUntil: b.Now.Add(lease),
		})
		drift.Claimed = append(drift.Claimed, c.Attempt)
	}
	slices.SortFunc(drift.Claimed, compareAttempts)
}

// fenced tells whether a higher fence of the attempt's partition is booked.
func (b *NodeBook) fenced(a job.Attempt) bool {
	return slices.ContainsFunc(b.Entries, func(e Entry) bool {
		return e.Attempt.Job == a.Job && e.Attempt.Partition == a.Partition && e.Attempt.Fence > a.Fence
	})
}

// takeAssets sets the host's assets. One that is in use keeps at least what is booked: it may still be loading.
func (b *NodeBook) takeAssets(d *Declaration) {
	reported := map[AssetKey]bool{}
	for _, a := range d.Assets {
		reported[a.Key()] = true
		have := b.assetAt(a.Key())
		if have == nil {
			b.Assets = append(b.Assets, AssetEntry{Asset: a, UsedAt: b.Now})
			continue
		}
		have.Class = a.Class
		if have.Users == 0 || have.Bytes < a.Bytes {
			have.Bytes = a.Bytes
		}
	}
	b.Assets = slices.DeleteFunc(b.Assets, func(a AssetEntry) bool {
		return !reported[a.Key()] && a.Users == 0 && !d.Partial
	})
}

// countUsers counts the users of all assets again, and drops those that lost their last one and are not on the host.
func (b *NodeBook) countUsers(d *Declaration) {
	users := map[AssetKey]int{}
	for i := range b.Entries {
		for _, key := range b.Entries[i].Assets {
			users[key]++
		}
	}
	for i := range b.Assets {
		a := &b.Assets[i]
		if n := users[a.Key()]; n != a.Users {
			a.Users, a.UsedAt = n, b.Now
		}
	}
	b.Assets = slices.DeleteFunc(b.Assets, func(a AssetEntry) bool {
		return a.Users == 0 && !d.Partial && !slices.ContainsFunc(d.Assets, func(r Asset) bool { return r.Key() == a.Key() })
	})
}

// fitSegments cuts the free segments to what fits: attempts that were granted meanwhile displace them on the host.
func (b *NodeBook) fitSegments() {
	for pool, amount := range b.Sum() {
		b.giveWay(pool, amount-b.Capacity[pool])
	}
	b.Assets = slices.DeleteFunc(b.Assets, func(a AssetEntry) bool { return a.Name == AssetSegments && a.Bytes == 0 })
}
