package dispatch

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// admit reserves, claims and publishes an attempt, in the node's lane.
func (l *Leader) admit(d *scheduler.Admit) {
	b := l.book(d.Place.Node)
	b.asked[d.Attempt] = d.Needs
	if d.From != nil {
		b.freeing[*d.From], b.transferring[*d.From] = true, true
	}
	call := l.books.call
	l.lanes.do(laneOfNode(d.Place.Node), func(ctx context.Context) {
		out := l.carryOut(ctx, call, d)
		l.inbox.post(func() { l.admitted(d, out) })
	})
}

// admission is what came of an Admit.
type admission struct {
	// reserved tells that the ledger has the reservation, doubtful that it may.
	reserved, doubtful bool
	// claimed is the record in which the attempt owns its partition; published tells that its task was stored.
	claimed   *job.Record
	published bool
	// refusal is why nothing of it is left; ofJob tells whose fault that is.
	refusal error
	ofJob   bool
	// ledgerErr is set when the ledger did not answer.
	ledgerErr error
}

func (l *Leader) carryOut(ctx context.Context, call ledger.Call, d *scheduler.Admit) (out admission) {
	began := time.Now()
	if err := l.claimable(d.Attempt); err != nil {
		return admission{refusal: err, ofJob: true}
	}
	if err := l.reserve(ctx, call, d); err != nil {
		return admission{refusal: err, ledgerErr: err, doubtful: transient(err)}
	}
	l.parts.Hooks.Hit(ctx, PointReserved)
	out.reserved = true
	j, before, err := l.claim(ctx, d)
	if err != nil {
		out.refusal, out.ofJob = err, true
		// The write may have been stored although its answer was lost: then the record shows it, and a reservation that
		// nobody owns is found by the next comparison of the truths.
		out.doubtful = transient(err)
		if !out.doubtful && l.giveBack(ctx, call, d) == nil {
			out.reserved = false
		}
		return out
	}
	l.parts.Hooks.Hit(ctx, PointClaimed)
	out.claimed = j.Record
	path := l.traceClaim(j.Record, d, &before, began)
	path.Send(telemetry.TemplateSynth, wire.SynthSubject(d.Place.Node), d.Attempt.String(), 0)
	err = l.publishTask(ctx, j.Record, d.Attempt, d.Needs.Amounts)
	path.End(err)
	switch {
	case err == nil:
		out.published = true
		l.parts.Hooks.Hit(ctx, PointPublished)
	case fault.KindOf(err) == fault.Exhausted:
		l.unclaim(ctx, call, d, err, &out)
	default:
		l.log.Warn().Err(err).Str("attempt", d.Attempt.String()).
			EmbedObject(telemetry.InTrace(attemptTrace(j.Record, d.Attempt))).Msg("task not published yet")
	}
	return out
}

// claimable tells whether the record still is as the scheduler saw it.
func (l *Leader) claimable(a job.Attempt) error {
	j, ok := l.parts.Store.Get(a.Job)
	if !ok {
		return fault.New(fault.NotFound, "claim attempt %s: the job is gone", a)
	}
	p := &j.Record.Partitions[a.Partition]
	if j.Record.State != job.Active || p.Stage != job.Waiting || p.Fence+1 != a.Fence {
		return fault.New(fault.Conflict, "claim attempt %s: the job is %s, the partition %s with fence %d", a, j.Record.State,
			p.Stage, p.Fence)
	}
	return nil
}

// claim makes the attempt the owner of its partition, and gives what the partition was before. Doing it again, after an
// answer that was lost, is no error.
func (l *Leader) claim(ctx context.Context, d *scheduler.Admit) (j store.Job, before job.Partition, err error) {
	j, err = l.parts.Store.Update(ctx, d.Attempt.Job, func(r *job.Record) error {
		p := &r.Partitions[d.Attempt.Partition]
		before = *p
		if owns(r, d.Attempt) && p.Node == d.Place.Node && p.Device == d.Place.Device {
			return store.ErrUnchanged
		}
		if p.Fence+1 != d.Attempt.Fence {
			return fault.New(fault.Conflict, "claim attempt %s: the partition has fence %d", d.Attempt, p.Fence)
		}
		if _, err := r.Claim(d.Attempt.Partition, d.Place.Node, d.Place.Device, time.Now().UTC()); err != nil {
			return err
		}
		p.Last().TraceID = traceID(r)
		return nil
	})
	return j, before, err
}

// unclaim undoes a claim whose task found no room in the queue (B58): nobody can have got it.
func (l *Leader) unclaim(ctx context.Context, call ledger.Call, d *scheduler.Admit, cause error, out *admission) {
	_, err := l.parts.Store.Update(ctx, d.Attempt.Job, func(r *job.Record) error {
		return r.HandBack(d.Attempt, "queue full: "+cause.Error(), l.cfg.HandBackPause, time.Now().UTC())
	})
	if err != nil && fault.KindOf(err) != fault.Lost {
		l.log.Warn().Err(err).Str("attempt", d.Attempt.String()).Msg("claim not undone yet")
		return // it stays claimed, and its task is published again later
	}
	out.claimed, out.refusal = nil, cause
	if l.giveBack(ctx, call, d) == nil {
		out.reserved = false
	}
}

// giveBack releases a reservation that nobody can have used.
func (l *Leader) giveBack(ctx context.Context, call ledger.Call, d *scheduler.Admit) error {
	err := l.passOver(ctx, d.Attempt)
	if err == nil {
		ctx, cancel := l.call(ctx)
		defer cancel()
		_, err = l.parts.Ledger.Release(ctx, call, d.Place.Node, d.Attempt)
	}
	if err != nil {
		l.log.Warn().Err(err).Str("attempt", d.Attempt.String()).Msg("reservation not given back yet")
	}
	return err
}

// passOver makes sure that an attempt which was never claimed can't be: a release of its name that arrives late would
// take the bytes from the next claim of that name.
func (l *Leader) passOver(ctx context.Context, a job.Attempt) error {
	_, err := l.parts.Store.Update(ctx, a.Job, passingOver(a))
	if fault.KindOf(err) == fault.NotFound {
		return nil
	}
	return err
}

// passingOver is that change of a record; there is none if it was claimed after all, or passed over before.
func passingOver(a job.Attempt) func(*job.Record) error {
	return func(r *job.Record) error {
		if !r.PassOver(a) {
			return store.ErrUnchanged
		}
		return nil
	}
}

// publishTask sends the task of an attempt to its node's synthesis workers.
func (l *Leader) publishTask(ctx context.Context, r *job.Record, a job.Attempt, amounts ledger.Amounts) error {
	_, err := l.publishAgain(ctx, r, a, amounts)
	return err
}

// publishAgain tells whether the stream had the task already.
func (l *Leader) publishAgain(
	ctx context.Context, r *job.Record, a job.Attempt, amounts ledger.Amounts,
) (duplicate bool, err error) {
	p := &r.Partitions[a.Partition]
	data, err := wire.Encode(&wire.SynthTask{
		Attempt: a, Node: p.Node, Device: p.Device, Circuit: r.Circuit, Slice: p.Slice, Amounts: amounts,
		Priority: r.Priority, Deadline: r.Deadline, TraceParent: attemptTrace(r, a),
	})
	if err != nil {
		return false, fmt.Errorf("encode task of attempt %s: %w", a, err)
	}
	ctx, cancel := l.call(ctx)
	defer cancel()
	duplicate, err = l.parts.Bus.Publish(ctx, l.message(wire.SynthSubject(p.Node), a.String(), data, attemptTrace(r, a)))
	if err != nil {
		return false, fmt.Errorf("publish task of attempt %s: %w", a, err)
	}
	return duplicate, nil
}

// admitted takes the outcome of an Admit.
func (l *Leader) admitted(d *scheduler.Admit, out admission) {
	b := l.book(d.Place.Node)
	early := b.early[d.Attempt]
	delete(b.asked, d.Attempt)
	delete(b.early, d.Attempt)
	if transient(out.ledgerErr) || closed(out.ledgerErr) {
		l.ledgerTrouble(d.Place.Node, out.ledgerErr)
	}
	if d.From != nil && out.reserved {
		l.released(d.Place.Node, *d.From) // by the Transfer
	}
	b.countRefusal(out)
	if out.reserved || out.doubtful {
		b.entries[d.Attempt] = &entry{amounts: d.Needs.Amounts, since: time.Now()}
	}
	if out.claimed == nil {
		l.log.Debug().Err(out.refusal).Str("attempt", d.Attempt.String()).Msg("not admitted")
		if d.From != nil && !out.reserved {
			// The scheduler asks for the release of From next.
			delete(b.transferring, *d.From)
		}
		l.apply(scheduler.Refused{Attempt: d.Attempt, Cause: causeOf(out.refusal), OfJob: out.ofJob})
		if out.reserved || out.doubtful {
			l.readBook(d.Place.Node)
		}
		l.seeJob(d.Attempt.Job)
		return
	}
	t := l.track(out.claimed, d.Attempt.Partition)
	t.amounts, t.assets = d.Needs.Amounts, d.Needs.Assets
	t.unpublished = !out.published
	if _, ok := l.owns(d.Attempt); !ok {
		l.endTrack(d.Attempt) // cancelled meanwhile
	}
	l.apply(scheduler.Granted{Attempt: d.Attempt})
	l.publishPartition(out.claimed, d.Attempt.Partition)
	l.seeJob(d.Attempt.Job)
	if early {
		l.freed(d.Place.Node, d.Attempt)
	}
}

// causeOf is a refusal in words for Why.
func causeOf(err error) string {
	var refusal *ledger.Refusal
	if errors.As(err, &refusal) {
		return refusal.Error()
	}
	return err.Error()
}
