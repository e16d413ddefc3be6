package sim_test

import (
	"context"
	"time"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/memledger"
)

// store is a ledger behind a line. Each method has its answer for itself, since a late call may answer into nothing.
type store struct {
	*line
	*memledger.Ledger
	w *world
}

// asked makes a call with what its sender had seen when it was sent. It learns from the answer, if that comes.
func asked[T any](
	ctx context.Context, s *store, do func(context.Context, *memledger.Ledger) (T, error),
) (T, error) {
	fork := s.Ledger.Fork()
	out, err := answer(ctx, s.line, func(ctx context.Context) (T, error) { return do(ctx, fork) })
	if err == nil {
		s.Ledger.Learn(fork)
	}
	return out, err
}

// told is asked without an answer but its error.
func told(ctx context.Context, s *store, do func(context.Context, *memledger.Ledger) error) error {
	_, err := asked(ctx, s, func(ctx context.Context, l *memledger.Ledger) (struct{}, error) {
		return struct{}{},
			do(ctx, l)
	})
	return err
}

// change makes a call that may change a node's book, alone, and has the watchers look at the book.
func (s *store) change(node job.Node, do func() error) error {
	s.w.books.Lock()
	defer s.w.books.Unlock()
	err := do()
	s.w.seeBook(node, false)
	return err
}

// grant makes a call that may book an attempt, and has the watchers look if it did.
func (s *store) grant(r *ledger.Reservation, do func() error) error {
	return s.change(r.Node, func() error {
		before := s.w.book(r.Node)
		if err := do(); err != nil {
			return err
		}
		if after := s.w.book(r.Node); before == nil || before.Entry(r.Attempt) == nil {
			s.w.seeGrant(s.w.host(r.Node), after, r.Attempt)
		}
		return nil
	})
}

// changed is change with an answer.
func changed[T any](s *store, node job.Node, do func() (T, error)) (out T, err error) {
	err = s.change(node, func() error {
		out, err = do()
		return err
	})
	return out, err
}

func (s *store) Begin(ctx context.Context, term uint64, epoch string) (ledger.Call, error) {
	return asked(ctx, s, func(ctx context.Context, l *memledger.Ledger) (ledger.Call, error) {
		return l.Begin(ctx,
			term, epoch)
	})
}

func (s *store) Declare(ctx context.Context, c ledger.Call, d *ledger.Declaration) (*ledger.Drift, error) {
	return asked(ctx, s, func(ctx context.Context, l *memledger.Ledger) (*ledger.Drift, error) {
		s.w.books.Lock()
		defer s.w.books.Unlock()
		drift, err := l.Declare(ctx, c, d)
		if err == nil && !drift.Stale {
			s.w.declared(d)
		}
		s.w.seeBook(d.Node, true)
		return drift, err
	})
}

func (s *store) Reserve(ctx context.Context, c ledger.Call, r *ledger.Reservation) error {
	return told(ctx, s, func(ctx context.Context, l *memledger.Ledger) error {
		return s.grant(r, func() error { return l.Reserve(ctx, c, r) })
	})
}

func (s *store) Transfer(ctx context.Context, c ledger.Call, from job.Attempt, to *ledger.Reservation) error {
	return told(ctx, s, func(ctx context.Context, l *memledger.Ledger) error {
		return s.grant(to, func() error { return l.Transfer(ctx, c, from, to) })
	})
}

func (s *store) Renew(ctx context.Context, c ledger.Call, n job.Node, a []job.Attempt) ([]job.Attempt, error) {
	return asked(ctx, s, func(ctx context.Context, l *memledger.Ledger) ([]job.Attempt, error) {
		return changed(s, n, func() ([]job.Attempt, error) { return l.Renew(ctx, c, n, a) })
	})
}

func (s *store) Shrink(ctx context.Context, c ledger.Call, n job.Node, a job.Attempt, keep ledger.Amounts) error {
	return told(ctx, s, func(ctx context.Context, l *memledger.Ledger) error {
		return s.change(n, func() error { return l.Shrink(ctx, c, n, a, keep) })
	})
}

func (s *store) Release(ctx context.Context, c ledger.Call, n job.Node, a job.Attempt) (bool, error) {
	return asked(ctx, s, func(ctx context.Context, l *memledger.Ledger) (bool, error) {
		return changed(s, n, func() (bool, error) { return l.Release(ctx, c, n, a) })
	})
}

func (s *store) Expire(ctx context.Context, c ledger.Call, n job.Node) ([]job.Attempt, error) {
	return asked(ctx, s, func(ctx context.Context, l *memledger.Ledger) ([]job.Attempt, error) {
		return changed(s, n, func() ([]job.Attempt, error) {
			limbo, err := l.Expire(ctx, c, n)
			if b := s.w.book(n); err == nil && b != nil {
				s.w.seeExpired(b)
			}
			return limbo, err
		})
	})
}

func (s *store) Evict(ctx context.Context, c ledger.Call, n job.Node, asset string) (bool, error) {
	return asked(ctx, s, func(ctx context.Context, l *memledger.Ledger) (bool, error) {
		return changed(s, n, func() (bool, error) { return l.Evict(ctx, c, n, asset) })
	})
}

func (s *store) Node(ctx context.Context, n job.Node) (*ledger.NodeBook, error) {
	return asked(ctx, s, func(ctx context.Context, l *memledger.Ledger) (*ledger.NodeBook,
		error) {
		return l.Node(ctx, n)
	})
}

func (s *store) Nodes(ctx context.Context) ([]job.Node, error) {
	return asked(ctx, s, func(ctx context.Context, l *memledger.Ledger) ([]job.Node, error) { return l.Nodes(ctx) })
}

// declared notes of when the report is that was declared.
func (w *world) declared(d *ledger.Declaration) {
	h := w.host(d.Node)
	h.mu.Lock()
	at := h.made[report{d.Instance, d.Seq}]
	h.mu.Unlock()
	w.mu.Lock()
	w.declaredOf[d.Node] = at
	w.mu.Unlock()
}

// book is a node's book as the watchers see it, nil when there is none. The books' lock is held.
func (w *world) book(node job.Node) *ledger.NodeBook {
	b, err := w.books.client.Node(context.Background(), node)
	if err != nil {
		return nil // away, or no such book
	}
	return b
}

// harmed changes the ledger's state by another hand, and notes whose books were lost or went back by that.
func (w *world) harmed(harm func()) {
	w.books.Lock()
	defer w.books.Unlock()
	ops := func(h *host) uint64 {
		if b := w.book(h.name); b != nil {
			return b.Ops
		}
		return 0
	}
	before := map[job.Node]uint64{}
	for _, h := range w.hosts {
		before[h.name] = ops(h)
	}
	harm()
	clear(w.books.last)
	for _, h := range w.hosts {
		w.seeBook(h.name, true) // an older state is what the node declared then
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.hosts {
		if ops(h) < before[h.name] {
			w.lostAt[h.name] = time.Now()
		}
	}
}
