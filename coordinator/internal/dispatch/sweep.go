package dispatch

import (
	"context"
	"errors"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// sweep removes what has no owner (invariant 9): records past their retention, objects, key entries, and tasks of
// attempts that own nothing.
func (l *Leader) sweep() {
	if l.sweeping {
		return
	}
	l.sweeping = true
	l.lanes.do("sweep", func(ctx context.Context) {
		swept, err := l.sweepStore(ctx)
		purged, purgeErr := l.purgeTasks(ctx)
		l.inbox.post(func() {
			l.sweeping = false
			if err := errors.Join(err, purgeErr); err != nil {
				l.log.Warn().Err(err).Msg("sweep incomplete")
			}
			if swept.Total()+purged > 0 {
				l.log.Info().Interface("swept", swept).Int("tasks", purged).Msg("removed what had no owner")
			}
		})
	})
}

// clockOffMax is how far the own clock may be from the server's without a word.
const clockOffMax = 10 * time.Second

// sweepStore removes records and objects, by the server's clock.
func (l *Leader) sweepStore(ctx context.Context) (store.Swept, error) {
	now, err := l.parts.Store.Clock(ctx)
	if err != nil {
		return store.Swept{}, err
	}
	if off := time.Until(now); off.Abs() > clockOffMax {
		l.log.Warn().Dur("offset", off).Msg("clocks of this host and of the NATS server differ: deadlines are wrong")
	}
	swept, err := l.parts.Store.Sweep(ctx, l.parts.Tenants, now)
	return swept, errors.Join(err, l.parts.Store.PutMissingAudits(ctx, now))
}

// purge removes tasks of attempts that own nothing any more, soon.
func (l *Leader) purge() {
	l.lanes.do("sweep", func(ctx context.Context) {
		if _, err := l.purgeTasks(ctx); err != nil {
			l.log.Warn().Err(err).Msg("dead tasks not removed yet")
		}
	})
}

// purgeMax bounds the messages that one purge looks at, of each stream.
const purgeMax = 100_000

func (l *Leader) purgeTasks(ctx context.Context) (int, error) {
	count := 0
	var errs []error
	for _, stream := range []string{wire.StreamSynth, wire.StreamProve} {
		n, err := l.purgeStream(ctx, stream)
		count += n
		errs = append(errs, err)
	}
	return count, errors.Join(errs...)
}

func (l *Leader) purgeStream(ctx context.Context, stream string) (count int, err error) {
	log, err := l.parts.Bus.Log(ctx, stream)
	if err != nil {
		return 0, err
	}
	from := uint64(1)
	for range purgeMax {
		m, err := l.next(ctx, log, from)
		if fault.KindOf(err) == fault.NotFound {
			return count, nil
		}
		if err != nil {
			return count, err
		}
		from = m.Sequence + 1
		dead, err := l.deadTask(ctx, m.ID)
		if err != nil {
			return count, err
		}
		if !dead {
			continue
		}
		if err := l.remove(ctx, log, m.Sequence); err != nil && fault.KindOf(err) != fault.NotFound {
			return count, err
		}
		count++
	}
	return count, nil
}

func (l *Leader) next(ctx context.Context, log bus.Log, from uint64) (bus.Stored, error) {
	ctx, cancel := l.call(ctx)
	defer cancel()
	return log.Next(ctx, ">", from)
}

func (l *Leader) remove(ctx context.Context, log bus.Log, sequence uint64) error {
	ctx, cancel := l.call(ctx)
	defer cancel()
	return log.Delete(ctx, sequence)
}

// deadTask tells whether a task's attempt owns nothing any more. Its message id is the attempt's name; what has another
// id was not published by this program, and workers will say so.
func (l *Leader) deadTask(ctx context.Context, id string) (bool, error) {
	a, err := job.ParseAttempt(id)
	if err != nil {
		return false, nil //nolint:nilerr // not ours to judge
	}
	j, ok := l.parts.Store.Get(a.Job)
	if !ok {
		if j, err = l.parts.Store.Fetch(ctx, a.Job); fault.KindOf(err) == fault.NotFound {
			return true, nil
		} else if err != nil {
			return false, err
		}
	}
	if a.Partition >= len(j.Record.Partitions) {
		return true, nil
	}
	// A higher fence than the view's is one that is just being claimed.
	return !owns(j.Record, a) && a.Fence <= j.Record.Partitions[a.Partition].Fence, nil
}
