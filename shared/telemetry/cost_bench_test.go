package telemetry_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/telemetry"
)

// processorTime is what this process has used, in user and system mode.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var used unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// BenchmarkSpan/on is what a stage's span costs in all, encoding and sending to a collector that throws it away
// included; the metric is processor time of the process. BenchmarkSpan/off is the same without a collector.
func BenchmarkSpan(b *testing.B) {
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	defer collector.Close()
	parent, err := telemetry.ParseTrace(known)
	if err != nil {
		b.Fatal(err)
	}
	for name, endpoint := range map[string]string{"on": collector.URL, "off": ""} {
		b.Run(name, func(b *testing.B) {
			b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
			c := telemetry.DefaultTraceConfig()
			c.Endpoint, c.QueueMax, c.FlushWithin = endpoint, 1<<20, time.Minute
			tracer, err := telemetry.OpenTracer(b.Context(), c, telemetry.Program{Name: "bench"}, zerolog.Nop())
			if err != nil {
				b.Fatal(err)
			}
			path := tracer.Path(parent, time.Now(), telemetry.AttemptFacts(attempt())...)
			before := processorTime(b)
			for b.Loop() {
				path.Enter(telemetry.SpanSynthesize)
			}
			path.End(nil)
			tracer.Close()
			b.ReportMetric(float64(processorTime(b)-before)/float64(b.N), "cpu-ns/span")
			if s := tracer.Stats(); endpoint != "" && (s.Sent != uint64(b.N) || s.Dropped != 0) {
				b.Fatalf("%d spans were made, %+v", b.N, s)
			}
		})
	}
}
