package telemetry

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/proofrack/proofrack/shared/fault"
)

// Pace of a spanQueue.
const (
	batchMax      = 512
	sendEvery     = time.Second
	sendPauseMin  = 500 * time.Millisecond
	sendPauseMax  = 30 * time.Second
	sendTriesMax  = 20
	troubleEvery  = time.Minute
	sendWithinMax = 15 * time.Second
)

// spanQueue holds spans until a collector has them. It never makes the maker of a span wait: when it is full, spans are
// dropped and counted.
type spanQueue struct {
	exporter sdktrace.SpanExporter
	max      int
	target   *target
	log      zerolog.Logger
	life     context.Context //nolint:containedctx // ends calls of the collector when the queue is closed
	end      context.CancelFunc
	wake     chan struct{}
	closing  chan struct{}
	done     chan struct{}
	once     sync.Once

	mu       sync.Mutex
	waiting  []sdktrace.ReadOnlySpan
	inHand   int
	counts   TraceStats
	told     uint64    // drops that the log knows of
	quietTil time.Time // no line before
	troubled bool
	err      error // of the last call of the collector
}

func newSpanQueue(exporter sdktrace.SpanExporter, most int, at *target, log zerolog.Logger) *spanQueue {
	life, end := context.WithCancel(context.Background())
	q := &spanQueue{
		exporter: exporter, max: most, target: at, log: log, life: life, end: end,
		wake: make(chan struct{}, 1), closing: make(chan struct{}), done: make(chan struct{}),
	}
	go q.run()
	return q
}

// OnStart implements trace.SpanProcessor.
func (q *spanQueue) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd implements trace.SpanProcessor.
func (q *spanQueue) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	q.mu.Lock()
	full := len(q.waiting)+q.inHand >= q.max
	if full {
		q.counts.Dropped++
	} else {
		q.waiting = append(q.waiting, s)
	}
	many := len(q.waiting) >= batchMax
	q.mu.Unlock()
	if many {
		q.hurry()
	}
}

// Shutdown implements trace.SpanProcessor; close is what ends a queue.
func (q *spanQueue) Shutdown(context.Context) error { return nil }

// ForceFlush implements trace.SpanProcessor.
func (q *spanQueue) ForceFlush(context.Context) error {
	q.hurry()
	return nil
}

// hurry has what waits sent now.
func (q *spanQueue) hurry() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *spanQueue) stats() TraceStats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.counts
	s.Waiting = len(q.waiting) + q.inHand
	return s
}

// close sends what waits within a time and ends the queue; calling it again waits for the first call.
func (q *spanQueue) close(within time.Duration) {
	q.once.Do(func() {
		timer := time.AfterFunc(within, q.end)
		defer timer.Stop()
		close(q.closing)
		<-q.done
	})
	<-q.done
}

func (q *spanQueue) run() {
	defer close(q.done)
	ticker := time.NewTicker(sendEvery)
	defer ticker.Stop()
	for {
		select {
		case <-q.wake:
		case <-ticker.C:
		case <-q.closing:
			q.last()
			return
		}
		for q.sendOne() {
		}
	}
}

// take gives the next batch.
func (q *spanQueue) take() []sdktrace.ReadOnlySpan {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), batchMax)
	batch := q.waiting[:n:n]
	if q.waiting = q.waiting[n:]; len(q.waiting) == 0 {
		q.waiting = nil // a burst's memory goes
	}
	q.inHand = n
	return batch
}

// sendOne sends a batch, as often as it takes, and tells whether a full one waits behind it.
func (q *spanQueue) sendOne() (more bool) {
	batch := q.take()
	if len(batch) == 0 {
		q.tell(nil)
		return false
	}
	pause, err := sendPauseMin, error(nil)
	for try := 1; ; try++ {
		if err = q.export(batch); err == nil || try == sendTriesMax {
			break
		}
		q.tell(err)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-q.closing: // last comes by here
			timer.Stop()
			q.back(batch)
			return false
		}
		pause = min(2*pause, sendPauseMax)
	}
	q.settle(len(batch), err)
	q.tell(err)
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) >= batchMax
}

// back puts a batch in hand back where it was.
func (q *spanQueue) back(batch []sdktrace.ReadOnlySpan) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting, q.inHand = append(batch, q.waiting...), 0
}

// settle counts a batch in hand.
func (q *spanQueue) settle(count int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.inHand = 0
	if err != nil {
		q.counts.Dropped += uint64(count)
	} else {
		q.counts.Sent += uint64(count)
	}
}

// last sends everything that waits, once, and ends the client.
func (q *spanQueue) last() {
	defer q.end()
	err := error(nil)
	for err == nil {
		batch := q.take()
		if len(batch) == 0 {
			break
		}
		err = q.export(batch)
		q.settle(len(batch), err)
	}
	q.mu.Lock()
	q.counts.Dropped += uint64(len(q.waiting))
	q.waiting = nil
	lost, untold := q.counts.Dropped, q.counts.Dropped-q.told
	q.mu.Unlock()
	if untold > 0 {
		q.log.Warn().Err(err).Str("endpoint", q.target.url.String()).Uint64("lost", lost).Msg("spans were lost at the end")
	}
	ctx, cancel := context.WithTimeout(context.Background(), sendPauseMin)
	defer cancel()
	if err := q.exporter.Shutdown(ctx); err != nil {
		q.log.Debug().Err(err).Msg("client of the collector not closed well")
	}
}

// export makes one call of the collector.
func (q *spanQueue) export(batch []sdktrace.ReadOnlySpan) error {
	ctx, cancel := context.WithTimeout(q.life, sendWithinMax)
	defer cancel()
	err := q.exporter.ExportSpans(ctx, batch)
	if err != nil {
		err = q.target.explain(err)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err = err; err != nil {
		q.counts.Failures++
	}
	return err
}

// tell logs trouble, at most once in troubleEvery, and its end.
func (q *spanQueue) tell(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	dropped, now := q.counts.Dropped-q.told, time.Now()
	if err == nil && dropped == 0 {
		if q.troubled {
			q.troubled = false
			q.log.Info().Str("endpoint", q.target.url.String()).Msg("spans are sent again")
		}
		return
	}
	if q.troubled = q.troubled || err != nil; now.Before(q.quietTil) {
		return
	}
	q.quietTil, q.told = now.Add(troubleEvery), q.counts.Dropped
	q.log.Warn().Err(err).Str("endpoint", q.target.url.String()).Uint64("lost", q.counts.Dropped).
		Int("waiting", len(q.waiting)+q.inHand).Msg("spans are not sent")
}

// explain names the likely mistake behind an error of a collector (B96).
func (t *target) explain(err error) error {
	text := err.Error()
	switch {
	// A server of HTTP/2 speaks before it is asked: what it says is no answer, or comes before there is a question.
	case t.protocol == ProtocolHTTP && (strings.Contains(text, "malformed HTTP") || strings.Contains(text, "HTTP/2") ||
		strings.Contains(text, "readLoopPeekFail")):
		err = fmt.Errorf("%w: %s speaks gRPC, which is protocol %q here (its port is 4317 as a rule; 4318 is for HTTP)",
			err, t.url.Host, ProtocolGRPC)
	case t.protocol == ProtocolHTTP && (strings.Contains(text, "404") || strings.Contains(text, "405")):
		err = fmt.Errorf("%w: no collector takes traces at %s", err, t.url)
	case t.protocol == ProtocolGRPC && (strings.Contains(text, "server preface") || strings.Contains(text, "EOF") ||
		strings.Contains(text, "http2")):
		err = fmt.Errorf("%w: %s speaks HTTP, which is protocol %q here (its port is 4318 as a rule; 4317 is for gRPC)",
			err, t.url.Host, ProtocolHTTP)
	}
	return fault.As(fault.Transient, err)
}
