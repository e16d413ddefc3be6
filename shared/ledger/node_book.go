package ledger

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
)

// Entry is one reservation in a book.
type Entry struct {
	Attempt job.Attempt `json:"attempt"`
	Amounts Amounts     `json:"amounts"`
	Assets  []AssetKey  `json:"assets,omitempty"`
	// Limbo tells that the lease ended, or a higher fence came: the attempt is fenced out, its bytes count.
	Limbo bool      `json:"limbo,omitempty"`
	Since time.Time `json:"since"`
	// LeaseUntil is of a live one, LimboSince of one in limbo; the other one is zero.
	LeaseUntil time.Time `json:"lease_until,omitzero"`
	LimboSince time.Time `json:"limbo_since,omitzero"`
}

// AssetEntry is one asset in a book.
type AssetEntry struct {
	Asset
	// Users counts the reservations that use it, live and in limbo.
	Users int `json:"users"`
	// UsedAt is when a reservation that uses it last began or ended, or when it was first seen.
	UsedAt time.Time `json:"used_at"`
}

// NodeBook is the book of one node: every entry with its owner, age, lease and limbo. Lists are sorted, times have
// milliseconds and are the book's: the store's, but that they never fall.
type NodeBook struct {
	Node     job.Node `json:"node"`
	Term     uint64   `json:"term"`
	Epoch    string   `json:"epoch"`
	Boot     string   `json:"boot"`
	Instance string   `json:"instance"`
	Seq      uint64   `json:"seq"`
	// Ops counts the operations that changed the book; it only rises unless the store is rolled back.
	Ops uint64 `json:"ops"`
	// Now is the book's time when it was read, never below WrittenAt, the time of the last change.
	Now       time.Time `json:"now"`
	WrittenAt time.Time `json:"written_at"`
	// Ahead is how far the book's time is ahead of the store's clock, which went back.
	Ahead time.Duration `json:"ahead,omitzero"`
	// Run names the life of the store in which the node declared. Closed is why the book is closed whatever the caller's
	// epoch, "" when it isn't.
	Run    string `json:"run"`
	Closed string `json:"closed,omitempty"`

	Capacity Amounts      `json:"capacity"`
	Used     Amounts      `json:"used"`
	Entries  []Entry      `json:"entries,omitempty"`
	Assets   []AssetEntry `json:"assets,omitempty"`
}

// Tick sets the book's time by the store's clock. It never falls: where that clock went back it goes on from the time
// of the last change, and keeps so far ahead, until the clock is past what was written.
func (b *NodeBook) Tick(clock time.Time) {
	b.Now = clock
	if clock.Before(b.WrittenAt) {
		b.Now = latest(b.WrittenAt, clock.Add(b.Ahead))
	}
	b.Ahead = b.Now.Sub(clock)
}

// ClosedFor is why the book grants nothing to a caller of an epoch, "" when it is open.
func (b *NodeBook) ClosedFor(epoch string) string {
	switch {
	case b.Closed != "":
		return b.Closed
	case b.Epoch == "":
		return ClosedNotDeclared
	case b.Epoch != epoch:
		return ClosedEpoch
	}
	return ""
}

// Entry finds an attempt's entry, nil when it has none.
func (b *NodeBook) Entry(a job.Attempt) *Entry {
	for i := range b.Entries {
		if b.Entries[i].Attempt == a {
			return &b.Entries[i]
		}
	}
	return nil
}

// Sum adds up entries and assets. It equals Used, else the book is damaged; Mismatch tells.
func (b *NodeBook) Sum() Amounts {
	sum := Amounts{}
	for i := range b.Entries {
		for pool, amount := range b.Entries[i].Amounts {
			sum[pool] += amount
		}
	}
	for i := range b.Assets {
		sum[b.Assets[i].Pool] += b.Assets[i].Bytes
	}
	return sum.Clone()
}

// Mismatch lists the pools whose use is not the sum of what is booked: an alarm (B70). The next declaration repairs it.
func (b *NodeBook) Mismatch() []Pool {
	sum := b.Sum()
	var pools []Pool
	for _, pool := range slices.Sorted(maps.Keys(mergeKeys(sum, b.Used))) {
		if sum[pool] != b.Used[pool] {
			pools = append(pools, pool)
		}
	}
	return pools
}

func mergeKeys(a, b Amounts) map[Pool]bool {
	keys := map[Pool]bool{}
	for pool := range a {
		keys[pool] = true
	}
	for pool := range b {
		keys[pool] = true
	}
	return keys
}

// Over lists the pools that hold more than their capacity.
func (b *NodeBook) Over() []Pool {
	var pools []Pool
	for _, pool := range b.Used.Pools() {
		if b.Used[pool] > b.Capacity[pool] {
			pools = append(pools, pool)
		}
	}
	return pools
}

// Free is what a pool has left, with what gives way; 0 when it is over its capacity.
func (b *NodeBook) Free(pool Pool) bytesize.Bytes {
	return max(0, b.Capacity[pool]-b.Used[pool]+b.asset(AssetKey{AssetSegments, pool}).Bytes)
}

func compareAttempts(a, b job.Attempt) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Fence, b.Fence))
}
