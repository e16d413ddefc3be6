package attempt

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/bus"
)

// Outbox sends what must not be lost: it tries until the stream has it, however long the bus is away. What is not
// sent yet is also kept in a folder, for the next process if this one ends first.
type Outbox struct {
	bus    bus.Bus
	config Config
	folder string // "" for none
	group  int    // that shares the folder; negative for none
	log    zerolog.Logger
	life   context.Context //nolint:containedctx // the end of the process, for letters that outlive their senders
	wg     sync.WaitGroup
	unsent atomic.Int64
}

// NewOutbox makes one whose attempts end with ctx. The folder, which is made when it is needed, may be "". It is the
// user's own, or a group's unless that is negative: then workers of several users send each other's results.
func NewOutbox(
	ctx context.Context, b bus.Bus, config Config, folder string, group int, log zerolog.Logger,
) *Outbox {
	return &Outbox{bus: b, config: config, folder: folder, group: group, log: log, life: ctx}
}

// Put takes a message and gives a channel that is closed when the stream has it and after has succeeded, or when the
// outbox has ended. A message without subject is none: only after is called, until it succeeds or afterMax is reached.
func (o *Outbox) Put(m bus.Message, after func(context.Context) error) <-chan struct{} {
	done := make(chan struct{})
	o.wg.Go(func() {
		defer close(done)
		if m.Subject != "" && o.publish(m) != nil {
			return
		}
		if after == nil {
			return
		}
		if err := o.retry(m.ID, afterMax, after); err != nil {
			o.log.Debug().Err(err).Str("message", m.ID).Msg("message was not acknowledged, it will come again")
		}
	})
	return done
}

// publish stores a message in its stream; until then a copy is in the folder.
func (o *Outbox) publish(m bus.Message) error {
	o.unsent.Add(1)
	defer o.unsent.Add(-1)
	o.keep(m)
	err := o.retry(m.ID, o.forEver, func(ctx context.Context) error {
		_, err := o.bus.Publish(ctx, m)
		return err
	})
	if err == nil {
		o.forget(m.ID)
	}
	return err
}

// afterMax bounds how often an acknowledgement is tried: what is not acknowledged comes again and is known then.
func afterMax(tries int) bool { return tries < 8 }

func (*Outbox) forEver(int) bool { return true }

// tryMax bounds one try.
const tryMax = 10 * time.Second

// retry calls do until it succeeds, again says no more, or the outbox ends. Pauses double; they end when the bus is
// back.
func (o *Outbox) retry(id string, again func(tries int) bool, do func(context.Context) error) error {
	pause := o.config.RetryMin
	for tries := 1; ; tries++ {
		ctx, cancel := context.WithTimeout(o.life, tryMax)
		err := do(ctx)
		cancel()
		if err == nil || !again(tries) {
			return err
		}
		if tries == 1 {
			o.log.Warn().Err(err).Str("message", id).Msg("message is kept and sent later")
		}
		if pause, err = rest(o.life, o.bus, &o.config, pause); err != nil {
			return err
		}
	}
}

// Unsent is how many letters the stream does not have yet.
func (o *Outbox) Unsent() int { return int(o.unsent.Load()) }

// Wait returns when all letters are sent or have been given up.
func (o *Outbox) Wait() { o.wg.Wait() }
