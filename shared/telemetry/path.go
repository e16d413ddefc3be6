package telemetry

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Path makes spans that follow each other without a gap: each begins where the one before ended. All methods work on
// nil, which makes none, and may be called from several goroutines.
type Path struct {
	tracer *Tracer
	parent TraceContext

	mu    sync.Mutex
	facts []Fact // of all of its spans
	since time.Time
	now   Span // the one that goes on; none without a name
}

// Path begins one below a parent at a time. It is nil when nothing is recorded.
func (t *Tracer) Path(parent TraceContext, since time.Time, facts ...Fact) *Path {
	if t == nil || !parent.Valid() || !parent.Sampled() {
		return nil
	}
	return &Path{tracer: t, parent: parent, since: since, facts: facts}
}

// About adds facts to the span that goes on and to all that follow.
func (p *Path) About(facts ...Fact) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.facts = append(slices.Clip(p.facts), facts...)
}

// Facts are those that About has added, for a span that encloses the path; none of nil.
func (p *Path) Facts() []Fact {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.facts)
}

// Note adds facts to the span that goes on.
func (p *Path) Note(facts ...Fact) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now.Facts = append(p.now.Facts, facts...)
}

// Enter ends the span that goes on and begins the next, or one from where the last ended.
func (p *Path) Enter(name string, facts ...Fact) { p.enter(name, Internal, facts) }

// Send is Enter for a message that is sent to a subject of a template.
func (p *Path) Send(template, subject, id string, bytes int) {
	p.enter("send "+template, Producer, sendFacts(template, subject, id, bytes))
}

func (p *Path) enter(name string, kind Kind, facts []Fact) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now.Name != "" {
		p.end(time.Now(), nil)
	}
	p.now = Span{Name: name, Kind: kind, Start: p.since, ID: TraceContext{}.Child().SpanID, Facts: facts}
}

// Wait is a span for the time from the path's beginning, or the end of its last span, to now: what was waited for is
// known only then.
func (p *Path) Wait(name string, facts ...Fact) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.end(now, nil)
	p.record(&Span{Name: name, Start: p.since, End: now, Facts: facts})
	p.since = now
}

// End ends the span that goes on, if one does.
func (p *Path) End(err error) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(time.Now(), err)
}

// end ends the span that goes on. The lock is held.
func (p *Path) end(now time.Time, err error) {
	if p.now.Name == "" {
		return
	}
	p.now.End, p.now.Err = now, err
	p.record(&p.now)
	p.now, p.since = Span{}, now
}

// record completes a span. The lock is held.
func (p *Path) record(s *Span) {
	if !s.Parent.Valid() {
		s.Parent = p.parent
	}
	s.Facts = append(slices.Clip(s.Facts), p.facts...)
	p.tracer.Record(s)
}

// Span records one of its own times, below the path's parent unless it says otherwise.
func (p *Path) Span(s *Span) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.record(s)
}

// Parent is what its spans are below of; of nil the zero value.
func (p *Path) Parent() TraceContext {
	if p == nil {
		return TraceContext{}
	}
	return p.parent
}

// Now is the span that goes on, for spans below it; the zero value when none does.
func (p *Path) Now() TraceContext {
	if p == nil {
		return TraceContext{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.parent.With(p.now.ID)
}

// Part is a stage whose length was measured by somebody else.
type Part struct {
	Name string
	Took time.Duration
}

// Parts records parts of the span that goes on, which followed each other and ended at a time; none begins before the
// start. The time that is left between the start and the first part gets a span of the name rest.
func (p *Path) Parts(start, end time.Time, rest string, parts ...Part) {
	parent := p.Now()
	if !parent.Valid() {
		return
	}
	at := end
	for _, part := range slices.Backward(parts) {
		if part.Took <= 0 || !at.After(start) {
			continue
		}
		began := at.Add(-part.Took)
		if began.Before(start) {
			began = start
		}
		p.Span(&Span{Name: part.Name, Parent: parent, Start: began, End: at})
		at = began
	}
	if at.After(start) {
		p.Span(&Span{Name: rest, Parent: parent, Start: start, End: at})
	}
}

type pathKey struct{}

// WithPath has a context carry a path.
func WithPath(ctx context.Context, p *Path) context.Context {
	return context.WithValue(ctx, pathKey{}, p)
}

// PathOf is the path that a context carries, nil for none.
func PathOf(ctx context.Context) *Path {
	p, _ := ctx.Value(pathKey{}).(*Path)
	return p
}
