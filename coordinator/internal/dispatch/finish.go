package dispatch

import (
	"context"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// assemble finishes a job all of whose partitions are verified: all are verified together, the proof is stored, and
// then the record says that it is there. A crash in between leaves a job that is assembled again (B39).
func (l *Leader) assemble(s *jobState, r *job.Record) {
	if s.assembling || time.Now().Before(s.retryAt) {
		return
	}
	s.assembling = true
	s.busy++
	l.lanes.do(laneOfJob(r.ID), func(ctx context.Context) {
		ctx = l.traceAssembly(ctx, r)
		j, err := l.finish(ctx, r)
		telemetry.PathOf(ctx).End(err)
		l.inbox.post(func() {
			s.assembling = false
			if err != nil {
				s.retryAt = time.Now().Add(l.cfg.Tick)
				l.log.Warn().Err(err).Str("c2.job.id", string(r.ID)).EmbedObject(telemetry.InTrace(r.TraceParent)).
					Msg("job not assembled yet")
			} else {
				l.log.Info().Str("c2.job.id", string(r.ID)).Str("state", string(j.Record.State)).
					EmbedObject(telemetry.InTrace(r.TraceParent)).Msg("job ended")
			}
			l.changed(s, r.ID, "assemble", j, err, nil)
		})
	})
}

func (l *Leader) finish(ctx context.Context, r *job.Record) (store.Job, error) {
	telemetry.PathOf(ctx).Enter(telemetry.SpanAssemble)
	proof, bad, err := l.parts.Verifier.Job(ctx, r)
	switch {
	case err == nil:
	case transient(err):
		return store.Job{}, err
	default:
		// Every one of them was verified when it came: record or inputs were changed by another hand.
		report := fault.ReportOf("assemble", err)
		if len(bad) > 0 {
			report.Message = fmt.Sprintf("stored proofs of partitions %v do not verify any more: %s", bad, report.Message)
		}
		return l.parts.Store.Update(ctx, r.ID, func(r *job.Record) error { return r.FailWhole(report, time.Now().UTC()) })
	}
	telemetry.PathOf(ctx).Enter(telemetry.SpanStore)
	object, err := l.parts.Store.PutProof(ctx, r, proof)
	if err != nil {
		return store.Job{}, err
	}
	l.parts.Hooks.Hit(ctx, PointResultStored)
	return l.parts.Store.Update(ctx, r.ID, func(r *job.Record) error { return r.Complete(object, time.Now().UTC()) })
}

// Cancel stops a job: its fences rise at once, its workers are told, and it counts as cancelled when nothing of it runs
// or holds bytes any more (B38). Cancelling twice is harmless; an ended job is fault.Conflict, an unknown one
// fault.NotFound. It may be called from any goroutine.
func (l *Leader) Cancel(ctx context.Context, id job.ID, reason string) (*job.Record, error) {
	if reason == "" {
		reason = "cancelled by the client"
	}
	j, err := l.parts.Store.Update(ctx, id, func(r *job.Record) error {
		if r.State == job.Cancelling || r.State == job.Cancelled {
			return store.ErrUnchanged
		}
		return r.Cancel(&fault.Report{Kind: fault.Cancelled, Message: reason}, time.Now().UTC())
	})
	if err != nil {
		return nil, err
	}
	l.inbox.post(func() { l.stopWork(j.Record, reason) })
	return j.Record, nil
}

// stopWork tells the nodes that work on a job to stop.
func (l *Leader) stopWork(r *job.Record, reason string) {
	for a, t := range l.tracks {
		if a.Job == r.ID && (t.running || t.endedAt.IsZero()) {
			l.sendCancel(t.node, a, reason)
			l.endTrack(a)
		}
	}
	l.purge()
	l.seeJob(r.ID)
}

// stopIfQuiet ends a cancelling job when nothing of it runs or holds bytes any more. What a node holds that is gone
// stays booked there, but the job does not wait for it.
func (l *Leader) stopIfQuiet(s *jobState, r *job.Record) {
	for a, t := range l.tracks {
		if a.Job == r.ID && t.running {
			l.sendCancel(t.node, a, "the job is cancelled")
			l.endTrack(a)
		}
	}
	if s.stopping || time.Now().Before(s.retryAt) || !l.quiet(r.ID) {
		return
	}
	s.stopping = true
	l.change(r.ID, "stop", func(r *job.Record) error {
		if r.State != job.Cancelling {
			return store.ErrUnchanged
		}
		return r.Stopped(time.Now().UTC())
	}, func(_ store.Job, err error) {
		s.stopping = false
		if err != nil {
			s.retryAt = time.Now().Add(l.cfg.Tick)
		}
	})
}

// quiet tells whether neither the ledger nor a node that lives has anything of a job.
func (l *Leader) quiet(id job.ID) bool {
	if !l.books.up {
		return false
	}
	for name, b := range l.books.of {
		n, alive := l.parts.Nodes.Node(name)
		for a := range b.asked {
			if a.Job == id {
				return false
			}
		}
		if !alive {
			continue
		}
		for a := range b.entries {
			if a.Job == id {
				return false
			}
		}
		if n.Host != nil {
			for _, booking := range n.Host.Report.Book {
				if booking.Attempt.Job == id {
					return false
				}
			}
		}
		for a, live := range l.parts.Nodes.LiveOn(name) {
			if a.Job == id && time.Since(live.SeenAt) < l.cfg.Heartbeat {
				return false
			}
		}
	}
	return true
}

// seeStopping looks again at a job that is being cancelled when bytes of it have come back.
func (l *Leader) seeStopping(id job.ID) {
	if j, ok := l.parts.Store.Get(id); ok && j.Record.State == job.Cancelling {
		l.seeJob(id)
	}
}

// Replay makes a dead letter's job active again.
func (l *Leader) Replay(ctx context.Context, id job.ID) (*job.Record, error) {
	j, ok := l.parts.Store.Get(id)
	if !ok {
		return nil, fault.New(fault.NotFound, "replay job %s: no such job", id)
	}
	if mine, err := l.parts.Store.Confirm(ctx, j.Record); err != nil {
		return nil, err
	} else if !mine {
		return nil, fault.New(fault.Conflict, "replay job %s: its key belongs to another job by now", id)
	}
	j, err := l.parts.Store.Update(ctx, id, func(r *job.Record) error { return r.Replay(time.Now().UTC()) })
	if err != nil {
		return nil, err
	}
	l.inbox.post(func() {
		l.job(id).told = ""
		l.seeJob(id)
	})
	return j.Record, nil
}
