package memledger

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Store is what clients share, as a server would be.
type Store struct {
	now func() time.Time

	mu      sync.Mutex
	machine *ledger.Machine
	lease   ledger.Config
	run     int
	away    error
}

// Snapshot is a state to go back to.
type Snapshot struct{ machine *ledger.Machine }

// New makes an empty store with a clock.
func New(cfg ledger.Config, now func() time.Time) (*Store, error) {
	m, err := ledger.NewMachine(cfg)
	if err != nil {
		return nil, err
	}
	return &Store{now: now, machine: m, lease: cfg, run: 1}, nil
}

// Snapshot keeps the present state.
func (s *Store) Snapshot() Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Snapshot{s.machine.Clone()}
}

// Restart begins another life of the store with the state of a snapshot, as a server does that comes back from its log.
func (s *Store) Restart(from Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine = from.machine.Clone()
	s.run++
}

// RollBack goes back to a snapshot within one life, as a replica does that syncs with an older primary.
func (s *Store) RollBack(to Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine = to.machine.Clone()
}

// Wipe begins another life without any state.
func (s *Store) Wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.machine, _ = ledger.NewMachine(s.lease) // New has validated it
	s.run++
}

// SetAway makes all calls fail with an error until it is nil.
func (s *Store) SetAway(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = err
}

// Open gives a client with its own memory of what it has seen.
func (s *Store) Open() *Ledger { return &Ledger{store: s, seen: map[job.Node]uint64{}} }

// Ledger implements [ledger.Ledger].
type Ledger struct {
	store *Store
	seen  map[job.Node]uint64 // guarded by the store's lock
}

var _ ledger.Ledger = (*Ledger)(nil)

// Fork gives a client that has seen what this one has until now: a call that is under way says what its sender had seen
// when it was sent. Learn takes over what a fork has seen.
func (l *Ledger) Fork() *Ledger {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	return &Ledger{store: l.store, seen: maps.Clone(l.seen)}
}

// Learn has this client see what another one of the same store has seen.
func (l *Ledger) Learn(from *Ledger) {
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	for node, ops := range from.seen {
		l.seen[node] = max(l.seen[node], ops)
	}
}

// do runs a call on the machine and remembers how far the book is.
func (l *Ledger) do(
	ctx context.Context, call ledger.Call, node job.Node, f func(*ledger.Machine, ledger.Stamp) error,
) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := ledger.CheckCall(call); err != nil {
		return err
	}
	s := l.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away != nil {
		return fault.As(fault.Transient, s.away)
	}
	err := f(s.machine, l.stamp(node))
	if err == nil {
		l.seen[node] = max(l.seen[node], s.machine.Ops(node))
	}
	return err
}

func (l *Ledger) stamp(node job.Node) ledger.Stamp {
	return ledger.Stamp{
		Now: l.store.now().UTC().Truncate(time.Millisecond), Run: strconv.Itoa(l.store.run), Seen: l.seen[node],
	}
}

// Begin implements [ledger.Ledger].
func (l *Ledger) Begin(ctx context.Context, term uint64, epoch string) (call ledger.Call, err error) {
	err = l.do(ctx, ledger.Call{Term: term, Epoch: epoch}, "", func(m *ledger.Machine, _ ledger.Stamp) (err error) {
		call, err = m.Begin(term, epoch)
		return err
	})
	return call, err
}

// Declare implements [ledger.Ledger].
func (l *Ledger) Declare(
	ctx context.Context, call ledger.Call, d *ledger.Declaration,
) (drift *ledger.Drift, err error) {
	err = l.do(ctx, call, d.Node, func(m *ledger.Machine, s ledger.Stamp) (err error) {
		drift, err = m.Declare(s, call, d)
		return err
	})
	return drift, err
}

// Reserve implements [ledger.Ledger].
func (l *Ledger) Reserve(ctx context.Context, call ledger.Call, r *ledger.Reservation) error {
	return l.do(ctx, call, r.Node, func(m *ledger.Machine, s ledger.Stamp) error { return m.Reserve(s, call, r) })
}

// Transfer implements [ledger.Ledger].
func (l *Ledger) Transfer(ctx context.Context, call ledger.Call, from job.Attempt, to *ledger.Reservation) error {
	return l.do(ctx, call, to.Node, func(m *ledger.Machine, s ledger.Stamp) error {
		return m.Transfer(s, call, from, to)
	})
}

// Renew implements [ledger.Ledger].
func (l *Ledger) Renew(
	ctx context.Context, call ledger.Call, node job.Node, attempts []job.Attempt,
) (lost []job.Attempt, err error) {
	err = l.do(ctx, call, node, func(m *ledger.Machine, s ledger.Stamp) (err error) {
		lost, err = m.Renew(s, call, node, attempts)
		return err
	})
	return lost, err
}

// Shrink implements [ledger.Ledger].
func (l *Ledger) Shrink(
	ctx context.Context, call ledger.Call, node job.Node, attempt job.Attempt, keep ledger.Amounts,
) error {
	return l.do(ctx, call, node, func(m *ledger.Machine, s ledger.Stamp) error {
		return m.Shrink(s, call, node, attempt, keep)
	})
}

// Release implements [ledger.Ledger].
func (l *Ledger) Release(
	ctx context.Context, call ledger.Call, node job.Node, attempt job.Attempt,
) (released bool, err error) {
	err = l.do(ctx, call, node, func(m *ledger.Machine, s ledger.Stamp) (err error) {
		released, err = m.Release(s, call, node, attempt)
		return err
	})
	return released, err
}

// Expire implements [ledger.Ledger].
func (l *Ledger) Expire(ctx context.Context, call ledger.Call, node job.Node) (limbo []job.Attempt, err error) {
	err = l.do(ctx, call, node, func(m *ledger.Machine, s ledger.Stamp) (err error) {
		limbo, err = m.Expire(s, call, node)
		return err
	})
	return limbo, err
}

// Evict implements [ledger.Ledger].
func (l *Ledger) Evict(
	ctx context.Context, call ledger.Call, node job.Node, asset string,
) (evicted bool, err error) {
	err = l.do(ctx, call, node, func(m *ledger.Machine, s ledger.Stamp) (err error) {
		evicted, err = m.Evict(s, call, node, asset)
		return err
	})
	return evicted, err
}

// Forget implements [ledger.Ledger].
func (l *Ledger) Forget(ctx context.Context, call ledger.Call, node job.Node) error {
	return l.do(ctx, call, node, func(m *ledger.Machine, _ ledger.Stamp) error {
		err := m.Forget(call, node)
		if err == nil {
			delete(l.seen, node)
		}
		return err
	})
}

// Node implements [ledger.Ledger].
func (l *Ledger) Node(ctx context.Context, node job.Node) (book *ledger.NodeBook, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.store.away != nil {
		return nil, fault.As(fault.Transient, l.store.away)
	}
	return l.store.machine.Node(l.stamp(node), node)
}

// Nodes implements [ledger.Ledger].
func (l *Ledger) Nodes(ctx context.Context) ([]job.Node, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.store.mu.Lock()
	defer l.store.mu.Unlock()
	if l.store.away != nil {
		return nil, fault.As(fault.Transient, l.store.away)
	}
	return l.store.machine.Nodes(), nil
}

// Close implements [ledger.Ledger].
func (l *Ledger) Close() error { return nil }
