package telemetry

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Carrier takes trace contexts out of messages and logs broken ones once in a while. It is safe for concurrent use.
type Carrier struct {
	log   zerolog.Logger
	every time.Duration

	mu     sync.Mutex
	next   time.Time // when the next broken one may be logged
	broken int       // since the last line
}

// NewCarrier makes a Carrier that logs at most one line in the given time.
func NewCarrier(log zerolog.Logger, every time.Duration) *Carrier {
	return &Carrier{log: log, every: every}
}

// Extract is ExtractTrace, with a broken header logged instead of returned.
func (c *Carrier) Extract(header map[string]string, body string) TraceContext {
	trace := c.Find(header, body)
	if !trace.Valid() {
		trace = NewTrace()
	}
	return trace
}

// Find is FindTrace, with a broken header logged instead of returned.
func (c *Carrier) Find(header map[string]string, body string) TraceContext {
	trace, err := FindTrace(header, body)
	if err == nil {
		return trace
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.broken++
	if now := time.Now(); !now.Before(c.next) {
		c.log.Warn().Err(err).Int("broken", c.broken).Str("trace", trace.String()).Msg("broken trace context replaced")
		c.next, c.broken = now.Add(c.every), 0
	}
	return trace
}
