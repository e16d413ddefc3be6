package natsbus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/bus"
)

type log struct {
	b    *Bus
	name string
}

// Log gives a stream to read.
func (b *Bus) Log(ctx context.Context, stream string) (bus.Log, error) {
	if err := bus.CheckName("stream", stream); err != nil {
		return nil, err
	}
	l := &log{b: b, name: stream}
	if _, err := l.State(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

// stream asks anew each time: whoever deleted and made it again may have changed it.
func (b *Bus) stream(ctx context.Context, name string) (jetstream.Stream, context.Context, context.CancelFunc, error) {
	ctx, cancel, err := b.call(ctx)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("open stream %s: %w", name, err)
	}
	var s jetstream.Stream
	err = b.found(ctx, func(ctx context.Context) (err error) {
		s, err = b.js.Stream(ctx, name)
		return err
	})
	if err != nil {
		cancel()
		return nil, nil, nil, b.wrap(err, "open stream %s", name)
	}
	return s, ctx, cancel, nil
}

func (l *log) Next(ctx context.Context, subject string, from uint64) (bus.Stored, error) {
	if err := bus.CheckSubject(subject, true); err != nil {
		return bus.Stored{}, err
	}
	s, ctx, cancel, err := l.b.stream(ctx, l.name)
	if err != nil {
		return bus.Stored{}, err
	}
	defer cancel()
	var raw *jetstream.RawStreamMsg
	err = l.b.answered(ctx, func(ctx context.Context) (err error) {
		raw, err = s.GetMsg(ctx, max(1, from), jetstream.WithGetMsgSubject(subject))
		return err
	})
	if err != nil {
		return bus.Stored{}, l.b.wrap(err, "read stream %s from %d", l.name, from)
	}
	return bus.Stored{
		Message: received(raw.Subject, raw.Header, raw.Data), Sequence: raw.Sequence, At: raw.Time,
	}, nil
}

func (l *log) Delete(ctx context.Context, sequence uint64) error {
	s, ctx, cancel, err := l.b.stream(ctx, l.name)
	if err != nil {
		return err
	}
	defer cancel()
	err = s.DeleteMsg(ctx, sequence)
	if err != nil {
		if _, getErr := s.GetMsg(ctx, sequence); errors.Is(getErr, jetstream.ErrMsgNotFound) {
			err = getErr // the server's own word for this has no code
		}
	}
	return l.b.wrap(err, "delete %d from stream %s", sequence, l.name)
}

func (l *log) State(ctx context.Context) (bus.LogState, error) {
	s, ctx, cancel, err := l.b.stream(ctx, l.name)
	if err != nil {
		return bus.LogState{}, err
	}
	defer cancel()
	info, err := l.b.leaderInfo(ctx, s)
	if err != nil {
		return bus.LogState{}, l.b.wrap(err, "look at stream %s", l.name)
	}
	state := info.State
	return bus.LogState{Messages: state.Msgs, Bytes: state.Bytes, First: state.FirstSeq, Last: state.LastSeq}, nil
}
