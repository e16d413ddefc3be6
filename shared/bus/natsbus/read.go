package natsbus

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/fault"
)

// In a cluster what is stored is only read from the leader of its stream: others may be behind, by a moment or by all
// that was written while they were away. Single messages are, since streams of several replicas allow no direct reads;
// a list of subjects must be looked at (see ofLeader). While a stream has no leader a read waits for the next one.

// electionMax is longer than a stream is without a leader when a server was lost: it is missed after 4 to 9 s. Streams
// that are known to be there are waited for as long, if the caller does.
const electionMax = 15 * time.Second

// errNoLeader is what a server says that is not the leader, or knows none.
var errNoLeader = fault.New(fault.Transient, "the stream has no leader now")

// answered runs a request that may be made again until it is answered or the context ends: an election takes seconds,
// and what was asked while it lasts is lost or refused.
func (b *Bus) answered(ctx context.Context, request func(context.Context) error) error {
	for n := 0; ; n++ {
		err := b.attempt(ctx, tryMax, request)
		if kindOf(err) != fault.Transient || b.pause(ctx, n) != nil || b.waitUp(ctx) != nil {
			return err
		}
	}
}

// absentLooks is how often a stream of a cluster is looked for that is not there.
const absentLooks = 4

// found is answered for a request that opens a stream. A server of a cluster that was started a moment ago, and was to
// lead a stream, says that there is none until it has read it; its leader, asked by the same request, is mostly faster.
func (b *Bus) found(ctx context.Context, open func(context.Context) error) error {
	looks := 0
	return b.answered(ctx, func(ctx context.Context) error {
		err := open(ctx)
		if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrBucketNotFound) {
			if looks++; looks < absentLooks && b.conn.ConnectedClusterName() != "" {
				return fault.As(fault.Transient, err)
			}
		}
		return err
	})
}

// ofLeader refuses what another server than the stream's leader told. One that was started anew and was to be leader
// answers for ten seconds, with what it had when it ended, and so do all that see no leader.
func ofLeader(c *jetstream.ClusterInfo) error {
	if c == nil { // no cluster
		return nil
	}
	if c.Leader == "" || slices.ContainsFunc(c.Replicas, func(p *jetstream.PeerInfo) bool { return p.Name == c.Leader }) {
		return errNoLeader // replicas are the others
	}
	return nil
}

// leaderInfo asks about a stream.
func (b *Bus) leaderInfo(
	ctx context.Context, s jetstream.Stream, opts ...jetstream.StreamInfoOpt,
) (info *jetstream.StreamInfo, err error) {
	err = b.answered(ctx, func(ctx context.Context) (err error) {
		if info, err = s.Info(ctx, opts...); err == nil {
			err = ofLeader(info.Cluster)
		}
		return err
	})
	return info, err
}

// last reads the last message of a subject.
func (b *Bus) last(ctx context.Context, s jetstream.Stream, subject string) (msg *jetstream.RawStreamMsg, err error) {
	err = b.answered(ctx, func(ctx context.Context) (err error) {
		msg, err = s.GetLastMsgForSubject(ctx, subject)
		return err
	})
	return msg, err
}

// purge removes messages; what is gone may be removed again.
func (b *Bus) purge(ctx context.Context, s jetstream.Stream, opts ...jetstream.StreamPurgeOpt) error {
	return b.answered(ctx, func(ctx context.Context) error { return s.Purge(ctx, opts...) })
}

// manyCalls is how many times the call timeout an operation of many calls has, if its caller gives no bound.
const manyCalls = 6

// many bounds the context of such an operation.
func (b *Bus) many(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, manyCalls*b.cfg.CallTimeout)
}

// readsMax is how many reads of one listing wait for answers at once.
const readsMax = 16

// eachLast reads the last message of each subject, several at once, and gives them one at a time, in any order. What is
// gone meanwhile is left out.
func (b *Bus) eachLast(
	ctx context.Context, s jetstream.Stream, subjects []string, see func(*jetstream.RawStreamMsg),
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)
	next := make(chan string)
	for range min(readsMax, len(subjects)) {
		wg.Go(func() {
			for subject := range next {
				msg, err := b.last(ctx, s, subject)
				switch {
				case err == nil:
					mu.Lock()
					see(msg)
					mu.Unlock()
				case !errors.Is(err, jetstream.ErrMsgNotFound):
					cancel(err)
				}
			}
		})
	}
	for _, subject := range subjects {
		select {
		case next <- subject:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(next)
	wg.Wait()
	return context.Cause(ctx)
}
