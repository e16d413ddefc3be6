package dispatch

import (
	"context"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// The leader's part of a job's trace. The trace's context is in the job's record, and spans that begin before an event
// take their start from there, so that another leader goes on with the same trace.

// traceOf is a job's trace, the zero value for none.
func traceOf(r *job.Record) telemetry.TraceContext {
	c, _ := telemetry.ParseTrace(r.TraceParent) //nolint:errcheck // what is no context is none
	return c
}

// traceID is its id as an attempt's history has it (B50), "" for none.
func traceID(r *job.Record) string {
	c := traceOf(r)
	if !c.Valid() {
		return ""
	}
	return hex.EncodeToString(c.TraceID[:])
}

// attemptTrace names the span of an attempt's start, which all of the attempt is below, in the form of records and
// messages.
func attemptTrace(r *job.Record, a job.Attempt) string {
	return traceOf(r).With(telemetry.AttemptSpan(a)).String()
}

// attemptFacts are those of an attempt, where it is placed, and its job.
func attemptFacts(r *job.Record, a job.Attempt, node job.Node, device job.Device) []telemetry.Fact {
	return append(telemetry.JobFacts(r), telemetry.Int(telemetry.KeyPartition, a.Partition),
		telemetry.Int(telemetry.KeyFence, a.Fence), telemetry.String(telemetry.KeyNodeID, node),
		telemetry.String(telemetry.KeyDevice, device))
}

// traceClaim shows a claim: what the partition waited for in turn, until the reservation was begun; the reservation;
// and that the attempt has started, linked to the one before. The partition is as it was before the claim.
func (l *Leader) traceClaim(r *job.Record, d *scheduler.Admit, before *job.Partition, began time.Time) *telemetry.Path {
	a, now := d.Attempt, time.Now()
	facts := attemptFacts(r, a, d.Place.Node, d.Place.Device)
	path := l.parts.Tracer.Path(traceOf(r), began, facts...)
	if path == nil {
		return nil
	}
	since := before.StageAt
	if at := before.NotBefore; at != nil && at.After(since) {
		end := *at
		if end.After(began) {
			end = began
		}
		path.Span(&telemetry.Span{Name: telemetry.SpanBackoff, Start: since, End: end})
		since = end
	}
	for _, s := range waitSpans(d, since, began) {
		path.Span(&s)
	}
	path.Span(&telemetry.Span{Name: telemetry.SpanReserve, Start: began, End: now, Facts: amountFacts(d)})
	start := &telemetry.Span{Name: telemetry.SpanAttempt, ID: telemetry.AttemptSpan(a), Start: now, End: now, Urgent: true}
	if former := formerAttempt(r, a); former != nil {
		start.Links = append(start.Links, traceOf(r).With(telemetry.AttemptSpan(*former)))
		start.Facts = append(start.Facts, telemetry.String("c2.attempt.former", former.String()))
	}
	start.Facts = append(start.Facts, telemetry.Int(telemetry.KeyAttemptNumber, r.Partitions[a.Partition].AttemptCount()))
	path.Span(start)
	return l.parts.Tracer.Path(traceOf(r).With(telemetry.AttemptSpan(a)), now, facts...)
}

// waitSpans are the waits of a partition from some time until its reservation was begun, without gaps: one for each
// thing that held it in turn.
func waitSpans(d *scheduler.Admit, since, began time.Time) []telemetry.Span {
	turns := d.Turns
	if len(turns) == 0 {
		turns = []scheduler.HeldSince{{Hold: d.Held, Since: since}}
	}
	var spans []telemetry.Span
	for i, held := range turns {
		end := began
		if i+1 < len(turns) && turns[i+1].Since.Before(began) {
			end = turns[i+1].Since
		}
		if end.Before(since) || end.Equal(since) && i+1 < len(turns) {
			continue
		}
		what := string(held.Code)
		facts := []telemetry.Fact{telemetry.String(telemetry.KeyWait, held.Code)}
		if held.Pool != "" {
			what = string(held.Pool)
			facts = append(facts, telemetry.String(telemetry.KeyPool, held.Pool))
		}
		spans = append(spans, telemetry.Span{Name: telemetry.SpanWait(what), Start: since, End: end, Facts: facts})
		since = end
	}
	return spans
}

// amountFacts are the bytes that an attempt asks for, by pool.
func amountFacts(d *scheduler.Admit) []telemetry.Fact {
	facts := []telemetry.Fact{telemetry.String(telemetry.KeyDatabase, "redis")}
	for pool, bytes := range d.Needs.Amounts {
		name, _, _ := strings.Cut(string(pool), ":")
		facts = append(facts, telemetry.Int(telemetry.KeyBytes+"."+name, bytes))
	}
	return facts
}

// formerAttempt is the attempt of a partition before one that was claimed just now; nil for the first.
func formerAttempt(r *job.Record, a job.Attempt) *job.Attempt {
	all := r.Partitions[a.Partition].Attempts
	if len(all) < 2 {
		return nil
	}
	return &job.Attempt{Job: a.Job, Partition: a.Partition, Fence: all[len(all)-2].Fence}
}

// traceLost shows that an attempt was given up: from the stage that was heard of last until now.
func (l *Leader) traceLost(r *job.Record, a job.Attempt, before *job.Partition, cause string) {
	path := l.parts.Tracer.Path(traceOf(r).With(telemetry.AttemptSpan(a)), before.StageAt,
		attemptFacts(r, a, before.Node, before.Device)...)
	path.Span(&telemetry.Span{
		Name: telemetry.SpanLost, Start: before.StageAt, End: time.Now(), Err: errors.New(cause), Urgent: true,
		Facts: []telemetry.Fact{
			telemetry.String(telemetry.KeyStage, before.Stage), telemetry.String(telemetry.KeyOutcome, job.OutcomeLost),
		},
	})
}

// traceResult begins the spans of a result that is looked at, with the wait for it.
func (l *Leader) traceResult(ctx context.Context, m bus.Message, result *wire.Result) context.Context {
	parent, err := telemetry.FindTrace(m.Header, result.TraceParent)
	if err != nil {
		l.log.Debug().Err(err).Stringer("attempt", result.Attempt).Msg("trace context is broken")
	}
	facts := append(telemetry.AttemptFacts(result.Attempt), telemetry.String(telemetry.KeyNodeID, result.Node),
		telemetry.String(telemetry.KeyDevice, result.Device))
	path := l.parts.Tracer.Path(parent, telemetry.SentAt(m.Header, time.Now()), facts...)
	path.Wait(telemetry.SpanWaitLeader)
	return telemetry.WithPath(ctx, path)
}

// traceAssembly begins the spans of a job's end, with the wait since its last partition was finished.
func (l *Leader) traceAssembly(ctx context.Context, r *job.Record) context.Context {
	last := r.SubmittedAt
	for i := range r.Partitions {
		if at := r.Partitions[i].StageAt; at.After(last) {
			last = at
		}
	}
	path := l.parts.Tracer.Path(traceOf(r), last, telemetry.JobFacts(r)...)
	path.Wait(telemetry.SpanWaitOthers)
	return telemetry.WithPath(ctx, path)
}

// traceEnd shows that a job has ended, and how.
func (l *Leader) traceEnd(r *job.Record) {
	if r.EndedAt == nil {
		return
	}
	s := &telemetry.Span{
		Name: telemetry.SpanEnded, Start: *r.EndedAt, End: *r.EndedAt, Urgent: true, Facts: []telemetry.Fact{
			telemetry.String(telemetry.KeyState, r.State),
			telemetry.Float(telemetry.KeySeconds, r.EndedAt.Sub(r.SubmittedAt).Seconds()),
		},
	}
	if r.Fault != nil {
		s.Err = r.Fault
	}
	l.parts.Tracer.Path(traceOf(r), *r.EndedAt, telemetry.JobFacts(r)...).Span(s)
}
