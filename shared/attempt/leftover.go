package attempt

import (
	"context"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// lookEvery is the longest time between two looks for what dead workers left.
const lookEvery = time.Second

// takeUp goes on with what dead workers of the node left, at the start and whenever another one dies, until fetching
// ends. It takes slots like fetched tasks do and waits for the source's gate, but not for the worker's: that keeps new
// work away, and this is begun.
func (l *loop) takeUp(ctx, fetching context.Context) {
	ticker := time.NewTicker(max(time.Millisecond, min(lookEvery, l.Config.Heartbeat)))
	defer ticker.Stop()
	for {
		if l.source.Gate != nil {
			select {
			case <-l.source.Gate.Opened():
			case <-fetching.Done():
				return
			}
		}
		tasks, err := l.source.Left(fetching)
		if err != nil && fetching.Err() == nil {
			l.Log.Warn().Err(err).Msg("cannot look for what dead workers left")
		}
		for _, task := range tasks {
			if l.Board.knows(task.Attempt()) {
				continue
			}
			select {
			case l.slots <- struct{}{}:
			case <-fetching.Done():
				return
			}
			l.Log.Info().Stringer("attempt", task.Attempt()).EmbedObject(telemetry.InTrace(task.TraceParent())).
				Msg("going on with what a dead worker left")
			l.wg.Go(func() {
				defer func() { <-l.slots }()
				l.run(ctx, task, noDelivery{})
			})
		}
		select {
		case <-fetching.Done():
			return
		case <-ticker.C:
		}
	}
}

// knows tells whether an attempt is worked on or has ended here.
func (b *Board) knows(a job.Attempt) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.running[a] != nil || b.settled[a]
}

// noDelivery stands for a message that is on its way: the dead worker has not acknowledged it, so it comes again.
type noDelivery struct{}

func (noDelivery) Message() bus.Message                     { return bus.Message{} }
func (noDelivery) Count() int                               { return 0 }
func (noDelivery) Ack(context.Context) error                { return nil }
func (noDelivery) Nak(context.Context, time.Duration) error { return nil }
func (noDelivery) Term(context.Context, string) error       { return nil }
func (noDelivery) InProgress(context.Context) error         { return nil }
