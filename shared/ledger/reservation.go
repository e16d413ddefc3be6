package ledger

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Limits.
const (
	// EntriesMax bounds the reservations on one node, live and in limbo.
	EntriesMax = 4096
	// AssetsMax bounds the assets on one node, and of one reservation.
	AssetsMax = 256
	// TermMax and FenceMax are below 2^53, as stores count in doubles.
	TermMax  = 1<<53 - 1
	FenceMax = 1<<53 - 1
)

// AssetSegments is the pool of free segments of a node. It gives way to any reservation and can't be reserved.
const AssetSegments = "segments"

// AssetKey names an asset in a pool.
type AssetKey struct {
	Name string `json:"name"`
	Pool Pool   `json:"pool"`
}

// String is name@pool.
func (k AssetKey) String() string { return k.Name + "@" + string(k.Pool) }

// Key is the asset's name and pool.
func (a *Asset) Key() AssetKey { return AssetKey{a.Name, a.Pool} }

func compareKeys(a, b AssetKey) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Pool, b.Pool))
}

// Reservation is what one attempt takes on a node for its whole path.
type Reservation struct {
	Attempt job.Attempt
	Node    job.Node
	// Amounts are the attempt's own bytes.
	Amounts Amounts
	// Assets are what it shares with others; what is not booked yet is booked with it.
	Assets []Asset
}

// Check refuses what can't be a reservation.
func (r *Reservation) Check() error {
	if _, err := job.ParseNode(string(r.Node)); err != nil {
		return fault.As(fault.Invalid, err)
	}
	if err := checkAttempt(r.Attempt); err != nil {
		return err
	}
	if err := r.Amounts.Check(); err != nil {
		return fmt.Errorf("reserve %s: %w", r.Attempt, err)
	}
	if err := checkAssets(r.Assets, false); err != nil {
		return fmt.Errorf("reserve %s: %w", r.Attempt, err)
	}
	return nil
}

// Keys are the names of the assets, sorted.
func (r *Reservation) Keys() []AssetKey {
	keys := make([]AssetKey, len(r.Assets))
	for i := range r.Assets {
		keys[i] = r.Assets[i].Key()
	}
	slices.SortFunc(keys, compareKeys)
	return keys
}

func checkAttempt(a job.Attempt) error {
	if a.Fence > FenceMax {
		return fault.New(fault.Invalid, "fence %d of %s is over %d", a.Fence, a, uint64(FenceMax))
	}
	if _, err := job.ParseAttempt(a.String()); err != nil {
		return fault.As(fault.Invalid, err)
	}
	return nil
}

var className = regexp.MustCompile(`^[a-z]{1,32}$`)

func checkAssets(assets []Asset, segments bool) error {
	if len(assets) > AssetsMax {
		return fault.New(fault.Invalid, "%d assets are over the limit of %d", len(assets), AssetsMax)
	}
	seen := map[AssetKey]bool{}
	for i := range assets {
		a := &assets[i]
		if err := a.Check(); err != nil {
			return err
		}
		switch {
		case !className.MatchString(string(a.Class)):
			return fault.New(fault.Invalid, "asset %s: class %.40q is illegal", a.Key(), string(a.Class))
		case a.Name == AssetSegments && !segments:
			return fault.New(fault.Invalid, "asset %s can't be reserved", a.Key())
		case seen[a.Key()]:
			return fault.New(fault.Invalid, "asset %s is there twice", a.Key())
		}
		seen[a.Key()] = true
	}
	return nil
}

// Holding is an attempt that a host's own book has.
type Holding struct {
	Attempt job.Attempt
	Amounts Amounts
	// Assets are what it uses, where that is known.
	Assets []AssetKey
	// Dead tells that the process that held it is gone though its bytes are not: unknown to the ledger it is booked
	// in limbo.
	Dead bool
}

// Declaration is a host's report of what it has and really holds.
type Declaration struct {
	Node job.Node
	// Boot is the host's boot id; Instance names one start of the reporting process, Seq rises with its reports.
	Boot, Instance string
	Seq            uint64
	Capacity       Amounts
	Holdings       []Holding
	// Claims are attempts that own their partitions and may still begin on the node: their tasks are out. A declaration
	// that is no correction books them, too: a lost book had them, and the node does not hold them yet. A book that is
	// trusted has its own word on them, but keeps in limbo what may begin until its fence is raised.
	Claims []Reservation
	// Assets are those that are loaded or loading; free segments are AssetSegments.
	Assets []Asset
	// Correction tells that the book is trusted: a closed one is not opened but refused with a [Refusal].
	// The report may be from before the book was lost, and grants may be on their way that rely on the lost book.
	Correction bool
	// Partial tells that the host could not read its whole book: what is missing proves nothing.
	Partial bool
}

var instanceName = regexp.MustCompile(`^[a-zA-Z0-9._:-]{1,64}$`)

// Check refuses what can't be a declaration.
func (d *Declaration) Check() error {
	if _, err := job.ParseNode(string(d.Node)); err != nil {
		return fault.As(fault.Invalid, err)
	}
	switch {
	case !instanceName.MatchString(d.Boot):
		return fault.New(fault.Invalid, "declare %s: boot id %.80q is illegal", d.Node, d.Boot)
	case !instanceName.MatchString(d.Instance):
		return fault.New(fault.Invalid, "declare %s: instance %.80q is illegal", d.Node, d.Instance)
	case len(d.Holdings) > EntriesMax:
		return fault.New(fault.Invalid, "declare %s: %d holdings are over the limit of %d",
			d.Node, len(d.Holdings), EntriesMax)
	case d.Seq > TermMax:
		return fault.New(fault.Invalid, "declare %s: sequence %d", d.Node, d.Seq)
	}
	if err := d.Capacity.Check(); err != nil {
		return fmt.Errorf("declare %s: capacity: %w", d.Node, err)
	}
	if err := checkAssets(d.Assets, true); err != nil {
		return fmt.Errorf("declare %s: %w", d.Node, err)
	}
	seen := map[job.Attempt]bool{}
	for i := range d.Holdings {
		h := &d.Holdings[i]
		if err := checkAttempt(h.Attempt); err != nil {
			return fmt.Errorf("declare %s: %w", d.Node, err)
		}
		if err := h.Amounts.Check(); err != nil {
			return fmt.Errorf("declare %s: holding %s: %w", d.Node, h.Attempt, err)
		}
		if seen[h.Attempt] || len(h.Assets) > AssetsMax {
			return fault.New(fault.Invalid, "declare %s: holding %s is there twice or has too many assets", d.Node, h.Attempt)
		}
		seen[h.Attempt] = true
	}
	return d.checkClaims()
}

func (d *Declaration) checkClaims() error {
	if len(d.Claims) > EntriesMax {
		return fault.New(fault.Invalid, "declare %s: %d claims are over the limit of %d", d.Node, len(d.Claims), EntriesMax)
	}
	seen := map[job.Attempt]bool{}
	for i := range d.Claims {
		c := &d.Claims[i]
		if err := c.Check(); err != nil {
			return fmt.Errorf("declare %s: claim: %w", d.Node, err)
		}
		if seen[c.Attempt] || c.Node != d.Node {
			return fault.New(fault.Invalid, "declare %s: claim %s is there twice or of node %s", d.Node, c.Attempt, c.Node)
		}
		seen[c.Attempt] = true
	}
	return nil
}

// Change is a reservation whose bytes in a pool were corrected by the node's word.
type Change struct {
	Attempt      job.Attempt
	Pool         Pool
	Booked, Held bytesize.Bytes
}

// Drift is what a declaration found and changed. All lists are sorted.
type Drift struct {
	// Stale tells that the report was older than one already taken; nothing was changed.
	Stale bool
	// Opened tells that the book was closed before, Why says for what reason; all leases began anew.
	Opened bool
	Why    string
	// Rebooted tells that the boot id is another one than before.
	Rebooted bool
	// Unheld are live and not in the host's book: not begun yet, or gone. They stay booked; who knows that they can't
	// begin any more releases them.
	Unheld []job.Attempt
	// Unknown were held and not booked; they are now.
	Unknown []job.Attempt
	// Claimed were neither, may still begin, and are booked now.
	Claimed []job.Attempt
	// Freed were in limbo and are no longer held.
	Freed []job.Attempt
	// Changed are amounts that were corrected.
	Changed []Change
	// Over are pools that hold more than their capacity: nothing is granted there. It is an alarm.
	Over []Pool
}

// Drifted tells whether ledger and node differed in bytes, beyond what is normal in flight.
func (d *Drift) Drifted() bool { return len(d.Unknown) > 0 || len(d.Changed) > 0 || len(d.Over) > 0 }

func (a Amounts) equal(b Amounts) bool { return maps.Equal(a.Clone(), b.Clone()) }
