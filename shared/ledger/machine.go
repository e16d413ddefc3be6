package ledger

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Config is what all ledgers of a rack agree on.
type Config struct {
	// Lease is how long a reservation lives without Renew. At least 1 ms; default 15 s.
	Lease time.Duration
}

// DefaultConfig has the start values of the design.
func DefaultConfig() Config { return Config{Lease: 15 * time.Second} }

// Validate reports what is wrong.
func (c Config) Validate() error {
	if c.Lease < time.Millisecond || c.Lease > 24*time.Hour {
		return fault.New(fault.Invalid, "ledger lease of %s is outside 1ms to 24h", c.Lease)
	}
	return nil
}

// Stamp is what a store knows at one call.
type Stamp struct {
	// Now is the store's clock, cut to milliseconds. It may jump.
	Now time.Time
	// Run names the store's life: another one means that it may have forgotten or gone back.
	Run string
	// Seen is the count of operations that the caller saw last in this book; a book with fewer went back.
	Seen uint64
}

// Machine is the ledger as a pure state machine: the specification. Methods with a [Call] are the port's of the same
// names. An error changes nothing, but for leases that begin anew after a jump of the clock. It is not safe for
// concurrent use.
type Machine struct {
	lease time.Duration
	term  uint64
	books map[job.Node]*NodeBook
}

// NewMachine makes an empty ledger.
func NewMachine(cfg Config) (*Machine, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Machine{lease: cfg.Lease, books: map[job.Node]*NodeBook{}}, nil
}

// Clone is an independent copy, as a snapshot.
func (m *Machine) Clone() *Machine {
	c := &Machine{lease: m.lease, term: m.term, books: map[job.Node]*NodeBook{}}
	for node, b := range m.books {
		c.books[node] = b.clone()
	}
	return c
}

// Ops is the count of operations of a node's book, 0 when it has none.
func (m *Machine) Ops(node job.Node) uint64 {
	if b := m.books[node]; b != nil {
		return b.Ops
	}
	return 0
}

// CheckCall refuses what can't be a call.
func CheckCall(call Call) error {
	if call.Term < 1 || call.Term > TermMax {
		return fault.New(fault.Invalid, "term %d is outside 1 to %d", call.Term, uint64(TermMax))
	}
	if !instanceName.MatchString(call.Epoch) {
		return fault.New(fault.Invalid, "epoch %.80q is illegal", call.Epoch)
	}
	return nil
}

// Over is the error of a call whose term is over. Its kind is Lost.
type Over struct {
	// Term is the call's, Seen the highest that the ledger knows.
	Term, Seen uint64
}

// Error implements error.
func (o *Over) Error() string {
	return fmt.Sprintf("term %d is over: the ledger has seen term %d", o.Term, o.Seen)
}

// FaultKind implements fault.Classified.
func (*Over) FaultKind() fault.Kind { return fault.Lost }

// SeenTerm is a term that a new reign must be above. Terms are counted in another store than this one, and begin anew
// when that one loses its disks.
func (o *Over) SeenTerm() uint64 { return o.Seen }

// TermOver is the error of a call whose term is over.
func TermOver(call Call, seen uint64) error { return &Over{Term: call.Term, Seen: seen} }

// Begin is Ledger.Begin.
func (m *Machine) Begin(term uint64, epoch string) (Call, error) {
	call := Call{Term: term, Epoch: epoch}
	if err := CheckCall(call); err != nil {
		return Call{}, err
	}
	highest := m.term
	for _, b := range m.books {
		highest = max(highest, b.Term)
	}
	if term < highest {
		return Call{}, TermOver(call, highest)
	}
	m.term = term
	for _, b := range m.books {
		b.Term = term
	}
	return call, nil
}

// Node is Ledger.Node.
func (m *Machine) Node(s Stamp, node job.Node) (*NodeBook, error) {
	b := m.books[node]
	if b == nil {
		return nil, NoBook(node)
	}
	view := b.clone()
	view.Tick(s.Now)
	view.Closed = b.closed(s)
	return view, nil
}

// NoBook is the error for a node without a book.
func NoBook(node job.Node) error {
	return fault.New(fault.NotFound, "node %s has no book in the ledger", node)
}

// Nodes is Ledger.Nodes.
func (m *Machine) Nodes() []job.Node { return slices.Sorted(maps.Keys(m.books)) }

// Forget is Ledger.Forget.
func (m *Machine) Forget(call Call, node job.Node) error {
	b := m.books[node]
	switch {
	case b == nil:
		return nil
	case call.Term < b.Term:
		return TermOver(call, b.Term)
	case len(b.Entries) > 0:
		return StillBooked(node, len(b.Entries))
	}
	delete(m.books, node)
	return nil
}

// StillBooked is the error of forgetting a node that has entries.
func StillBooked(node job.Node, entries int) error {
	return fault.New(fault.Conflict, "forget node %s: %d attempts are booked on it", node, entries)
}

// closed is why a book is closed for callers of any epoch.
func (b *NodeBook) closed(s Stamp) string {
	switch {
	case b.Epoch == "":
		return ClosedNotDeclared
	case b.Run != s.Run:
		return ClosedRestarted
	case b.Ops < s.Seen:
		return ClosedRolledBack
	}
	return ""
}

// closedTo is closed for a caller: each reign begins by putting its term on every book, so one of an earlier term came
// back, whatever its count says.
func (b *NodeBook) closedTo(s Stamp, call Call) string {
	why := b.closed(s)
	if why == "" && b.Term < call.Term {
		return ClosedRolledBack
	}
	return why
}

// open checks that a call may change a book and gives a copy to change.
func (m *Machine) open(s Stamp, call Call, node job.Node) (*NodeBook, error) {
	b := m.books[node]
	if b == nil {
		return nil, &Refusal{Node: node, Closed: ClosedNotDeclared}
	}
	if call.Term < b.Term {
		return nil, TermOver(call, b.Term)
	}
	if b.Epoch != "" && b.Epoch != call.Epoch {
		return nil, &Refusal{Node: node, Closed: ClosedEpoch}
	}
	if why := b.closedTo(s, call); why != "" {
		return nil, &Refusal{Node: node, Closed: why}
	}
	b = b.clone()
	b.Tick(s.Now)
	if b.Now.Sub(b.WrittenAt) > m.lease {
		b.rearm(m.lease)
		b.WrittenAt = b.Now
		m.books[node] = b
		b = b.clone()
	}
	return b, nil
}

// commit puts a changed copy in place.
func (m *Machine) commit(b *NodeBook) {
	b.settle()
	b.Ops++
	m.books[b.Node] = b
}

// settle brings what is derived up to date.
func (b *NodeBook) settle() {
	b.Used, b.WrittenAt = b.Sum(), b.Now
	slices.SortFunc(b.Entries, func(x, y Entry) int { return compareAttempts(x.Attempt, y.Attempt) })
	slices.SortFunc(b.Assets, func(x, y AssetEntry) int { return compareKeys(x.Key(), y.Key()) })
}

// rearm begins all leases anew.
func (b *NodeBook) rearm(lease time.Duration) {
	for i := range b.Entries {
		if !b.Entries[i].Limbo {
			b.Entries[i].LeaseUntil = b.Now.Add(lease)
		}
	}
}

func (b *NodeBook) clone() *NodeBook {
	c := *b
	c.Capacity, c.Used = maps.Clone(b.Capacity), maps.Clone(b.Used)
	c.Assets = slices.Clone(b.Assets)
	c.Entries = slices.Clone(b.Entries)
	for i := range c.Entries {
		c.Entries[i].Amounts = maps.Clone(c.Entries[i].Amounts)
		c.Entries[i].Assets = slices.Clone(c.Entries[i].Assets)
	}
	return &c
}

func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// limbo moves an entry there.
func (b *NodeBook) limbo(e *Entry) { e.Limbo, e.LeaseUntil, e.LimboSince = true, time.Time{}, b.Now }

// assetAt finds an asset's entry to change, nil when there is none.
func (b *NodeBook) assetAt(key AssetKey) *AssetEntry {
	for i := range b.Assets {
		if b.Assets[i].Key() == key {
			return &b.Assets[i]
		}
	}
	return nil
}

// use counts one user more, or less, of assets.
func (b *NodeBook) use(keys []AssetKey, by int) {
	for _, key := range keys {
		if a := b.assetAt(key); a != nil {
			a.Users += by
			a.UsedAt = b.Now
			if a.Users < 0 {
				panic(fmt.Sprintf("ledger: asset %s of node %s has %d users", key, b.Node, a.Users))
			}
		}
	}
}

// remove takes an entry out; its assets stay.
func (b *NodeBook) remove(a job.Attempt) bool {
	e := b.Entry(a)
	if e == nil {
		return false
	}
	b.use(e.Assets, -1)
	b.Entries = slices.DeleteFunc(b.Entries, func(e Entry) bool { return e.Attempt == a })
	return true
}
