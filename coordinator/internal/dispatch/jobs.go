package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// seeJob looks at a job whose record is new or changed.
func (l *Leader) seeJob(id job.ID) {
	j, ok := l.parts.Store.Get(id)
	if !ok {
		l.forgetJob(id)
		return
	}
	s, r := l.job(id), j.Record
	if s.busy > 0 {
		return // seen when the change under way has ended
	}
	switch r.State {
	case job.Active:
		l.seeActive(s, r)
	case job.Cancelling:
		l.apply(scheduler.JobGone{Job: id})
		l.stopIfQuiet(s, r)
	case job.Done, job.Failed, job.Cancelled:
		l.apply(scheduler.JobGone{Job: id})
		l.seeEnded(s, r)
	}
}

func (l *Leader) seeActive(s *jobState, r *job.Record) {
	if !s.confirmed {
		l.confirm(s, r)
		return
	}
	for i := range r.Partitions {
		if r.Partitions[i].Stage.Running() {
			l.track(r, i)
		}
	}
	l.apply(scheduler.JobSeen{Job: l.viewOf(r)})
	if r.VerifiedCount() == len(r.Partitions) {
		l.assemble(s, r)
	}
}

// viewOf is a record as the scheduler takes it. Pauses were written by whoever led then, by its clock: none is longer
// than pauses are by the own clock. They end when so much time has passed, also where that clock is set meanwhile.
func (l *Leader) viewOf(r *job.Record) scheduler.JobView {
	v, now := scheduler.ViewOf(r), time.Now()
	longest := max(l.cfg.Policy.BackoffMax, l.cfg.HandBackPause)
	for i := range v.Partitions {
		p := &v.Partitions[i]
		p.StageAt = now.Add(p.StageAt.Sub(now))
		if !p.NotBefore.IsZero() {
			p.NotBefore = now.Add(min(p.NotBefore.Sub(now), longest))
		}
	}
	return v
}

// confirm makes sure that a job's key is its own. A job of which something was claimed has been confirmed by an earlier
// leader.
func (l *Leader) confirm(s *jobState, r *job.Record) {
	if s.confirming || time.Now().Before(s.retryAt) {
		return
	}
	claimed := false
	for i := range r.Partitions {
		claimed = claimed || r.Partitions[i].Fence > 0
	}
	if claimed || r.Key == "" {
		if !claimed {
			l.publishEvent(r, wire.EventAccepted, nil)
		}
		s.confirmed = true
		l.seeActive(s, r)
		return
	}
	s.confirming = true
	l.lanes.do(laneOfJob(r.ID), func(ctx context.Context) {
		mine, err := l.parts.Store.Confirm(ctx, r)
		if err == nil && !mine {
			if j, ok := l.parts.Store.Get(r.ID); ok {
				err = l.parts.Store.Remove(ctx, j)
			}
			l.log.Warn().Str("c2.job.id", string(r.ID)).Msg("job removed: its key went to another job")
		}
		l.inbox.post(func() {
			s.confirming = false
			if err != nil {
				s.retryAt = time.Now().Add(l.cfg.Tick)
				l.log.Warn().Err(err).Str("c2.job.id", string(r.ID)).Msg("key not confirmed")
				return
			}
			if s.confirmed = mine; mine {
				l.publishEvent(r, wire.EventAccepted, nil)
			}
			l.seeJob(r.ID)
		})
	})
}

// forgetJob drops a job whose record is gone. What still runs of it is told to stop; its bytes come back as the node's
// evidence comes (B37).
func (l *Leader) forgetJob(id job.ID) {
	l.apply(scheduler.JobGone{Job: id})
	for a, t := range l.tracks {
		if a.Job == id {
			l.sendCancel(t.node, a, "the job's record is gone")
			l.endTrack(a)
		}
	}
	if _, lost := l.parts.Store.Lost(id); lost {
		l.log.Error().Str("c2.job.id", string(id)).Msg("job record was lost")
	}
	delete(l.jobs, id)
}

// change updates a record in its job's lane. It tells the scheduler what is to be told first, and then the record. The
// function after runs in the loop with the outcome; it may be nil.
func (l *Leader) change(
	id job.ID, what string, edit func(*job.Record) error, after func(j store.Job, err error),
) {
	s := l.job(id)
	s.busy++
	l.lanes.do(laneOfJob(id), func(ctx context.Context) {
		j, err := l.parts.Store.Update(ctx, id, edit)
		l.inbox.post(func() { l.changed(s, id, what, j, err, after) })
	})
}

// changed ends what change or a result's lane began.
func (l *Leader) changed(
	s *jobState, id job.ID, what string, j store.Job, err error, after func(j store.Job, err error),
) {
	s.busy--
	if err != nil && fault.KindOf(err) != fault.Lost && fault.KindOf(err) != fault.Conflict {
		l.log.Warn().Err(err).Str("c2.job.id", string(id)).Str("change", what).Msg("record not changed")
	}
	if after != nil {
		after(j, err)
	}
	l.seeJob(id)
}

// retellWithin is how long ago a job may have ended for a new leader to tell it again, in case the one before crashed
// in between. Within the duplicate window nobody hears it twice.
const retellWithin = 10 * time.Minute

// seeEnded does what the end of a job asks for, once in a reign: its end is told, a failed one is put among the dead
// letters, a finished one gets its audit record, and what it no longer needs goes.
func (l *Leader) seeEnded(s *jobState, r *job.Record) {
	for a, t := range l.tracks {
		if a.Job == r.ID && t.endedAt.IsZero() {
			if t.running {
				l.sendCancel(t.node, a, "the job has ended: "+string(r.State))
			}
			l.endTrack(a)
		}
	}
	if s.told == "" && r.EndedAt != nil && time.Since(*r.EndedAt) > retellWithin {
		s.told = r.State // by an earlier leader
	}
	if s.told == r.State || s.ending || time.Now().Before(s.retryAt) {
		return
	}
	s.ending = true
	l.lanes.do(laneOfJob(r.ID), func(ctx context.Context) {
		err := l.end(ctx, r)
		l.inbox.post(func() {
			s.ending = false
			if err != nil {
				s.retryAt = time.Now().Add(l.cfg.Tick)
				l.log.Warn().Err(err).Str("c2.job.id", string(r.ID)).Msg("end of job not told yet")
				return
			}
			s.told = r.State
			if r.EndedAt != nil && !r.EndedAt.Before(l.began) {
				l.parts.Meter.job(r)
			}
		})
	})
}

func (l *Leader) end(ctx context.Context, r *job.Record) error {
	ctx, cancel := context.WithTimeout(ctx, 2*l.cfg.CallTimeout)
	defer cancel()
	if r.State == job.Done {
		if err := l.parts.Store.PutAudit(ctx, r); err != nil {
			return err
		}
	}
	if r.State == job.Failed {
		if err := l.deadLetter(ctx, r); err != nil {
			return err
		}
	}
	what := map[job.State]string{
		job.Done: wire.EventDone, job.Failed: wire.EventFailed, job.Cancelled: wire.EventCancelled,
	}[r.State]
	if err := l.tell(ctx, r, what, nil); err != nil {
		return err
	}
	l.traceEnd(r)
	if r.State == job.Failed {
		return nil // it may be replayed
	}
	return l.parts.Store.DropInput(ctx, r.ID, len(r.Partitions))
}

// deadLetter publishes a failed job, once for each failure.
func (l *Leader) deadLetter(ctx context.Context, r *job.Record) error {
	letter := &wire.DeadLetter{Job: r.ID, Tenant: r.Tenant, Circuit: r.Circuit, Fault: r.Fault, Record: r}
	if r.EndedAt != nil {
		letter.At = *r.EndedAt
	}
	data, err := wire.Encode(letter)
	if fault.KindOf(err) == fault.Exhausted {
		letter.Record = nil // too long; the record itself is kept
		data, err = wire.Encode(letter)
	}
	if err != nil {
		return fmt.Errorf("encode dead letter of job %s: %w", r.ID, err)
	}
	kind := string(fault.Internal)
	if r.Fault != nil {
		kind = string(r.Fault.FaultKind())
	}
	return l.publish(ctx, wire.DLQSubject(kind), fmt.Sprintf("%s.%d", r.ID, letter.At.UnixNano()), data, r.TraceParent)
}
