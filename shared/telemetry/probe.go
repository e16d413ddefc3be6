package telemetry

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/rs/zerolog"
)

// Probe sends one span to the collector that configuration or environment name, and waits for its answer within
// TraceConfig.FlushWithin. It gives the collector's address and the span's trace, nothing when no collector is named.
// An error of kind Transient is the collector's, Invalid the configuration's.
func Probe(ctx context.Context, c TraceConfig, p Program) (endpoint, trace string, err error) {
	t, err := OpenTracer(ctx, c, p, zerolog.Nop())
	if err != nil || t == nil {
		return "", "", err
	}
	now := time.Now()
	span := t.Open(&Span{Name: "doctor", Start: now})
	span.End(now, nil)
	t.Close()
	id := span.Context().TraceID
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.target, hex.EncodeToString(id[:]), t.queue.err
}
