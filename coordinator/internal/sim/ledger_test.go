package sim_test

import (
	"context"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// store is a ledger behind a line. Each method has its answer for itself, since a late call may answer into nothing.
type store struct {
	*line
	ledger.Ledger
	w *world
}

// change makes a call that may change books, alone.
func (s *store) change(do func() error) error {
	s.w.books.Lock()
	defer s.w.books.Unlock()
	return do()
}

// grant makes a call that may book an attempt, and has the watchers look if it did.
func (s *store) grant(ctx context.Context, r *ledger.Reservation, do func() error) error {
	return s.change(func() error {
		i := slices.IndexFunc(s.w.hosts, func(h *host) bool { return h.name == r.Node })
		l := s.w.ledger.Open()
		before, err := l.Node(ctx, r.Node)
		fresh := err != nil || before.Entry(r.Attempt) == nil
		if err := do(); err != nil {
			return err
		}
		if after, err := l.Node(ctx, r.Node); err == nil && fresh {
			s.w.seeGrant(s.w.hosts[i], after, r.Attempt)
		}
		return nil
	})
}

// changed is change with an answer.
func changed[T any](s *store, do func() (T, error)) (out T, err error) {
	err = s.change(func() error {
		out, err = do()
		return err
	})
	return out, err
}

func (s *store) Begin(ctx context.Context, term uint64, epoch string) (ledger.Call, error) {
	return answer(ctx, s.line, func(ctx context.Context) (ledger.Call, error) { return s.Ledger.Begin(ctx, term, epoch) })
}

func (s *store) Declare(ctx context.Context, c ledger.Call, d *ledger.Declaration) (*ledger.Drift, error) {
	return answer(ctx, s.line, func(ctx context.Context) (*ledger.Drift, error) {
		return changed(s, func() (*ledger.Drift, error) {
			drift, err := s.Ledger.Declare(ctx, c, d)
			if err == nil && !drift.Stale {
				s.w.declared(d)
			}
			return drift, err
		})
	})
}

func (s *store) Reserve(ctx context.Context, c ledger.Call, r *ledger.Reservation) error {
	return s.call(ctx, func(ctx context.Context) error {
		return s.grant(ctx, r, func() error { return s.Ledger.Reserve(ctx, c, r) })
	})
}

func (s *store) Transfer(ctx context.Context, c ledger.Call, from job.Attempt, to *ledger.Reservation) error {
	return s.call(ctx, func(ctx context.Context) error {
		return s.grant(ctx, to, func() error { return s.Ledger.Transfer(ctx, c, from, to) })
	})
}

func (s *store) Renew(ctx context.Context, c ledger.Call, n job.Node, a []job.Attempt) ([]job.Attempt, error) {
	return answer(ctx, s.line, func(ctx context.Context) ([]job.Attempt, error) {
		return changed(s, func() ([]job.Attempt, error) { return s.Ledger.Renew(ctx, c, n, a) })
	})
}

func (s *store) Shrink(ctx context.Context, c ledger.Call, n job.Node, a job.Attempt, keep ledger.Amounts) error {
	return s.call(ctx, func(ctx context.Context) error {
		return s.change(func() error { return s.Ledger.Shrink(ctx, c, n, a, keep) })
	})
}

func (s *store) Release(ctx context.Context, c ledger.Call, n job.Node, a job.Attempt) (bool, error) {
	return answer(ctx, s.line, func(ctx context.Context) (bool, error) {
		return changed(s, func() (bool, error) { return s.Ledger.Release(ctx, c, n, a) })
	})
}

func (s *store) Expire(ctx context.Context, c ledger.Call, n job.Node) ([]job.Attempt, error) {
	return answer(ctx, s.line, func(ctx context.Context) ([]job.Attempt, error) {
		return changed(s, func() ([]job.Attempt, error) { return s.Ledger.Expire(ctx, c, n) })
	})
}

func (s *store) Evict(ctx context.Context, c ledger.Call, n job.Node, asset string) (bool, error) {
	return answer(ctx, s.line, func(ctx context.Context) (bool, error) {
		return changed(s, func() (bool, error) { return s.Ledger.Evict(ctx, c, n, asset) })
	})
}

func (s *store) Node(ctx context.Context, n job.Node) (*ledger.NodeBook, error) {
	return answer(ctx, s.line, func(ctx context.Context) (*ledger.NodeBook, error) { return s.Ledger.Node(ctx, n) })
}

func (s *store) Nodes(ctx context.Context) ([]job.Node, error) {
	return answer(ctx, s.line, s.Ledger.Nodes)
}

// declared notes of when the report is that was declared.
func (w *world) declared(d *ledger.Declaration) {
	for _, h := range w.hosts {
		if h.name != d.Node {
			continue
		}
		h.mu.Lock()
		at := h.made[report{d.Instance, d.Seq}]
		h.mu.Unlock()
		w.mu.Lock()
		w.declaredOf[d.Node] = at
		w.mu.Unlock()
	}
}

// harmed changes the ledger's state by another hand, and notes whose books were lost or went back by that.
func (w *world) harmed(harm func()) {
	w.books.Lock()
	defer w.books.Unlock()
	ops := func() map[job.Node]uint64 {
		out, l := map[job.Node]uint64{}, w.ledger.Open()
		for _, h := range w.hosts {
			if b, err := l.Node(context.Background(), h.name); err == nil {
				out[h.name] = b.Ops
			}
		}
		return out
	}
	before := ops()
	harm()
	after := ops()
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, n := range before {
		if after[name] < n {
			w.lostAt[name] = time.Now()
		}
	}
}
