package natsbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nats.go/micro"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

// message turns a message into the library's form.
func message(m bus.Message, withID bool) (*nats.Msg, error) {
	if err := bus.CheckSubject(m.Subject, false); err != nil {
		return nil, err
	}
	if err := bus.CheckHeader(m); err != nil {
		return nil, err
	}
	out := &nats.Msg{Subject: m.Subject, Data: m.Data}
	if len(m.Header) > 0 || m.ID != "" {
		out.Header = nats.Header{}
	}
	for key, value := range m.Header {
		out.Header[key] = []string{value}
	}
	if m.ID != "" {
		if !withID {
			return nil, fault.New(fault.Invalid, "message to %s: plain messages have no id", m.Subject)
		}
		out.Header[jetstream.MsgIDHeader] = []string{m.ID}
	}
	return out, nil
}

// received turns a message of the library into ours, without the server's own headers.
func received(subject string, header nats.Header, data []byte) bus.Message {
	m := bus.Message{Subject: subject, Data: data, ID: header.Get(jetstream.MsgIDHeader)}
	for key, values := range header {
		if bus.ReservedHeader(key) || len(values) == 0 {
			continue
		}
		if m.Header == nil {
			m.Header = map[string]string{}
		}
		m.Header[key] = values[0]
	}
	return m
}

// Publish stores a message in the stream of its subject. With an ID it is sent again until it is answered or the
// context ends. Duplicate is not told when an earlier try of the same call went unanswered: it may have been that one.
func (b *Bus) Publish(ctx context.Context, m bus.Message) (duplicate bool, err error) {
	raw, err := message(m, true)
	if err != nil {
		return false, err
	}
	ack, unanswered, err := b.publish(ctx, raw, m.ID != "", b.cfg.SetupWait)
	if err != nil {
		return false, err
	}
	return ack.Duplicate && !unanswered, nil
}

// publish waits so long for a stream that nobody answers for: it is not made yet, or it elects its leader.
func (b *Bus) publish(
	ctx context.Context, raw *nats.Msg, again bool, wait time.Duration, opts ...jetstream.PublishOpt,
) (ack *jetstream.PubAck, unanswered bool, err error) {
	ctx, cancel, err := b.call(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("publish to %s: %w", raw.Subject, err)
	}
	defer cancel()
	begun := time.Now()
	opts = append(opts, jetstream.WithRetryAttempts(0))
	for n := 0; ; n++ {
		if ack, err = b.tryPublish(ctx, raw, again, opts); err == nil {
			return ack, unanswered, nil
		}
		missing := notSetUp(err)
		switch {
		case missing && time.Since(begun) < wait: // nothing was stored, so any message may be sent again
			b.wakeGuard()
		case missing:
			return nil, unanswered, fault.WithHint(fault.As(fault.Transient,
				fmt.Errorf("publish to %s: queue not set up: %w", raw.Subject, err)), bus.HintNotSetUp)
		case b.wasDenied(raw.Subject, begun):
			return nil, unanswered, fault.WithHint(fault.New(fault.Invalid, "publish to %s: permission denied", raw.Subject),
				"the credential in use is not for this node, tenant or role")
		case !again || kindOf(err) != fault.Transient:
			return nil, unanswered, b.wrap(err, "publish to %s", raw.Subject)
		default:
			unanswered = unanswered || !errors.Is(err, nats.ErrReconnectBufExceeded)
		}
		if b.pause(ctx, n) != nil || b.waitUp(ctx) != nil {
			return nil, unanswered, fault.WithHint(b.wrap(err, "publish to %s", raw.Subject),
				"the server is away, too slow, or cannot write its store: is its disk full?")
		}
	}
}

func (b *Bus) tryPublish(
	ctx context.Context, raw *nats.Msg, again bool, opts []jetstream.PublishOpt,
) (ack *jetstream.PubAck, err error) {
	limit := time.Duration(0)
	if again {
		limit = tryMax
	}
	err = b.attempt(ctx, limit, func(ctx context.Context) (err error) {
		ack, err = b.js.PublishMsg(ctx, raw, opts...)
		return err
	})
	return ack, err
}

// pause waits before the n-th repetition, from 0; its error is that of the context.
func (b *Bus) pause(ctx context.Context, n int) error {
	timer := time.NewTimer(jittered(20*time.Millisecond, b.cfg.ReconnectMax, n))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-b.ctx.Done():
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Send sends a plain message. While the server is away it fails at once.
func (b *Bus) Send(ctx context.Context, m bus.Message) error {
	raw, err := message(m, false)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("send to %s: %w", m.Subject, err)
	}
	if !b.Connected() {
		return fmt.Errorf("send to %s: %w", m.Subject, errAway)
	}
	return b.wrap(b.conn.PublishMsg(raw), "send to %s", m.Subject)
}

// Request sends a message and gives the answer.
func (b *Bus) Request(ctx context.Context, m bus.Message) (bus.Message, error) {
	raw, err := message(m, false)
	if err != nil {
		return bus.Message{}, err
	}
	ctx, cancel, err := b.call(ctx)
	if err != nil {
		return bus.Message{}, fmt.Errorf("ask %s: %w", m.Subject, err)
	}
	defer cancel()
	begun := time.Now()
	var answer *nats.Msg
	err = b.attempt(ctx, 0, func(ctx context.Context) (err error) {
		answer, err = b.conn.RequestMsgWithContext(ctx, raw)
		return err
	})
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return bus.Message{}, fault.WithHint(fault.New(fault.Transient, "ask %s: nobody answers there", m.Subject),
			"is a coordinator running?")
	case err != nil && b.wasDenied(m.Subject, begun):
		return bus.Message{}, fault.WithHint(fault.New(fault.Invalid, "ask %s: permission denied", m.Subject),
			"the credential in use is not for this tenant or role")
	case err != nil:
		return bus.Message{}, b.wrap(err, "ask %s", m.Subject)
	}
	if answer.Header.Get(micro.ErrorHeader) != "" {
		return bus.Message{}, refusal(answer)
	}
	return received(answer.Subject, answer.Header, answer.Data), nil
}

// refusal reads the error that a service answered with.
func refusal(answer *nats.Msg) error {
	var report fault.Report
	if err := json.Unmarshal(answer.Data, &report); err == nil && report.Kind.Valid() {
		return &report
	}
	return fault.New(fault.Internal, "%.200q (code %.20q)",
		answer.Header.Get(micro.ErrorHeader), answer.Header.Get(micro.ErrorCodeHeader))
}
