package verb

import (
	"context"
	"os"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/telemetry"
)

// trace is the span of a command, sent where the OTEL_* variables say; the nil trace is none.
type trace struct {
	tracer *telemetry.Tracer
	span   *telemetry.OpenSpan
}

// openTrace begins it.
func (a *app) openTrace(ctx context.Context, name string) *trace {
	log := telemetry.NewLogger(telemetry.LogConfig{Level: "warn", Format: telemetry.FormatConsole}, a.Err, time.Now)
	tracer := openTracer(ctx, "proofrack", log)
	if tracer == nil {
		return nil
	}
	return &trace{tracer, tracer.Open(&telemetry.Span{Name: name, Kind: telemetry.Client, Start: time.Now()})}
}

// openTracer is nil when no collector is named, or not understood: no command fails for its traces.
func openTracer(ctx context.Context, name string, log zerolog.Logger) *telemetry.Tracer {
	host, _ := os.Hostname() //nolint:errcheck // then it has none
	tracer, err := telemetry.OpenTracer(ctx, telemetry.DefaultTraceConfig(),
		telemetry.Program{Name: name, Build: buildOf(), Instance: host}, log)
	if err != nil {
		log.Warn().Err(err).Msg("no traces are sent")
	}
	return tracer
}

// parent names the span, for the job's trace to go on from it.
func (t *trace) parent() string {
	if t == nil {
		return ""
	}
	return t.span.Context().String()
}

func (t *trace) about(facts ...telemetry.Fact) {
	if t != nil {
		t.span.About(facts...)
	}
}

// end ends it and sends it, when all else is done: a collector that is away costs two seconds at most.
func (t *trace) end(err error) {
	if t != nil {
		t.span.End(time.Now(), err)
		t.tracer.Close()
	}
}
