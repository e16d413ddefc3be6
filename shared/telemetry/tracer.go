package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Fact is an attribute of a span; see the functions that make them.
type Fact = attribute.KeyValue

// String is a fact in words.
func String[T ~string](key string, value T) Fact { return attribute.String(key, string(value)) }

// Int is a fact in whole numbers.
func Int[T ~int | ~int64 | ~uint64](key string, value T) Fact {
	return attribute.Int64(key, int64(value))
}

// Float is a fact in numbers.
func Float(key string, value float64) Fact { return attribute.Float64(key, value) }

// AttemptFacts name an attempt.
func AttemptFacts(a job.Attempt) []Fact {
	return []Fact{String(KeyJobID, a.Job), Int(KeyPartition, a.Partition), Int(KeyFence, a.Fence)}
}

// JobFacts name a job, whose it is, and what it is of.
func JobFacts(r *job.Record) []Fact {
	return []Fact{
		String(KeyJobID, r.ID), String(KeyTenant, r.Tenant), String(KeyMinerID, r.Miner),
		Int(KeySectorNumber, r.SectorNumber), String(KeyCircuit, r.Circuit),
	}
}

// Kind is what a span is to the one at the other end.
type Kind = trace.SpanKind

// Kinds of spans. A leaf of a trace is Internal, Client or Producer: the others enclose what happens.
const (
	Internal = trace.SpanKindInternal
	Server   = trace.SpanKindServer
	Client   = trace.SpanKindClient
	Producer = trace.SpanKindProducer
	Consumer = trace.SpanKindConsumer
)

// Span is something that took time and is over.
type Span struct {
	Name string
	// Kind is Internal when it is not set.
	Kind Kind
	// Parent is the zero value for the root of a trace.
	Parent TraceContext
	// ID is a random one when it is zero.
	ID [8]byte
	// Links are spans that it belongs to beside its parent, such as that of an attempt before this one.
	Links []TraceContext
	// Start and End; an End before Start, as by clocks that differ, is Start.
	Start, End time.Time
	Facts      []Fact
	// Err is why it did not succeed.
	Err error
	// Urgent spans are sent at once.
	Urgent bool
}

// AttemptSpan is the id of the span that tells of an attempt's start. It follows from the attempt, so that everybody
// can name it: another leader, the next attempt, a worker that starts again.
func AttemptSpan(a job.Attempt) (id [8]byte) { return spanID("attempt " + a.String()) }

// WorkSpan is the id of the span that tells when a worker first began its part of an attempt.
func WorkSpan(a job.Attempt, stage job.Stage) (id [8]byte) {
	return spanID("work " + a.String() + " " + string(stage))
}

func spanID(of string) (id [8]byte) {
	sum := sha256.Sum256([]byte(of))
	copy(id[:], sum[:])
	return id
}

// With is the context of another span of the same trace.
func (c TraceContext) With(span [8]byte) TraceContext {
	if !c.Valid() {
		return TraceContext{}
	}
	c.SpanID = span
	return c
}

// Tracer makes spans and has them sent. The nil Tracer makes none.
type Tracer struct {
	tracer trace.Tracer
	queue  *spanQueue
	flush  time.Duration
	target string
}

// Program names who makes spans.
type Program struct {
	// Name is the service's, Build the version, Instance of this start; OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES go
	// first.
	Name, Build, Instance string
	// Facts are on all of its spans, in the resource.
	Facts []Fact
}

// OpenTracer makes a Tracer, or nil when neither configuration nor environment name a collector. It sends nothing yet
// and waits for nobody. Errors are fault.Invalid.
func OpenTracer(ctx context.Context, c TraceConfig, p Program, log zerolog.Logger) (*Tracer, error) {
	at, err := c.target()
	if err != nil || at == nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx) // who is asked to stop shows that, too
	exporter, err := at.exporter(ctx)
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	log.Info().Str("endpoint", at.url.String()).Str("protocol", at.protocol).Msg("traces are sent")
	return newTracer(ctx, exporter, c, p, at, log), nil
}

// exporter makes the client of a collector. It does not try again by itself: the queue does.
func (t *target) exporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	if t.protocol == ProtocolGRPC {
		options := []otlptracegrpc.Option{
			otlptracegrpc.WithEndpoint(t.url.Host),
			otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{}),
		}
		if t.url.Scheme == "http" {
			options = append(options, otlptracegrpc.WithInsecure())
		}
		return otlptrace.New(ctx, otlptracegrpc.NewClient(options...))
	}
	return otlptrace.New(ctx, otlptracehttp.NewClient(
		otlptracehttp.WithEndpointURL(t.url.String()), otlptracehttp.WithRetry(otlptracehttp.RetryConfig{})))
}

// factBytesMax bounds texts in spans, such as errors.
const factBytesMax = 1024

func newTracer(
	ctx context.Context, exporter sdktrace.SpanExporter, c TraceConfig, p Program, at *target, log zerolog.Logger,
) *Tracer {
	facts := append([]Fact{
		attribute.String("service.name", p.Name), attribute.String("service.version", p.Build),
		attribute.String("service.instance.id", p.Instance),
	}, p.Facts...)
	about := resource.NewSchemaless(facts...)
	if environment, err := resource.New(ctx, resource.WithFromEnv()); err != nil {
		log.Warn().Err(err).Msg("OTEL_RESOURCE_ATTRIBUTES is not understood")
	} else if merged, err := resource.Merge(about, environment); err == nil {
		about = merged
	}
	limits := sdktrace.NewSpanLimits()
	if limits.AttributeValueLengthLimit < 0 {
		limits.AttributeValueLengthLimit = factBytesMax
	}
	queue := newSpanQueue(exporter, c.QueueMax, at, log)
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(queue), sdktrace.WithResource(about),
		sdktrace.WithIDGenerator(chosenIDs{}), sdktrace.WithRawSpanLimits(limits))
	return &Tracer{
		tracer: provider.Tracer("github.com/proofrack/proofrack"), queue: queue, flush: c.FlushWithin,
		target: at.url.String(),
	}
}

// Close sends what waits, for as long as TraceConfig.FlushWithin, and logs what is lost. Results are out by then.
func (t *Tracer) Close() {
	if t != nil {
		t.queue.close(t.flush)
	}
}

// TraceStats counts spans.
type TraceStats struct {
	// Sent were taken by the collector, Dropped are lost: the queue was full, or the collector refused them again and
	// again. Waiting are in the queue. Failures are calls of the collector that failed.
	Sent, Dropped, Failures uint64
	Waiting                 int
}

// Stats counts what became of spans; of the nil Tracer it is zero.
func (t *Tracer) Stats() TraceStats {
	if t == nil {
		return TraceStats{}
	}
	return t.queue.stats()
}

// OpenSpan is a span that has begun. It works as the span of others for which it is the parent, also when nothing is
// sent.
type OpenSpan struct {
	context TraceContext
	span    trace.Span // nil for none
}

// Open begins a span; its End and Err are not looked at. Without a Tracer, and for spans that are not sampled, only its
// context is made.
func (t *Tracer) Open(s *Span) *OpenSpan {
	if t == nil {
		context := s.Parent
		if !context.Valid() {
			context = NewTrace()
		}
		if s.ID != ([8]byte{}) {
			return &OpenSpan{context: context.With(s.ID)}
		}
		return &OpenSpan{context: context.Child()}
	}
	ctx := context.WithValue(context.Background(), idKey{}, s)
	options := []trace.SpanStartOption{trace.WithTimestamp(s.Start), trace.WithSpanKind(s.Kind)}
	if s.Parent.Valid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, s.Parent.context())
	}
	for _, link := range s.Links {
		if link.Valid() {
			options = append(options, trace.WithLinks(trace.Link{SpanContext: link.context()}))
		}
	}
	_, span := t.tracer.Start(ctx, s.Name, options...)
	of := span.SpanContext()
	return &OpenSpan{context: TraceContext{of.TraceID(), of.SpanID(), byte(of.TraceFlags()) & knownFlags}, span: span}
}

// Context names the span; of nil it is the zero value.
func (o *OpenSpan) Context() TraceContext {
	if o == nil {
		return TraceContext{}
	}
	return o.context
}

// About adds facts.
func (o *OpenSpan) About(facts ...Fact) {
	if o != nil && o.span != nil {
		o.span.SetAttributes(facts...)
	}
}

// Link adds a span that it belongs to.
func (o *OpenSpan) Link(to TraceContext) {
	if o != nil && o.span != nil && to.Valid() {
		o.span.AddLink(trace.Link{SpanContext: to.context()})
	}
}

// End ends the span.
func (o *OpenSpan) End(at time.Time, err error) {
	if o == nil || o.span == nil {
		return
	}
	if err != nil {
		o.span.SetStatus(codes.Error, err.Error())
		o.span.SetAttributes(attribute.String(KeyFaultKind, string(fault.KindOf(err))))
	}
	o.span.End(trace.WithTimestamp(at))
}

// Record makes a span that is over, and gives its context.
func (t *Tracer) Record(s *Span) TraceContext {
	if t == nil || s.Parent.Valid() && !s.Parent.Sampled() {
		return TraceContext{}
	}
	o := t.Open(s)
	o.About(s.Facts...)
	end := s.End
	if end.Before(s.Start) {
		end = s.Start
	}
	o.End(end, s.Err)
	if s.Urgent {
		t.queue.hurry()
	}
	return o.context
}

func (c TraceContext) context() trace.SpanContext {
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: c.TraceID, SpanID: c.SpanID, TraceFlags: trace.TraceFlags(c.Flags), Remote: true,
	})
}

// idKey finds the span that is being made.
type idKey struct{}

// chosenIDs gives a span the id that it asks for, else a random one.
type chosenIDs struct{}

// NewIDs implements trace.IDGenerator.
func (g chosenIDs) NewIDs(ctx context.Context) (id trace.TraceID, span trace.SpanID) {
	rand.Read(id[:]) //nolint:errcheck // it never fails
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements trace.IDGenerator.
func (chosenIDs) NewSpanID(ctx context.Context, _ trace.TraceID) (id trace.SpanID) {
	if s, ok := ctx.Value(idKey{}).(*Span); ok && s.ID != ([8]byte{}) {
		return s.ID
	}
	rand.Read(id[:]) //nolint:errcheck // it never fails
	return id
}
