package dispatch

import (
	"context"

	"github.com/proofrack/proofrack/shared/job"
)

// Lose and TakeBack are lose and takeBack, for tests.
func (l *Leader) Lose(ctx context.Context, a job.Attempt, cause string) error {
	return l.Ask(ctx, func() { l.lose(a, cause) })
}

// TakeBack see Lose.
func (l *Leader) TakeBack(ctx context.Context, a job.Attempt, reason string) error {
	return l.Ask(ctx, func() { l.takeBack(a, reason) })
}
