package sim_test

import (
	"context"
	"io"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/wire"
)

// link is a connection to the bus over a line.
type link struct {
	*line
	*membus.Bus
}

func (w *world) link(name string) *link {
	l := &link{line: w.line("link " + name), Bus: w.server.Connect(bus.Events{})}
	l.spoil(w.badness())
	return l
}

// end closes the connection as the death of its process does.
func (l *link) end() {
	l.kill()
	l.Bus.Close()
}

func (l *link) Close()          { l.end() }
func (l *link) Connected() bool { return l.isUp() && l.Bus.Connected() }

func (l *link) Publish(ctx context.Context, m bus.Message) (duplicate bool, err error) {
	return answer(ctx, l.line, func(ctx context.Context) (bool, error) {
		duplicate, err := l.Bus.Publish(ctx, m)
		if err == nil && l.dice.chance(l.state().twice) {
			l.counts.fault("publications twice")
			duplicate, err = l.Bus.Publish(ctx, m)
		}
		return duplicate, err
	})
}

// answer calls and keeps the answer apart from one that a late call has yet to give.
func answer[T any](ctx context.Context, l caller, do func(context.Context) (T, error)) (T, error) {
	out := make(chan T, 2)
	err := l.call(ctx, func(ctx context.Context) error {
		value, err := do(ctx)
		if err == nil {
			out <- value
		}
		return err
	})
	if err != nil {
		var none T
		return none, err
	}
	return <-out, nil
}

// Send loses messages, or brings them twice or late, without a word.
func (l *link) Send(ctx context.Context, m bus.Message) error {
	l.hold()
	if l.isDead() {
		return errKilled
	}
	bad := l.state()
	if !l.isUp() {
		return nil
	}
	if l.dice.chance(2 * bad.lose) {
		l.counts.fault("messages lost")
		return nil
	}
	times := 1
	if l.dice.chance(bad.twice) {
		l.counts.fault("messages twice")
		times = 2
	}
	for range times {
		delay := l.dice.between(time.Millisecond, 20*time.Millisecond)
		if l.dice.chance(2 * bad.late) {
			l.counts.fault("messages late")
			delay = l.dice.between(time.Second, lateMax)
		}
		go func() { // on its way: it is not stopped with who sent it
			time.Sleep(delay)
			_ = l.Bus.Send(context.WithoutCancel(ctx), m)
		}()
	}
	return nil
}

// Subscribe hears nothing while the line is cut.
func (l *link) Subscribe(subject string, handle func(bus.Message)) (func(), error) {
	return l.hear(subject, func(m bus.Message) {
		l.counts.step(stepMessage)
		handle(m)
	})
}

// hear is Subscribe whose messages are no steps by themselves.
func (l *link) hear(subject string, handle func(bus.Message)) (func(), error) {
	return l.Bus.Subscribe(subject, func(m bus.Message) {
		l.hold()
		if l.isUp() {
			handle(m)
		}
	})
}

func (l *link) Queue(ctx context.Context, c bus.Consumer) (bus.Queue, error) {
	q, err := answer(ctx, l.line, func(ctx context.Context) (bus.Queue, error) { return l.Bus.Queue(ctx, c) })
	if err != nil {
		return nil, err
	}
	return &queue{q, l}, nil
}

type queue struct {
	bus.Queue
	l *link
}

func (q *queue) Fetch(ctx context.Context) (bus.Delivery, error) {
	for {
		if err := q.l.wait(ctx); err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, err
		}
		d, err := q.Queue.Fetch(ctx)
		if err != nil {
			return nil, err
		}
		q.l.hold()
		if q.l.isUp() && !q.l.dice.chance(q.l.state().lose) {
			q.l.counts.step(stepDelivery)
			return &delivery{d, q.l}, nil
		}
		q.l.counts.fault("deliveries lost")
		// Lost on the way: it comes again when its ack wait is over.
	}
}

type delivery struct {
	bus.Delivery
	l *link
}

func (d *delivery) Ack(ctx context.Context) error { return d.l.call(ctx, d.Delivery.Ack) }
func (d *delivery) Nak(ctx context.Context, delay time.Duration) error {
	return d.l.call(ctx, func(ctx context.Context) error { return d.Delivery.Nak(ctx, delay) })
}
func (d *delivery) Term(ctx context.Context, reason string) error {
	return d.l.call(ctx, func(ctx context.Context) error { return d.Delivery.Term(ctx, reason) })
}
func (d *delivery) InProgress(ctx context.Context) error { return d.l.call(ctx, d.Delivery.InProgress) }

func (l *link) Log(ctx context.Context, stream string) (bus.Log, error) {
	return answer(ctx, l.line, func(ctx context.Context) (bus.Log, error) { return l.Bus.Log(ctx, stream) })
}

func (l *link) KV(ctx context.Context, bucket string) (bus.KV, error) {
	inner, err := answer(ctx, l.line, func(ctx context.Context) (bus.KV, error) { return l.Bus.KV(ctx, bucket) })
	r := &records{inner, l, l.line}
	if bucket == wire.BucketLead {
		r.by = idle{l.line}
	}
	return r, err
}

// records is a bucket behind a line.
type records struct {
	bus.KV
	l  *link
	by caller
}

func (k *records) Get(ctx context.Context, key string) (bus.Entry, error) {
	return answer(ctx, k.by, func(ctx context.Context) (bus.Entry, error) { return k.KV.Get(ctx, key) })
}

func (k *records) Create(ctx context.Context, key string, value []byte) (uint64, error) {
	return answer(ctx, k.by, func(ctx context.Context) (uint64, error) { return k.KV.Create(ctx, key, value) })
}

func (k *records) Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error) {
	return answer(ctx, k.by, func(ctx context.Context) (uint64, error) {
		return k.KV.Update(ctx, key, value, revision)
	})
}

func (k *records) Delete(ctx context.Context, key string, revision uint64) error {
	return k.by.call(ctx, func(ctx context.Context) error { return k.KV.Delete(ctx, key, revision) })
}

func (k *records) Keys(ctx context.Context, prefix string) ([]string, error) {
	return answer(ctx, k.by, func(ctx context.Context) ([]string, error) { return k.KV.Keys(ctx, prefix) })
}

// Watch lags while the line is cut, and catches up.
func (k *records) Watch(
	ctx context.Context, prefix string, see func(bus.Entry), ready func(),
) (func(), error) {
	if err := k.l.wait(ctx); err != nil {
		return nil, err
	}
	stopping, cancel := context.WithCancel(ctx)
	end, err := k.KV.Watch(ctx, prefix, func(e bus.Entry) {
		k.l.hold()
		if k.l.wait(stopping) == nil && sleep(stopping, k.l.dice.between(time.Millisecond, 5*time.Millisecond)) == nil {
			k.l.counts.step(stepRecord)
			see(e)
		}
	}, ready)
	return func() { cancel(); end() }, err
}

func (l *link) Objects(ctx context.Context, bucket string) (bus.Objects, error) {
	inner, err := answer(
		ctx,
		l.line,
		func(ctx context.Context) (bus.Objects, error) { return l.Bus.Objects(ctx, bucket) },
	)
	return &files{inner, l}, err
}

// files is a bucket of objects behind a line.
type files struct {
	bus.Objects
	l *link
}

func (f *files) Put(ctx context.Context, name string, r io.Reader, meta map[string]string) (bus.ObjectInfo, error) {
	f.l.hold()
	if err := f.l.wait(ctx); err != nil {
		return bus.ObjectInfo{}, err
	}
	return f.Objects.Put(ctx, name, r, meta)
}

func (f *files) Get(ctx context.Context, name string, bytesMax int64) (io.ReadCloser, bus.ObjectInfo, error) {
	f.l.hold()
	if err := f.l.wait(ctx); err != nil {
		return nil, bus.ObjectInfo{}, err
	}
	return f.Objects.Get(ctx, name, bytesMax)
}
