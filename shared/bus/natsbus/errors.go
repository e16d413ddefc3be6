package natsbus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/fault"
)

// Codes of the server that the client library has no name for.
const (
	codeNoPeers           = 10005 // too few servers of the cluster are there to place it
	codeSystemUnavailable = 10008
	codeInsufficient      = 10023
	codeStreamsMax        = 10027
	codeMemoryExceeded    = 10028
	codeStorageExceeded   = 10047
	codeStreamLimits      = 10053
	codeStoreFailed       = 10077
	codeStreamBytesMax    = 10122
	codeTooManyRequests   = 10167
)

// kindOf sorts errors of the library and the server.
func kindOf(err error) fault.Kind {
	var classified fault.Classified
	var api *jetstream.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &classified):
		return classified.FaultKind()
	case errors.Is(err, context.Canceled), errors.Is(err, nats.ErrConnectionClosed),
		errors.Is(err, nats.ErrConnectionDraining):
		return fault.Cancelled
	case errors.Is(err, jetstream.ErrKeyNotFound), errors.Is(err, jetstream.ErrMsgNotFound),
		errors.Is(err, jetstream.ErrBucketNotFound), errors.Is(err, jetstream.ErrObjectNotFound):
		return fault.NotFound
	case errors.Is(err, jetstream.ErrKeyExists):
		return fault.Conflict
	case errors.Is(err, nats.ErrMaxPayload), errors.Is(err, nats.ErrBadSubject),
		errors.Is(err, jetstream.ErrInvalidKey), errors.Is(err, nats.ErrPermissionViolation):
		return fault.Invalid
	case errors.As(err, &api):
		return kindOfCode(api)
	case transientText(err):
		return fault.Transient
	}
	return fault.Internal
}

func kindOfCode(api *jetstream.APIError) fault.Kind {
	switch api.ErrorCode {
	case jetstream.JSErrCodeStreamWrongLastSequence, jetstream.JSErrCodeStreamWrongLastSequenceConstant:
		return fault.Conflict
	case jetstream.JSErrCodeStreamNotFound, jetstream.JSErrCodeConsumerNotFound, jetstream.JSErrCodeMessageNotFound:
		return fault.NotFound
	case codeInsufficient, codeMemoryExceeded, codeStorageExceeded, codeStoreFailed, codeStreamBytesMax, codeStreamsMax,
		codeStreamLimits:
		return fault.Exhausted
	case codeNoPeers, codeSystemUnavailable, codeTooManyRequests, jetstream.JSErrCodeJetStreamNotEnabled,
		jetstream.JSErrCodeJetStreamNotEnabledForAccount:
		return fault.Transient
	}
	switch {
	case api.Code == 503 || api.Code == 408 || api.Code == 409 || api.Code == 429:
		// Not now: unavailable, too late, in process (the same message id while a new leader of the stream catches up), too
		// many at once.
		return fault.Transient
	case api.Code >= 400 && api.Code < 500:
		return fault.Invalid
	}
	return fault.Internal
}

// transientText tells errors that another try may not meet.
func transientText(err error) bool {
	for _, known := range []error{
		context.DeadlineExceeded, nats.ErrTimeout, nats.ErrNoResponders, nats.ErrReconnectBufExceeded, nats.ErrDisconnected,
		nats.ErrStaleConnection, nats.ErrConnectionReconnecting, nats.ErrNoServers, jetstream.ErrNoStreamResponse,
		jetstream.ErrNoHeartbeat, jetstream.ErrConsumerDeleted, jetstream.ErrConsumerLeadershipChanged,
		jetstream.ErrServerShutdown, jetstream.ErrMsgIteratorClosed, jetstream.ErrInvalidJSAck, errGap, errTurned,
	} {
		if errors.Is(err, known) {
			return true
		}
	}
	return strings.Contains(err.Error(), "Server Shutdown")
}

// notSetUp tells that no stream answers: it is missing, or JetStream is not ready.
func notSetUp(err error) bool {
	return errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrNoStreamResponse) ||
		errors.Is(err, jetstream.ErrStreamNotFound)
}

const hintFull = "the queue or the server's store is full: try again later"

// wrap names what was done and gives the error its kind.
func (b *Bus) wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	what := fmt.Sprintf(format, args...)
	select {
	case <-b.ctx.Done():
		return fmt.Errorf("%s: %w", what, errClosed)
	default:
	}
	kind := kindOf(err)
	out := fault.As(kind, fmt.Errorf("%s: %w", what, err))
	if kind == fault.Exhausted {
		return fault.WithHint(out, hintFull)
	}
	return out
}

// tryMax is the longest wait for one answer to what can be asked again.
const tryMax = 2 * time.Second

// attempt runs one request and gives it up when the connection turns, since its answer is then lost: the library would
// wait for it until the context ends. A limit of 0 is none.
func (b *Bus) attempt(ctx context.Context, limit time.Duration, request func(context.Context) error) error {
	_, turn := b.state()
	tryCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	if limit > 0 {
		var end context.CancelFunc
		tryCtx, end = context.WithTimeout(tryCtx, limit)
		defer end()
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-turn:
			cancel()
		case <-b.ctx.Done():
			cancel()
		case <-over:
		}
	}()
	err := request(tryCtx)
	if err != nil && ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return errTurned
	}
	return err
}

// call bounds a context, and waits for the connection.
func (b *Bus) call(ctx context.Context) (context.Context, context.CancelFunc, error) {
	cancel := context.CancelFunc(func() {})
	if _, ok := ctx.Deadline(); !ok {
		ctx, cancel = context.WithTimeout(ctx, b.cfg.CallTimeout)
	}
	if err := b.waitUp(ctx); err != nil {
		cancel()
		return nil, nil, err
	}
	return ctx, cancel, nil
}
