// Package otlptest is a collector of traces for tests: it takes OTLP by HTTP and by gRPC, keeps all spans, and can
// refuse or keep silent. It owns no truth, bounds nothing and is no part of any program.
package otlptest
