package sim_test

import (
	"context"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// store is a ledger behind a line. Each method has its answer for itself, since a late call may answer into nothing.
type store struct {
	*line
	ledger.Ledger
}

func (s *store) Begin(ctx context.Context, term uint64, epoch string) (ledger.Call, error) {
	return answer(ctx, s.line, func(ctx context.Context) (ledger.Call, error) { return s.Ledger.Begin(ctx, term, epoch) })
}

func (s *store) Declare(ctx context.Context, c ledger.Call, d *ledger.Declaration) (*ledger.Drift, error) {
	return answer(ctx, s.line, func(ctx context.Context) (*ledger.Drift, error) { return s.Ledger.Declare(ctx, c, d) })
}

func (s *store) Reserve(ctx context.Context, c ledger.Call, r *ledger.Reservation) error {
	return s.call(ctx, func(ctx context.Context) error { return s.Ledger.Reserve(ctx, c, r) })
}

func (s *store) Transfer(ctx context.Context, c ledger.Call, from job.Attempt, to *ledger.Reservation) error {
	return s.call(ctx, func(ctx context.Context) error { return s.Ledger.Transfer(ctx, c, from, to) })
}

func (s *store) Renew(ctx context.Context, c ledger.Call, n job.Node, a []job.Attempt) ([]job.Attempt, error) {
	return answer(ctx, s.line, func(ctx context.Context) ([]job.Attempt, error) { return s.Ledger.Renew(ctx, c, n, a) })
}

func (s *store) Shrink(ctx context.Context, c ledger.Call, n job.Node, a job.Attempt, keep ledger.Amounts) error {
	return s.call(ctx, func(ctx context.Context) error { return s.Ledger.Shrink(ctx, c, n, a, keep) })
}

func (s *store) Release(ctx context.Context, c ledger.Call, n job.Node, a job.Attempt) (bool, error) {
	return answer(ctx, s.line, func(ctx context.Context) (bool, error) { return s.Ledger.Release(ctx, c, n, a) })
}

func (s *store) Expire(ctx context.Context, c ledger.Call, n job.Node) ([]job.Attempt, error) {
	return answer(ctx, s.line, func(ctx context.Context) ([]job.Attempt, error) { return s.Ledger.Expire(ctx, c, n) })
}

func (s *store) Evict(ctx context.Context, c ledger.Call, n job.Node, asset string) (bool, error) {
	return answer(ctx, s.line, func(ctx context.Context) (bool, error) { return s.Ledger.Evict(ctx, c, n, asset) })
}

func (s *store) Node(ctx context.Context, n job.Node) (*ledger.NodeBook, error) {
	return answer(ctx, s.line, func(ctx context.Context) (*ledger.NodeBook, error) { return s.Ledger.Node(ctx, n) })
}

func (s *store) Nodes(ctx context.Context) ([]job.Node, error) {
	return answer(ctx, s.line, s.Ledger.Nodes)
}
