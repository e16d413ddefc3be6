package natsbus

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

// queue is one durable consumer.
type queue struct {
	b   *Bus
	cfg bus.Consumer

	ackWait atomic.Int64 // the consumer's, in ns

	mu       sync.Mutex
	consumer jetstream.Consumer // nil when it must be asked for
}

// Queue gives a consumer's queue.
func (b *Bus) Queue(ctx context.Context, c bus.Consumer) (bus.Queue, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	if c.AckWait == 0 {
		c.AckWait = bus.AckWaitDefault
	}
	q := &queue{b: b, cfg: c}
	q.ackWait.Store(int64(c.AckWait))
	ctx, cancel, err := b.call(ctx)
	if err != nil {
		return nil, fmt.Errorf("open queue %s: %w", c.Name, err)
	}
	defer cancel()
	begun := time.Now()
	for n := 0; ; n++ {
		if _, err = q.open(ctx); err == nil {
			return q, nil
		}
		if fault.KindOf(err) != fault.Transient || time.Since(begun) > b.cfg.SetupWait || b.pause(ctx, n) != nil {
			return nil, err
		}
	}
}

// open makes the consumer if it is not there, and changes it if its settings differ.
func (q *queue) open(ctx context.Context) (jetstream.Consumer, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.consumer != nil {
		return q.consumer, nil
	}
	if q.cfg.Existing {
		return q.bind(ctx)
	}
	held := q.cfg.HeldMax
	if held == 0 {
		held = -1
	}
	// No server-side BackOff (it would shorten the ack wait) and no MaxDeliver: a message at its bound stays in the
	// stream where nobody sees it (field report B52); attempts are bounded by the record.
	c, err := q.b.js.CreateOrUpdateConsumer(ctx, q.cfg.Stream, jetstream.ConsumerConfig{
		Durable: q.cfg.Name, FilterSubject: q.cfg.Subject, AckPolicy: jetstream.AckExplicitPolicy,
		DeliverPolicy: jetstream.DeliverAllPolicy, AckWait: q.cfg.AckWait, MaxDeliver: -1, MaxAckPending: held,
	})
	if err != nil {
		return nil, q.openError(err)
	}
	q.consumer = c
	return c, nil
}

func (q *queue) openError(err error) error {
	if notSetUp(err) {
		q.b.wakeGuard()
		return fault.WithHint(fault.As(fault.Transient,
			fmt.Errorf("open queue %s: stream %s not set up: %w", q.cfg.Name, q.cfg.Stream, err)), bus.HintNotSetUp)
	}
	return q.b.wrap(unplaced(err), "open queue %s of stream %s", q.cfg.Name, q.cfg.Stream)
}

// bind finds the consumer that somebody else makes. The lock is held.
func (q *queue) bind(ctx context.Context) (jetstream.Consumer, error) {
	begun := time.Now()
	c, err := q.b.js.Consumer(ctx, q.cfg.Stream, q.cfg.Name)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound):
		return nil, fault.WithHint(fault.As(fault.NotFound, fmt.Errorf("open queue %s of stream %s: it is not made yet: %w",
			q.cfg.Name, q.cfg.Stream, err)), bus.HintNotMade)
	case err != nil && q.b.wasDenied("$JS.API.CONSUMER.INFO."+q.cfg.Stream+"."+q.cfg.Name, begun):
		return nil, fault.WithHint(fault.New(fault.Invalid, "open queue %s of stream %s: permission denied",
			q.cfg.Name, q.cfg.Stream), "the credential in use is not for this node or device")
	case err != nil:
		return nil, q.openError(err)
	}
	have := c.CachedInfo().Config
	if have.FilterSubject != q.cfg.Subject || have.AckWait <= 0 {
		return nil, fault.New(fault.Conflict, "open queue %s of stream %s: it is of %q with an ack wait of %s, not of %q",
			q.cfg.Name, q.cfg.Stream, have.FilterSubject, have.AckWait, q.cfg.Subject)
	}
	q.ackWait.Store(int64(have.AckWait))
	q.consumer = c
	return c, nil
}

// forget makes the next fetch ask for the consumer.
func (q *queue) forget(c jetstream.Consumer) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.consumer == c {
		q.consumer = nil
	}
}

// Fetch waits for a message. One is asked for at a time, so that none waits here while another worker is idle (B54).
func (q *queue) Fetch(ctx context.Context) (bus.Delivery, error) {
	for n := 0; ; n++ {
		d, err := q.fetchOnce(ctx)
		switch {
		case d != nil:
			return d, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("fetch from %s: %w", q.cfg.Name, ctx.Err())
		case q.b.ctx.Err() != nil:
			return nil, fmt.Errorf("fetch from %s: %w", q.cfg.Name, errClosed)
		case err == nil:
			n = -1 // nothing came in one wait
			continue
		case q.cfg.Fails(err):
			return nil, err
		}
		if n == 1 { // the first time may be a mere reconnect
			q.b.trouble(err)
		}
		_ = q.b.pause(ctx, n) // the loop looks at ctx
	}
}

// fetchOnce gives a message, or nothing when none came within one wait.
func (q *queue) fetchOnce(ctx context.Context) (bus.Delivery, error) {
	if err := q.b.waitUp(ctx); err != nil {
		return nil, err
	}
	_, turn := q.b.state()
	openCtx, cancel := context.WithTimeout(ctx, q.b.cfg.CallTimeout)
	c, err := q.open(openCtx)
	cancel()
	if err != nil {
		return nil, err
	}
	ackWait := time.Duration(q.ackWait.Load())
	wait := min(q.b.cfg.PullWait, ackWait/2)
	begun := time.Now()
	batch, err := c.Fetch(1, jetstream.FetchMaxWait(wait))
	if err != nil {
		q.forget(c)
		return nil, q.b.wrap(err, "fetch from %s", q.cfg.Name)
	}
	select {
	case msg := <-batch.Messages():
		if msg == nil {
			if err := batch.Error(); err != nil {
				q.forget(c)
				return nil, q.b.wrap(err, "fetch from %s", q.cfg.Name)
			}
			return nil, nil
		}
		if time.Since(begun) > ackWait {
			return nil, nil // this process stood still: the message may be another's by now
		}
		d := newDelivery(q.b, msg)
		if why := relayed("", msg.Headers()); why != "" {
			q.b.refused(msg.Subject(), why)
			return nil, d.Term(ctx, "refused: "+why)
		}
		return d, nil
	case <-turn:
		q.giveBack(batch)
		return nil, errTurned
	case <-ctx.Done():
		q.giveBack(batch)
		return nil, ctx.Err()
	case <-q.b.ctx.Done():
		q.giveBack(batch)
		return nil, errClosed
	}
}

// giveBack puts back a message that arrives after nobody waits for it any more, so that it need not wait for its timer.
func (q *queue) giveBack(batch jetstream.MessageBatch) {
	q.b.mu.Lock()
	defer q.b.mu.Unlock()
	if q.b.ctx.Err() != nil {
		return // the connection ends, and the server takes it back
	}
	q.b.tasks.Go(func() {
		select {
		case msg := <-batch.Messages():
			if msg != nil {
				_ = msg.Nak() // else its timer ends
			}
		case <-q.b.ctx.Done():
		}
	})
}

// State counts what is waiting and held.
func (q *queue) State(ctx context.Context) (bus.QueueState, error) {
	ctx, cancel, err := q.b.call(ctx)
	if err != nil {
		return bus.QueueState{}, fmt.Errorf("look at queue %s: %w", q.cfg.Name, err)
	}
	defer cancel()
	c, err := q.open(ctx)
	if err != nil {
		return bus.QueueState{}, err
	}
	info, err := c.Info(ctx)
	if err != nil {
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			q.forget(c)
			err = fault.As(fault.Transient, err)
		}
		return bus.QueueState{}, q.b.wrap(err, "look at queue %s", q.cfg.Name)
	}
	return bus.QueueState{
		Waiting: info.NumPending, Held: uint64(max(0, info.NumAckPending)), HeldMax: info.Config.MaxAckPending,
	}, nil
}

// delivery is a message in our hands.
type delivery struct {
	b     *Bus
	msg   jetstream.Msg
	count int
}

func newDelivery(b *Bus, msg jetstream.Msg) *delivery {
	d := &delivery{b: b, msg: msg, count: 1}
	if meta, err := msg.Metadata(); err == nil {
		d.count = int(min(meta.NumDelivered, 1<<30)) //nolint:gosec // bounded
	}
	return d
}

func (d *delivery) Message() bus.Message {
	return received(d.msg.Subject(), d.msg.Headers(), d.msg.Data())
}

func (d *delivery) Count() int { return d.count }

// tell sends a verdict and waits for the server's answer, so that nothing is taken for settled that is not. One that
// removes the message may be sent again when its answer was lost; others could meet the next holder's.
func (d *delivery) tell(ctx context.Context, what string, body []byte, again bool) error {
	ctx, cancel, err := d.b.call(ctx)
	if err != nil {
		return fmt.Errorf("%s message on %s: %w", what, d.msg.Subject(), err)
	}
	defer cancel()
	for n := 0; ; n++ {
		err = d.b.attempt(ctx, tryMax, func(ctx context.Context) error {
			_, err := d.b.conn.RequestWithContext(ctx, d.msg.Reply(), body)
			return err
		})
		if err == nil || !again || kindOf(err) != fault.Transient ||
			d.b.pause(ctx, n) != nil || d.b.waitUp(ctx) != nil {
			return d.b.wrap(err, "%s message on %s", what, d.msg.Subject())
		}
	}
}

func (d *delivery) Ack(ctx context.Context) error {
	return d.tell(ctx, "acknowledge", []byte("+ACK"), true)
}

func (d *delivery) Nak(ctx context.Context, delay time.Duration) error {
	body := []byte("-NAK")
	if delay > 0 {
		body = fmt.Appendf(nil, `-NAK {"delay": %d}`, delay.Nanoseconds())
	}
	return d.tell(ctx, "put back", body, false)
}

func (d *delivery) Term(ctx context.Context, reason string) error {
	return d.tell(ctx, "terminate", []byte("+TERM "+headerText(reason)), true)
}

func (d *delivery) InProgress(ctx context.Context) error {
	return d.tell(ctx, "prolong", []byte("+WPI"), false)
}
