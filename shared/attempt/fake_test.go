package attempt_test

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// fakeBus is a bus with one queue. What is not used here is not there.
type fakeBus struct {
	bus.Bus

	waiting chan *fakeDelivery

	mu        sync.Mutex
	away      bool
	published []bus.Message
	ids       map[string]bool
	sent      []bus.Message
	records   map[string][]byte
	orders    func(bus.Message)
}

func newFakeBus() *fakeBus {
	return &fakeBus{waiting: make(chan *fakeDelivery, 100), ids: map[string]bool{}, records: map[string][]byte{}}
}

// refusedSubject is one that the worker has no right to.
const refusedSubject = "refused"

var errAway = fault.New(fault.Transient, "no server")

func (b *fakeBus) setAway(away bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.away = away
}

func (b *fakeBus) Connected() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.away
}

func (b *fakeBus) Queue(context.Context, bus.Consumer) (bus.Queue, error) {
	return fakeQueue{bus: b}, nil
}

func (b *fakeBus) Publish(_ context.Context, m bus.Message) (bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		return false, errAway
	}
	if m.Subject == refusedSubject {
		return false, fault.New(fault.Invalid, "publish to %s: permission denied", m.Subject)
	}
	if b.ids[m.ID] {
		return true, nil
	}
	b.ids[m.ID] = true
	b.published = append(b.published, m)
	return false, nil
}

func (b *fakeBus) Send(_ context.Context, m bus.Message) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sent = append(b.sent, m)
	return nil
}

func (b *fakeBus) Subscribe(_ string, handle func(bus.Message)) (func(), error) {
	b.orders = handle
	return func() {}, nil
}

// fakeKV is its records.
type fakeKV struct {
	bus.KV

	bus *fakeBus
}

func (k fakeKV) Get(_ context.Context, key string) (bus.Entry, error) {
	b := k.bus
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.away {
		return bus.Entry{}, errAway
	}
	value, ok := b.records[key]
	if !ok {
		return bus.Entry{}, fault.New(fault.NotFound, "no key %s", key)
	}
	return bus.Entry{Key: key, Value: value}, nil
}

// setFence stores the record of a job whose one partition is at a fence.
func (b *fakeBus) setFence(id job.ID, fence uint64) {
	r := job.Record{
		Version: job.RecordVersion, ID: id, State: job.Active,
		Partitions: []job.Partition{{Stage: job.Reserved, Fence: fence}},
	}
	data, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.records[wire.JobKey(id)] = data
}

func (b *fakeBus) messages(subject string) []bus.Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	var found []bus.Message
	for _, m := range b.published {
		if m.Subject == subject {
			found = append(found, m)
		}
	}
	return found
}

type fakeQueue struct {
	bus.Queue

	bus *fakeBus
}

func (q fakeQueue) Fetch(ctx context.Context) (bus.Delivery, error) {
	select {
	case d := <-q.bus.waiting:
		d.count++
		return d, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fakeDelivery is a message in the queue; end is closed when it is settled.
type fakeDelivery struct {
	bus  *fakeBus
	data []byte

	mu    sync.Mutex
	count int
	marks int
	how   string
	end   chan struct{}
}

func (b *fakeBus) put(data []byte) *fakeDelivery { return b.putAgain(data, 0) }

// putAgain queues a message that was delivered before, to others.
func (b *fakeBus) putAgain(data []byte, count int) *fakeDelivery {
	d := &fakeDelivery{bus: b, data: data, count: count, end: make(chan struct{})}
	b.waiting <- d
	return d
}

func (d *fakeDelivery) Message() bus.Message { return bus.Message{Subject: "q", ID: "m", Data: d.data} }
func (d *fakeDelivery) Count() int           { return d.count }

func (d *fakeDelivery) settle(how string) error {
	d.bus.mu.Lock()
	away := d.bus.away
	d.bus.mu.Unlock()
	if away {
		return errAway
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.how == "" {
		d.how = how
		close(d.end)
	}
	return nil
}

func (d *fakeDelivery) Ack(context.Context) error                { return d.settle("ack") }
func (d *fakeDelivery) Nak(context.Context, time.Duration) error { return d.settle("nak") }
func (d *fakeDelivery) Term(context.Context, string) error       { return d.settle("term") }

func (d *fakeDelivery) InProgress(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.marks++
	return nil
}

// state is how it was settled and how often it was marked as in progress.
func (d *fakeDelivery) state() (how string, marks int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.how, d.marks
}
