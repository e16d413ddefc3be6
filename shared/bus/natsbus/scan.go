package natsbus

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/fault"
)

var (
	errGap    = fault.New(fault.Transient, "messages were missed on the way")
	errTurned = fault.New(fault.Transient, "the connection was made anew")
	errBehind = fault.New(fault.Transient, "a server that is behind told what there is")
)

// A scan reads the newest message of each subject under a filter, then those that come. It uses a consumer of its own
// instead of the library's ordered one, which goes on silently when the stream was deleted and made again. Such a
// consumer is on any one server, which may be behind: see whole.
type scan struct {
	b       *Bus
	stream  string
	from    jetstream.Stream
	c       jetstream.Consumer
	iter    jetstream.MessagesContext
	turn    <-chan struct{}
	last    uint64            // the consumer's count of messages
	pending uint64            // messages that are there and did not come yet, as last heard
	missing map[string]uint64 // subjects that the leader had at the beginning, of which nothing came yet
}

// lookAgain is how long a scan waits for messages that should be there before it asks: they may have been removed.
const lookAgain = 250 * time.Millisecond

func (b *Bus) openScan(ctx context.Context, stream, filter string, headersOnly bool) (*scan, error) {
	from, ctx, cancel, err := b.stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	defer cancel()
	_, turn := b.state()
	info, err := b.leaderInfo(ctx, from, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, err
	}
	c, err := b.js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, AckPolicy: jetstream.AckNonePolicy, FilterSubject: filter,
		HeadersOnly: headersOnly, MemoryStorage: true, Replicas: 1, InactiveThreshold: 30 * time.Second,
	})
	if err != nil {
		return nil, unplaced(err)
	}
	s := &scan{
		b: b, stream: stream, from: from, c: c, turn: turn, pending: c.CachedInfo().NumPending, missing: info.State.Subjects,
	}
	beat := max(500*time.Millisecond, min(5*time.Second, b.cfg.PullWait))
	s.iter, err = c.Messages(jetstream.PullMaxMessagesWithBytesLimit(256, 8<<20), jetstream.PullExpiry(6*beat),
		jetstream.PullHeartbeat(beat), jetstream.WithMessagesErrOnMissingHeartbeat(true))
	if err != nil {
		return nil, err
	}
	return s, nil
}

// unplaced makes what servers say of a consumer of ours transient: that it is not there (its server knows it not yet,
// or not any more), or that too few servers are there to have it.
func unplaced(err error) error {
	var api *jetstream.APIError
	if errors.As(err, &api) &&
		(api.ErrorCode == jetstream.JSErrCodeConsumerNotFound || api.ErrorCode == codeInsufficient) {
		return fault.As(fault.Transient, err)
	}
	return err
}

// next gives a message, or an error after which a new scan must be made. While messages should be there, it gives
// nothing from time to time, so that the caller looks at pending again.
func (s *scan) next(ctx context.Context) (jetstream.Msg, *jetstream.MsgMetadata, error) {
	waitCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	if s.pending > 0 {
		var end context.CancelFunc
		waitCtx, end = context.WithTimeout(waitCtx, lookAgain)
		defer end()
	}
	over := make(chan struct{})
	defer close(over)
	go func() { // ends the wait when the connection turns
		select {
		case <-s.turn:
			cancel()
		case <-over:
		}
	}()
	msg, err := s.iter.Next(jetstream.NextContext(waitCtx))
	switch {
	case err != nil && turned(s.turn):
		return nil, nil, errTurned
	case err != nil && ctx.Err() == nil && s.pending > 0 && errors.Is(err, context.DeadlineExceeded):
		return nil, nil, s.ask(ctx)
	case err != nil:
		return nil, nil, unplaced(err)
	}
	meta, err := msg.Metadata()
	if err != nil {
		return nil, nil, err
	}
	if meta.Sequence.Consumer != s.last+1 {
		return nil, nil, errGap
	}
	s.last++
	delete(s.missing, msg.Subject())
	// What is written meanwhile counts too: the newest value of a key that was rewritten comes at the very end.
	s.pending = meta.NumPending
	return msg, meta, nil
}

// ask sets pending to what the server says, with what is on its way.
func (s *scan) ask(ctx context.Context) error {
	ctx, cancel, err := s.b.call(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	info, err := s.c.Info(ctx)
	if err != nil {
		return unplaced(err)
	}
	s.pending = info.NumPending + info.Delivered.Consumer - s.last
	return nil
}

// whole is asked when nothing is pending any more: it refuses what came when the leader has a key that did not come.
func (s *scan) whole(ctx context.Context) error {
	if len(s.missing) == 0 {
		return nil
	}
	ctx, cancel, err := s.b.call(ctx)
	if err != nil {
		return err
	}
	defer cancel()
	behind := false
	err = s.b.eachLast(ctx, s.from, slices.Collect(maps.Keys(s.missing)), func(m *jetstream.RawStreamMsg) {
		behind = behind || !deletion(m.Header)
	})
	s.missing = nil
	if err == nil && behind {
		err = errBehind
	}
	return err
}

func turned(turn <-chan struct{}) bool {
	select {
	case <-turn:
		return true
	default:
		return false
	}
}

// close ends a scan and takes its consumer away; when that fails, the server does it after a while.
func (s *scan) close() {
	s.iter.Stop()
	if !s.b.Connected() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = s.b.js.DeleteConsumer(ctx, s.stream, s.c.CachedInfo().Name)
}

// list reads what is there now, completely or with an error.
func (b *Bus) list(ctx context.Context, stream, filter string, headersOnly bool, each func(jetstream.Msg)) error {
	s, err := b.openScan(ctx, stream, filter, headersOnly)
	if err != nil {
		return err
	}
	defer s.close()
	for s.pending > 0 {
		msg, _, err := s.next(ctx)
		if err != nil {
			return err
		}
		if msg != nil {
			each(msg)
		}
	}
	return s.whole(ctx)
}
