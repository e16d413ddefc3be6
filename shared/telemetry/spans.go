package telemetry

import (
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/attribute"
)

// Names of spans, in the order of a job's life. Names have no ids in them.
const (
	SpanSubmit      = "submit job"  // the client's
	SpanAccept      = "accept job"  // root of the rack's part; ends when the job is accepted
	SpanCheckInput  = "check input" // read and check the whole input
	SpanStoreInput  = "store input" // slices, public inputs, record
	SpanBackoff     = "wait after attempt"
	SpanReserve     = "reserve memory"  // in the ledger and in the record
	SpanAttempt     = "attempt started" // a moment; everything of the attempt is below it
	SpanLost        = "lost attempt"    // from the last stage that was heard of until it was given up
	SpanWork        = "work started"    // a moment: a worker has begun its part
	SpanFetch       = "fetch slice"
	SpanBook        = "book memory"
	SpanSegment     = "create segment"
	SpanSynthesize  = "synthesize partition"
	SpanSeal        = "seal segment"
	SpanHandOver    = "hand over segment"
	SpanOpen        = "open segment"
	SpanPrepare     = "prepare proof"
	SpanProve       = "prove partition"
	SpanTransform   = "fft"
	SpanVerify      = "verify proof"
	SpanGiveBack    = "give back memory"
	SpanRecord      = "record proof"
	SpanAssemble    = "assemble proof"
	SpanStore       = "store proof"
	SpanEnded       = "job ended" // a moment
	waitPrefix      = "wait for "
	SpanWaitSynth   = waitPrefix + "synthesis"
	SpanWaitDevice  = waitPrefix + "device"
	SpanWaitTurn    = waitPrefix + "turn on device"
	SpanWaitEngine  = waitPrefix + "engine"
	SpanWaitLeader  = waitPrefix + "leader"
	SpanWaitOthers  = waitPrefix + "assembly"
	SpanWaitNothing = waitPrefix + "scheduler"
)

// SpanWait names a wait by what was waited for: a pool ("ram", "vram:gpu0"), or a word such as "quota".
func SpanWait(what string) string {
	if what == "" {
		return SpanWaitNothing
	}
	pool, _, _ := strings.Cut(what, ":")
	return waitPrefix + pool
}

// Keys of messaging spans as OpenTelemetry's semantic conventions have them (v1.43, of status Development).
const (
	keySystem      = "messaging.system"
	keyOperation   = "messaging.operation.name"
	keyType        = "messaging.operation.type"
	keyTemplate    = "messaging.destination.template"
	keyDestination = "messaging.destination.name"
	keyConsumer    = "messaging.consumer.group.name"
	keyMessage     = "messaging.message.id"
	keyBytes       = "messaging.message.body.size"
	keyDeliveries  = "messaging.nats.delivery.count"
)

// Templates of subjects.
const (
	TemplateSynth  = "c2.synth.{node}"
	TemplateProve  = "c2.prove.{node}.{device}"
	TemplateResult = "c2.result.{node}"
)

func sendFacts(template, subject, id string, bytes int) []Fact {
	return []Fact{
		attribute.String(keySystem, "nats"), attribute.String(keyOperation, "publish"), attribute.String(keyType, "send"),
		attribute.String(keyTemplate, template), attribute.String(keyDestination, subject),
		attribute.String(keyMessage, id), attribute.Int(keyBytes, bytes),
	}
}

// ProcessSpan is the span of a message that was worked on; its times and parent are the caller's to set.
func ProcessSpan(template, subject, consumer, id string, bytes, deliveries int) Span {
	return Span{Name: "process " + template, Kind: Consumer, Facts: []Fact{
		attribute.String(keySystem, "nats"), attribute.String(keyOperation, "process"), attribute.String(keyType, "process"),
		attribute.String(keyTemplate, template), attribute.String(keyDestination, subject),
		attribute.String(keyConsumer, consumer), attribute.String(keyMessage, id), attribute.Int(keyBytes, bytes),
		attribute.Int(keyDeliveries, deliveries),
	}}
}

// SentHeader tells in a message that carries a trace context when it was sent, so that its receiver can tell for how
// long it waited: nanoseconds since 1970.
const SentHeader = "c2-sent-at"

// Header is that of a message sent now in a trace; nil outside of one.
func (c TraceContext) Header() map[string]string {
	if !c.Valid() {
		return nil
	}
	return map[string]string{TraceHeader: c.String(), SentHeader: strconv.FormatInt(time.Now().UnixNano(), 10)}
}

// sentLongAgo is the most that a message can have waited.
const sentLongAgo = 30 * 24 * time.Hour

// SentAt reads when a message was sent: never after now, and now when that is not known.
func SentAt(header map[string]string, now time.Time) time.Time {
	nanos, err := strconv.ParseInt(header[SentHeader], 10, 64)
	if at := time.Unix(0, nanos); err == nil && at.Before(now) && now.Sub(at) < sentLongAgo {
		return at
	}
	return now
}

// InTrace adds a trace context's ids to an event: log.Info().EmbedObject(telemetry.InTrace(record.TraceParent)). What
// is no trace context adds nothing.
type InTrace string

// MarshalZerologObject implements zerolog.LogObjectMarshaler.
func (t InTrace) MarshalZerologObject(e *zerolog.Event) {
	if c, err := ParseTrace(string(t)); err == nil {
		e.Hex(KeyTraceID, c.TraceID[:]).Hex(KeySpanID, c.SpanID[:])
	}
}
