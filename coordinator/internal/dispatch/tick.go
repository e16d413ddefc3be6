package dispatch

import (
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/job"
)

// tick looks at everything that only time changes.
func (l *Leader) tick(now time.Time) {
	for _, name := range l.parts.Nodes.Expire(now) {
		l.seeNode(name)
	}
	if !l.books.up && now.Sub(l.books.beganAt) >= l.cfg.Tick {
		l.beginLedger()
	}
	l.apply(scheduler.Tick{})
	l.refreshDue(now)
	l.keepLeases(now)
	l.lookAtJobs(now)
	l.compareAll(now)
	l.lookAtQuarantines(now)
	l.keepLearned(now)
	if now.Sub(l.sweptAt) >= l.cfg.Sweep {
		l.sweptAt = now
		l.sweep()
	}
}

// lookAtJobs ends jobs whose deadline has passed, publishes what should have been, and tries again what did not work.
func (l *Leader) lookAtJobs(now time.Time) {
	for _, j := range l.parts.Store.Live() {
		r, s := j.Record, l.job(j.Record.ID)
		switch {
		case s.busy > 0:
			continue
		case r.Overdue(now):
			l.change(r.ID, "expire", func(r *job.Record) error {
				if !r.Overdue(time.Now()) {
					return store.ErrUnchanged
				}
				return r.Expire(time.Now().UTC())
			}, nil)
		case !s.confirmed || r.State == job.Cancelling || r.VerifiedCount() == len(r.Partitions):
			l.seeJob(r.ID)
		}
	}
	for id, s := range l.jobs {
		j, ok := l.parts.Store.Get(id)
		if ok && j.Record.State.Ended() && s.told != j.Record.State && !s.ending {
			l.seeJob(id)
		}
	}
}
