// Package telemetry is how every process logs, and the trace context that messages carry.
//
// Logs go to one writer, a line an event, as JSON or as text for a terminal. Control and direction-changing characters
// of foreign texts (names, error messages) reach neither form unescaped, so nobody can write lines, colours or links
// into somebody else's terminal. The keys of facts are the constants of keys.go; spans use the same ones. A Secret
// never shows its text.
//
// TraceContext is the W3C trace context, version 00: it is parsed, made, and carried in message headers under the name
// "traceparent", which is read in any case. Brokers may rename headers on the way, so messages carry a copy in their
// body, and a Carrier takes what is left. Trouble with it never fails a message: a fresh trace begins instead.
//
// A [Tracer] makes spans and has them sent to a collector by OTLP, where configuration or the OTEL_* variables name
// one; without, it is nil and all of its methods do nothing. All spans of a job are one trace. A span is made when it
// is over, with its own times, so that one which began in another process, or under another leader, is made like any
// other. A [Path] makes those of one attempt follow each other without gaps. What has to be named before it exists, or
// by somebody else, has an id that follows from the attempt ([AttemptSpan], [WorkSpan]).
//
//	Record ─► waiting ─► in hand ─► sent
//	   │         ▲           │ the collector fails: again, with pauses, up to 20 times
//	   │         └───────────┘
//	   └ the queue is full, or 20 times were not enough: dropped, counted, told once a minute
//
// Nothing waits for the collector but [Tracer.Close], for TraceConfig.FlushWithin at most. Limits: QueueMax spans wait;
// texts in spans have 1,024 bytes unless OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT says otherwise. The package owns no truth
// about jobs, makes no metrics, and keeps nothing over a restart.
package telemetry
