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
// The package makes no spans and exports nothing.
package telemetry
