package membus

import (
	"context"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

// Queue is one consumer's queue.
type Queue struct {
	b   *Bus
	cfg bus.Consumer
}

// Queue gives a consumer's queue, of the type *Queue.
func (b *Bus) Queue(ctx context.Context, c bus.Consumer) (bus.Queue, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("open queue: %w", err)
	}
	if c.AckWait == 0 {
		c.AckWait = bus.AckWaitDefault
	}
	q := &Queue{b: b, cfg: c}
	err := b.do(ctx, Read, "open queue", c.Name, func() error {
		_, _, err := q.open()
		return err
	})
	if err != nil {
		return nil, err
	}
	return q, nil
}

// open makes the consumer if it is not there. The server's lock is held.
func (q *Queue) open() (*stream, *consumer, error) {
	st := q.b.s.streams[q.cfg.Stream]
	if st == nil {
		return nil, nil, fault.WithHint(fault.New(fault.Transient, "stream %s not set up", q.cfg.Stream), bus.HintNotSetUp)
	}
	c := st.consumers[q.cfg.Name]
	switch {
	case c == nil && q.cfg.Existing:
		return nil, nil, fault.WithHint(fault.New(fault.NotFound, "queue %s of stream %s is not made yet",
			q.cfg.Name, q.cfg.Stream), bus.HintNotMade)
	case c != nil && q.cfg.Existing && c.cfg.Subject != q.cfg.Subject:
		return nil, nil, fault.New(fault.Conflict, "queue %s of stream %s is of %q, not of %q",
			q.cfg.Name, q.cfg.Stream, c.cfg.Subject, q.cfg.Subject)
	case c != nil && q.cfg.Existing:
		q.cfg.AckWait, q.cfg.HeldMax = c.cfg.AckWait, c.cfg.HeldMax
		return st, c, nil
	case c != nil:
		c.cfg = q.cfg
		return st, c, nil
	}
	for name, other := range st.consumers {
		if overlap(other.cfg.Subject, q.cfg.Subject) {
			return nil, nil, fault.New(fault.Invalid, "consumer %s would get messages of consumer %s", q.cfg.Name, name)
		}
	}
	c = &consumer{cfg: q.cfg, next: 1, held: map[uint64]*held{}}
	st.consumers[q.cfg.Name] = c
	return st, c, nil
}

// overlap tells whether some subject could match both patterns; it knows the cases that queues have.
func overlap(a, b string) bool { return bus.Match(a, b) || bus.Match(b, a) }

// Fetch waits for a message.
func (q *Queue) Fetch(ctx context.Context) (bus.Delivery, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("fetch from %s: %w", q.cfg.Name, err)
		}
		q.b.s.mu.Lock()
		changed := q.b.s.changed
		d, err := q.take()
		q.b.s.mu.Unlock()
		if d != nil || err != nil {
			return d, err
		}
		select {
		case <-changed:
		case <-q.b.ctx.Done():
			return nil, fmt.Errorf("fetch from %s: %w", q.cfg.Name, errClosed)
		case <-ctx.Done():
		}
	}
}

// TryFetch gives a message if one is due now.
func (q *Queue) TryFetch() (bus.Delivery, bool) {
	q.b.s.mu.Lock()
	defer q.b.s.mu.Unlock()
	d, err := q.take()
	return d, d != nil && err == nil
}

// take gives a message, or neither when none is due or the server or the stream is away.
func (q *Queue) take() (bus.Delivery, error) {
	if q.b.ctx.Err() != nil {
		return nil, fmt.Errorf("fetch from %s: %w", q.cfg.Name, errClosed)
	}
	if !q.b.s.up {
		return nil, nil
	}
	st, c, err := q.open()
	if err != nil {
		if q.cfg.Fails(err) {
			return nil, err
		}
		return nil, nil
	}
	m, count, ok := st.take(c, q.b.s.now())
	if !ok {
		return nil, nil
	}
	q.b.s.later(q.cfg.AckWait)
	return &delivery{q: q, m: m, count: count, holder: c.held[m.Sequence]}, nil
}

// State counts what is waiting and held.
func (q *Queue) State(ctx context.Context) (state bus.QueueState, err error) {
	err = q.b.do(ctx, Read, "look at queue", q.cfg.Name, func() error {
		st, c, err := q.open()
		if err != nil {
			return err
		}
		state = bus.QueueState{Waiting: st.waiting(c), Held: uint64(len(c.held)), HeldMax: q.cfg.HeldMax}
		if q.cfg.HeldMax == 0 {
			state.HeldMax = -1
		}
		return nil
	})
	return state, err
}

type delivery struct {
	q      *Queue
	m      bus.Stored
	count  int
	holder *held
}

func (d *delivery) Message() bus.Message { return clone(d.m.Message) }
func (d *delivery) Count() int           { return d.count }

// settle runs a verdict on the message. As on the real bus it is by place: a late one meets the next holder's, and one
// on a message that is gone changes nothing.
func (d *delivery) settle(ctx context.Context, what string, verdict func(st *stream, h *held)) error {
	return d.q.b.do(ctx, Settle, what, d.m.Subject, func() error {
		st := d.q.b.s.streams[d.q.cfg.Stream]
		if st == nil {
			return fault.New(fault.Transient, "stream %s is gone", d.q.cfg.Stream)
		}
		c := st.consumers[d.q.cfg.Name]
		if c == nil {
			return nil
		}
		if h := c.held[d.m.Sequence]; h != nil {
			verdict(st, h)
			d.q.b.s.broadcast()
		}
		return nil
	})
}

func (d *delivery) Ack(ctx context.Context) error {
	return d.settle(ctx, "acknowledge", func(st *stream, _ *held) { st.remove(d.m.Sequence) })
}

func (d *delivery) Term(ctx context.Context, _ string) error {
	return d.settle(ctx, "terminate", func(st *stream, _ *held) { st.remove(d.m.Sequence) })
}

func (d *delivery) Nak(ctx context.Context, delay time.Duration) error {
	return d.settle(ctx, "put back", func(_ *stream, h *held) {
		h.until = d.q.b.s.now().Add(delay)
		d.q.b.s.later(delay)
	})
}

func (d *delivery) InProgress(ctx context.Context) error {
	return d.settle(ctx, "prolong", func(_ *stream, h *held) {
		h.until = d.q.b.s.now().Add(d.q.cfg.AckWait)
		d.q.b.s.later(d.q.cfg.AckWait)
	})
}

// log reads a stream.
type log struct {
	b    *Bus
	name string
}

// Log gives a stream to read.
func (b *Bus) Log(ctx context.Context, stream string) (bus.Log, error) {
	if err := bus.CheckName("stream", stream); err != nil {
		return nil, err
	}
	l := &log{b, stream}
	if _, err := l.State(ctx); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *log) do(ctx context.Context, kind Kind, what string, call func(*stream) error) error {
	return l.b.do(ctx, kind, what, l.name, func() error {
		st := l.b.s.streams[l.name]
		if st == nil {
			return fault.New(fault.NotFound, "no such stream")
		}
		st.expire(l.b.s.now())
		return call(st)
	})
}

func (l *log) Next(ctx context.Context, subject string, from uint64) (out bus.Stored, err error) {
	if err := bus.CheckSubject(subject, true); err != nil {
		return out, err
	}
	err = l.do(ctx, Read, "read stream", func(st *stream) error {
		i, _ := st.find(from)
		for _, m := range st.messages[i:] {
			if bus.Match(subject, m.Subject) {
				out = m
				out.Message = clone(m.Message)
				return nil
			}
		}
		return fault.New(fault.NotFound, "no message from %d", from)
	})
	return out, err
}

func (l *log) Delete(ctx context.Context, sequence uint64) error {
	return l.do(ctx, Write, "delete from stream", func(st *stream) error {
		if !st.remove(sequence) {
			return fault.New(fault.NotFound, "no message %d", sequence)
		}
		return nil
	})
}

func (l *log) State(ctx context.Context) (state bus.LogState, err error) {
	err = l.do(ctx, Read, "look at stream", func(st *stream) error {
		state = bus.LogState{Messages: uint64(len(st.messages)), Bytes: st.bytes, First: st.last + 1, Last: st.last}
		if len(st.messages) > 0 {
			state.First = st.messages[0].Sequence
		}
		return nil
	})
	return state, err
}
