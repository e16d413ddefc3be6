package ledger

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Reasons why a book is closed.
const (
	ClosedNotDeclared = "the node has not declared what it holds"
	ClosedEpoch       = "the node has not declared what it holds in this epoch"
	ClosedRestarted   = "the store restarted since the node declared what it holds"
	ClosedRolledBack  = "the store went back to an older state"
	ClosedDamaged     = "keys of the book were evicted or deleted from the store"
)

// HoldersMax bounds the holders that a refusal names; the largest are kept.
const HoldersMax = 16

// Holder is who holds bytes of a pool.
type Holder struct {
	// Attempt holds them, or Asset when that is not "".
	Attempt job.Attempt
	Asset   string
	Bytes   bytesize.Bytes
	// Age is how long the reservation exists (an asset: how long it was not used), Lease how long until it must be
	// renewed; a limbo one has none.
	Age, Lease time.Duration
	Limbo      bool
	// Users counts the attempts that use the asset; one of 0 can be evicted.
	Users int
}

// Refusal says why something was not granted (invariant 8).
type Refusal struct {
	Node    job.Node
	Attempt job.Attempt
	// Closed is why the whole book is, see the Closed constants; then the rest is empty.
	Closed string
	// Pool is the first one, by name, that is short. Need counts the assets that would have to be loaded; Free counts
	// what gives way, and is 0 when the pool is over its capacity.
	Pool                 Pool
	Need, Free, Capacity bytesize.Bytes
	// Holders are the largest first.
	Holders []Holder
}

// Never tells that it can't fit however long it waits.
func (r *Refusal) Never() bool { return r.Closed == "" && r.Need > r.Capacity }

// FaultKind is Exhausted for a full pool and Transient for a closed book.
func (r *Refusal) FaultKind() fault.Kind {
	if r.Closed != "" {
		return fault.Transient
	}
	return fault.Exhausted
}

// Error names the pool and the numbers, and the largest holders.
func (r *Refusal) Error() string {
	if r.Closed != "" {
		return fmt.Sprintf("node %s: %s", r.Node, r.Closed)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "node %s: pool %s: need %s, free %s of %s", r.Node, r.Pool, r.Need, r.Free, r.Capacity)
	for i, h := range r.Holders {
		if i == 3 {
			fmt.Fprintf(&text, ", and %d more", len(r.Holders)-i)
			break
		}
		text.WriteString([]string{"; held by ", ", "}[min(i, 1)])
		switch {
		case h.Asset != "":
			fmt.Fprintf(&text, "asset %s (%s, %d users)", h.Asset, h.Bytes, h.Users)
		case h.Limbo:
			fmt.Fprintf(&text, "%s (%s, age %s, in limbo)", h.Attempt, h.Bytes, h.Age)
		default:
			fmt.Fprintf(&text, "%s (%s, age %s, lease %s)", h.Attempt, h.Bytes, h.Age, h.Lease)
		}
	}
	return text.String()
}

// Holders lists who holds bytes of a pool, the largest first.
func (b *NodeBook) Holders(pool Pool) []Holder {
	var holders []Holder
	for i := range b.Entries {
		e := &b.Entries[i]
		if e.Amounts[pool] == 0 {
			continue
		}
		h := Holder{Attempt: e.Attempt, Bytes: e.Amounts[pool], Age: b.Now.Sub(e.Since), Limbo: e.Limbo}
		if !e.Limbo {
			h.Lease = max(0, e.LeaseUntil.Sub(b.Now))
		}
		holders = append(holders, h)
	}
	for _, a := range b.Assets {
		if a.Pool == pool && a.Bytes > 0 {
			holders = append(holders, Holder{Asset: a.Name, Bytes: a.Bytes, Age: b.Now.Sub(a.UsedAt), Users: a.Users})
		}
	}
	slices.SortStableFunc(holders, func(x, y Holder) int { return cmp.Compare(y.Bytes, x.Bytes) })
	return holders
}

// NewRefusal is the refusal of a reservation that doesn't fit a book, whatever from holds being free; nil when it fits.
// A zero from is none.
func (b *NodeBook) NewRefusal(r *Reservation, from job.Attempt) *Refusal {
	need := b.need(r)
	var given Amounts
	for i := range b.Entries {
		if b.Entries[i].Attempt == from {
			given = b.Entries[i].Amounts
		}
	}
	for _, pool := range need.Pools() {
		if need[pool] == 0 {
			continue
		}
		used := b.Used[pool] - given[pool] - b.asset(AssetKey{AssetSegments, pool}).Bytes
		free := max(0, b.Capacity[pool]-used)
		if need[pool] <= free {
			continue
		}
		holders := b.Holders(pool)
		return &Refusal{
			Node: r.Node, Attempt: r.Attempt, Pool: pool, Need: need[pool], Free: free, Capacity: b.Capacity[pool],
			Holders: holders[:min(len(holders), HoldersMax)],
		}
	}
	return nil
}

// need is what a reservation adds to a book, pool by pool. Sums may pass bytesize.Max: they fit nowhere then.
func (b *NodeBook) need(r *Reservation) Amounts {
	need := r.Amounts.Clone()
	for i := range r.Assets {
		if more := r.Assets[i].Bytes - b.asset(r.Assets[i].Key()).Bytes; more > 0 {
			need[r.Assets[i].Pool] += more
		}
	}
	return need
}

func (b *NodeBook) asset(key AssetKey) AssetEntry {
	if a := b.assetAt(key); a != nil {
		return *a
	}
	return AssetEntry{}
}
