package dispatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
)

// The coordinator that led before had a clock an hour ahead: its pauses are in the records. They are no longer here
// than any pause can be.
func TestAPauseByAnotherClockEndsHere(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) {
		r.pass(10 * time.Second)
		id := r.submit(1)
		_, err := r.store.Update(r.t.Context(), id, func(record *job.Record) error {
			p, ahead := &record.Partitions[0], time.Now().Add(time.Hour)
			p.Fence, p.StageAt = 2, ahead
			pause := ahead.Add(time.Second)
			p.NotBefore = &pause
			return nil
		})
		r.check(err)
		r.pass(2 * time.Minute)
		if stages, _ := r.stages(id); stages[job.Reserved] != 1 {
			t.Errorf("two minutes later: %v", stages)
		}
	})
}

// behindBus is a server whose clock is a year behind the coordinator's.
type behindBus struct{ bus.Bus }

func (b behindBus) KV(ctx context.Context, bucket string) (bus.KV, error) {
	kv, err := b.Bus.KV(ctx, bucket)
	return behindKV{kv}, err
}

type behindKV struct{ bus.KV }

const year = 365 * 24 * time.Hour

func (k behindKV) Get(ctx context.Context, key string) (bus.Entry, error) {
	e, err := k.KV.Get(ctx, key)
	e.At = e.At.Add(-year)
	return e, err
}

// The leader's clock is a year ahead. What is kept for a week is kept by the server's clock, else all results would be
// gone at once.
func TestResultsOutliveALeaderWithAWrongClock(t *testing.T) {
	t.Parallel()
	leadingOn(t, func(b bus.Bus) bus.Bus { return behindBus{b} }, func(r *reign) {
		end := func(at time.Time) job.ID {
			id := r.submit(1)
			_, err := r.store.Update(r.t.Context(), id, func(record *job.Record) error {
				p := &record.Partitions[0]
				p.Stage, p.Proof = job.Verified, []byte{1}
				record.State, record.EndedAt = job.Done, &at
				return nil
			})
			r.check(err)
			return id
		}
		old, fresh := end(time.Now().Add(-year-30*24*time.Hour)), end(time.Now().Add(-year))
		r.pass(2 * time.Minute)
		if _, ok := r.store.Get(old); ok {
			t.Error("nothing is removed any more")
		}
		if _, ok := r.store.Get(fresh); !ok {
			t.Error("a job that ended just now by the server's clock was removed")
		}
	})
}
