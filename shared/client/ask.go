package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/wire"
)

type reply interface {
	wire.Body
	Err() error
}

// ask makes a request, and makes it again while the rack is away.
func (c *Client) ask(ctx context.Context, verb string, body wire.Body, answer reply) error {
	return Ask(ctx, c.bus, wire.ClientSubject(verb, c.tenant), body, answer, c.pause)
}

// answerWithin is how long the first answer may take before the request is made again; each time it may take twice as
// long. A coordinator that was killed with a request in its hands never answers it, and nobody says so.
const answerWithin = 5 * time.Second

// Ask makes a request of the rack, and makes it again after a pause while nobody answers, until ctx ends; its error is
// fault.Transient then and says what the matter was, or fault.Cancelled when somebody ended ctx. Requests are
// idempotent, so one that was heard may be made again. The error of an answer is returned as it is, also when it is
// transient: who asks decides.
func Ask(
	ctx context.Context, b bus.Bus, subject string, body wire.Body, answer interface {
		wire.Body
		Err() error
	}, pause time.Duration,
) error {
	return (&asking{bus: b, subject: subject, pause: pause}).ask(ctx, body, answer)
}

// asking is one request, which may take several tries.
type asking struct {
	bus     bus.Bus
	subject string
	pause   time.Duration
	absence time.Duration // how long nobody may be there; 0 is as long as the context
	header  map[string]string

	nobody bool // when it failed: nobody was there, but the server was
}

func (a *asking) ask(ctx context.Context, body wire.Body, answer reply) error {
	data, err := wire.Encode(body)
	if err != nil {
		return err
	}
	begun := time.Now()
	absent, absentSince := error(nil), begun
	for limit := answerWithin; ; {
		tried := time.Now()
		tryCtx, cancel := context.WithTimeout(ctx, limit)
		message, err := a.bus.Request(tryCtx, bus.Message{Subject: a.subject, Header: a.header, Data: data})
		cancel()
		silent := errors.Is(err, context.DeadlineExceeded)
		switch {
		case err == nil:
			if err := wire.Decode(message.Data, answer); err != nil {
				return fmt.Errorf("read answer of %s: %w", a.subject, err)
			}
			return answer.Err()
		case errors.Is(ctx.Err(), context.Canceled):
			return interrupted(ctx, "ask "+a.subject)
		case fault.KindOf(err) != fault.Transient:
			return err
		case !silent:
			if absent == nil {
				absentSince = tried
			}
			absent = err
		case ctx.Err() == nil || time.Since(tried) > 2*a.pause:
			absent, limit = nil, 2*limit // somebody may work on it; a try that the context cut short says nothing
		}
		wait := a.absence
		if absent == nil {
			wait = 0
		}
		if pause(ctx, a.pause, wait, absentSince) == nil {
			continue
		}
		switch {
		case errors.Is(ctx.Err(), context.Canceled):
			return interrupted(ctx, "ask "+a.subject)
		case absent != nil:
			a.nobody = a.bus.Connected()
			return absent
		}
		took := time.Since(begun).Round(time.Second / 10)
		return &silence{fmt.Sprintf("ask %s: no answer within %s", a.subject, took)}
	}
}

// silence is that nobody said anything until the time was over.
type silence struct{ text string }

func (s *silence) Error() string         { return s.text }
func (s *silence) Unwrap() error         { return context.DeadlineExceeded }
func (s *silence) FaultKind() fault.Kind { return fault.Transient }

// interrupted is that somebody ended a context.
func interrupted(ctx context.Context, what string) error {
	return fault.As(fault.Cancelled, fmt.Errorf("%s: %w", what, ctx.Err()))
}

// notSetUp says of an error that the rack is not there yet.
func notSetUp(err error) error {
	return fault.WithHint(fault.As(fault.Transient, fmt.Errorf("queue not set up: %w", err)), bus.HintNotSetUp)
}

// errOver is that a wait has lasted its time.
var errOver = fault.New(fault.Transient, "nobody is there")

// pause waits a moment. It fails when the context ends, or a wait with a bound (0 is none) would last longer than that.
func pause(ctx context.Context, moment, bound time.Duration, since time.Time) error {
	if left := bound - time.Since(since); bound > 0 && left <= 0 {
		return errOver
	} else if bound > 0 {
		moment = min(moment, left)
	}
	timer := time.NewTimer(moment)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
