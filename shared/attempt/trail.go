package attempt

import (
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// trail is what a run leaves in a trace: a mark when it begins, the stages of its work, and the message as a whole when
// it ends.
type trail struct {
	path  *telemetry.Path // nil when nothing is recorded
	whole telemetry.Span
}

// Trace is the path of the run's stages, nil when nothing is recorded.
func (r *Run) Trace() *telemetry.Path { return r.trace.path }

// follow begins the spans of a run. What comes to a worker again, since the one before died, links to the first.
func (l *loop) follow(r *Run, d bus.Delivery) {
	m, now := d.Message(), time.Now()
	parent, err := telemetry.FindTrace(m.Header, r.task.TraceParent())
	if err != nil {
		l.Log.Debug().Err(err).Stringer("attempt", r.attempt).Msg("trace context is broken")
	}
	node, device := r.task.Target()
	facts := append(telemetry.AttemptFacts(r.attempt),
		telemetry.String(telemetry.KeyNodeID, node), telemetry.String(telemetry.KeyDevice, device))
	path := l.Tracer.Path(parent, telemetry.SentAt(m.Header, now), facts...)
	if path == nil {
		return
	}
	template, wait := telemetry.TemplateSynth, telemetry.SpanWaitSynth
	if r.task.Stage() == job.Sealed {
		template, wait = telemetry.TemplateProve, telemetry.SpanWaitDevice
	}
	path.Wait(wait)
	start := &telemetry.Span{Name: telemetry.SpanWork, Start: now, End: now, Urgent: true}
	if begun := telemetry.WorkSpan(r.attempt, r.task.Stage()); d.Count() == 1 {
		start.ID = begun
	} else {
		start.Links = []telemetry.TraceContext{parent.With(begun)}
	}
	path.Span(start)
	whole := telemetry.ProcessSpan(template, m.Subject, l.source.Consumer.Name, m.ID, len(m.Data), d.Count())
	whole.Start = now
	r.trace = trail{path: path, whole: whole}
}

// followed ends the spans of a run.
func (r *Run) followed(err error) {
	path, whole := r.trace.path, r.trace.whole
	if path == nil {
		return
	}
	path.End(err)
	whole.End, whole.Err = time.Now(), err
	outcome := job.OutcomeOK
	if err != nil {
		outcome = Judge(err).Outcome
	}
	whole.Facts = append(whole.Facts, telemetry.String(telemetry.KeyOutcome, outcome))
	path.Span(&whole)
}

// tracedSend has the path show a message that is about to be sent.
func (r *Run) tracedSend(subject, id string, bytes int) {
	template := telemetry.TemplateProve
	if wire.Token(subject, 1) == "result" {
		template = telemetry.TemplateResult
	}
	r.trace.path.Send(template, subject, id, bytes)
}

// header carries the trace as the task had it.
func (r *Run) header() map[string]string {
	if c, err := telemetry.ParseTrace(r.task.TraceParent()); err == nil {
		return c.Header()
	}
	return nil
}
