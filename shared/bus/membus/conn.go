package membus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/internal/mailbox"
	"github.com/proofrack/proofrack/shared/fault"
)

// callTimeout bounds calls without a deadline that wait for the server.
const callTimeout = 5 * time.Second

// Bus is a connection to a Server.
type Bus struct {
	s       *Server
	events  bus.Events
	dropped atomic.Uint64
	ctx     context.Context
	cancel  context.CancelFunc

	mu     sync.Mutex
	ends   map[int]func()
	nextID int
}

// Connect makes a connection. It does not fail, nor does it need the server to be up.
func (s *Server) Connect(events bus.Events) *Bus {
	ctx, cancel := context.WithCancel(context.Background())
	return &Bus{s: s, events: events, ctx: ctx, cancel: cancel, ends: map[int]func(){}}
}

// enter waits until the server is up and takes its lock, which the caller must give back.
func (b *Bus) enter(ctx context.Context) error {
	wait, cancel := ctx, context.CancelFunc(func() {})
	if _, ok := ctx.Deadline(); !ok {
		wait, cancel = context.WithTimeout(ctx, callTimeout)
	}
	defer cancel()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		if b.ctx.Err() != nil {
			return errClosed
		}
		b.s.mu.Lock()
		if b.s.up {
			return nil
		}
		changed := b.s.changed
		b.s.mu.Unlock()
		if b.s.cfg.Clock != nil {
			return errAway
		}
		select {
		case <-changed:
		case <-b.ctx.Done():
		case <-wait.Done():
			if errors.Is(wait.Err(), context.DeadlineExceeded) {
				return errAway
			}
		}
	}
}

// do runs a call under the server's lock, if it is not spoiled.
func (b *Bus) do(ctx context.Context, kind Kind, what, subject string, call func() error) error {
	if err := b.enter(ctx); err != nil {
		return fmt.Errorf("%s %s: %w", what, subject, err)
	}
	defer b.s.mu.Unlock()
	verdict := b.s.judge(kind, subject)
	switch {
	case verdict.Err != nil:
		return fmt.Errorf("%s %s: %w", what, subject, verdict.Err)
	case verdict.Lose:
		return fmt.Errorf("%s %s: %w", what, subject, errLost)
	}
	if err := call(); err != nil {
		return fmt.Errorf("%s %s: %w", what, subject, err)
	}
	if verdict.LoseAnswer {
		return fmt.Errorf("%s %s: %w", what, subject, errLost)
	}
	return nil
}

// Setup makes streams and buckets, or changes their limits.
func (b *Bus) Setup(ctx context.Context, t bus.Topology) error {
	if err := t.Validate(); err != nil {
		return fmt.Errorf("set up streams: %w", err)
	}
	return b.do(ctx, Write, "set up", "streams", func() error {
		for _, cfg := range t.Streams {
			if have := b.s.streams[cfg.Name]; have != nil {
				if have.cfg.Retention != cfg.Retention {
					return fault.New(fault.Invalid, "stream %s: its retention cannot be changed", cfg.Name)
				}
				have.cfg = cfg
				continue
			}
			b.s.streams[cfg.Name] = &stream{cfg: cfg, ids: map[string]time.Time{}, consumers: map[string]*consumer{}}
		}
		for _, cfg := range t.Buckets {
			if have := b.s.buckets[cfg.Name]; have != nil {
				have.cfg = cfg
				continue
			}
			b.s.buckets[cfg.Name] = &bucket{cfg: cfg, entries: map[string]bus.Entry{}}
		}
		for _, cfg := range t.Objects {
			if have := b.s.objects[cfg.Name]; have != nil {
				have.cfg = cfg
				continue
			}
			b.s.objects[cfg.Name] = &objectBucket{cfg: cfg, objects: map[string]object{}}
		}
		b.s.broadcast()
		return nil
	})
}

func checkMessage(m bus.Message) error {
	if err := bus.CheckSubject(m.Subject, false); err != nil {
		return err
	}
	return bus.CheckHeader(m)
}

// Publish stores a message.
func (b *Bus) Publish(ctx context.Context, m bus.Message) (duplicate bool, err error) {
	if err := checkMessage(m); err != nil {
		return false, err
	}
	err = b.do(ctx, Publish, "publish to", m.Subject, func() error {
		st := b.s.streamOf(m.Subject)
		if st == nil {
			return fault.WithHint(fault.New(fault.Transient, "queue not set up"), bus.HintNotSetUp)
		}
		var err error
		duplicate, err = st.add(m, b.s.now())
		if err == nil && !duplicate {
			b.s.fanOut(m, Verdict{})
			b.s.broadcast()
		}
		return err
	})
	return duplicate && err == nil, err
}

// Send delivers a plain message to who listens now.
func (b *Bus) Send(ctx context.Context, m bus.Message) error {
	if err := checkPlain(m); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("send to %s: %w", m.Subject, err)
	}
	if b.ctx.Err() != nil {
		return fmt.Errorf("send to %s: %w", m.Subject, errClosed)
	}
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	if !b.s.up {
		return fmt.Errorf("send to %s: %w", m.Subject, errAway)
	}
	verdict := b.s.judge(Send, m.Subject)
	if verdict.Err != nil {
		return fmt.Errorf("send to %s: %w", m.Subject, verdict.Err)
	}
	b.s.fanOut(m, verdict)
	return nil
}

func checkPlain(m bus.Message) error {
	if m.ID != "" {
		return fault.New(fault.Invalid, "message to %s: plain messages have no id", m.Subject)
	}
	if len(m.Data) > messageBytesMax {
		return fault.New(fault.Invalid, "message to %s: %d bytes are too many", m.Subject, len(m.Data))
	}
	return checkMessage(m)
}

// subscription is one handler of plain messages.
type subscription struct {
	subject string
	put     func(bus.Message)
}

// fanOut gives a message to all who listen.
func (s *Server) fanOut(m bus.Message, v Verdict) {
	if v.Lose {
		return
	}
	times := 1
	if v.Twice {
		times = 2
	}
	for _, sub := range s.subs {
		if !bus.Match(sub.subject, m.Subject) {
			continue
		}
		for range times {
			copied := clone(m)
			switch {
			case s.cfg.Clock != nil:
				s.cfg.Clock.AfterFunc(v.Delay, func() { sub.put(copied) })
			case v.Delay > 0:
				time.AfterFunc(v.Delay, func() { sub.put(copied) })
			default:
				sub.put(copied)
			}
		}
	}
}

// Subscribe calls a handler with plain messages.
func (b *Bus) Subscribe(subject string, handle func(bus.Message)) (stop func(), err error) {
	if err := bus.CheckSubject(subject, true); err != nil {
		return nil, err
	}
	sub := &subscription{subject: subject}
	end := func() {}
	if b.s.cfg.Clock == nil {
		box := mailbox.New(mailbox.Limits{Messages: b.s.cfg.PendingMax, Bytes: b.s.cfg.PendingBytesMax}, handle,
			func(count uint64) {
				b.dropped.Add(count)
				if b.events.Dropped != nil {
					b.events.Dropped(subject, count)
				}
			})
		sub.put, end = box.Put, box.Stop
	} else {
		var stopped atomic.Bool
		sub.put = func(m bus.Message) {
			if !stopped.Load() {
				handle(m)
			}
		}
		end = func() { stopped.Store(true) }
	}
	b.s.mu.Lock()
	b.s.subs = append(b.s.subs, sub)
	b.s.mu.Unlock()
	return b.onClose(func() {
		b.s.mu.Lock()
		b.s.subs = slices.DeleteFunc(slices.Clone(b.s.subs), func(s *subscription) bool { return s == sub })
		b.s.mu.Unlock()
		end()
	}), nil
}

// onClose registers an end for Close and gives the function that ends it before.
func (b *Bus) onClose(end func()) (stop func()) {
	end = sync.OnceFunc(end)
	b.mu.Lock()
	defer b.mu.Unlock()
	id := b.nextID
	b.nextID++
	b.ends[id] = end
	return func() {
		b.mu.Lock()
		delete(b.ends, id)
		b.mu.Unlock()
		end()
	}
}

// Connected tells whether the server is up.
func (b *Bus) Connected() bool {
	b.s.mu.Lock()
	defer b.s.mu.Unlock()
	return b.s.up && b.ctx.Err() == nil
}

// Dropped counts plain messages dropped because handlers were slow.
func (b *Bus) Dropped() uint64 { return b.dropped.Load() }

// Close ends everything of this connection.
func (b *Bus) Close() {
	b.cancel()
	b.mu.Lock()
	ends := b.ends
	b.ends = map[int]func(){}
	b.mu.Unlock()
	for _, end := range ends {
		end()
	}
}
