package coordinator

import (
	"context"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

const (
	// queuesWaiting bounds queues that wait to be looked at; more are left for the next beat.
	queuesWaiting = 256
	// devicesMax bounds the devices of a node that get a queue.
	devicesMax = 64
	// lookEvery is after how many heartbeats it is looked whether a queue that was made is still there.
	lookEvery = 10
)

// queues makes what workers fetch from: one durable consumer for the synthesis of each node and one for each device.
// Workers have no right to: who may make a consumer may have the server deliver what it likes to any subject. Every
// coordinator makes them, at the first beat of a worker, and again when they are gone.
type queues struct {
	bus       bus.Bus
	log       logger
	heartbeat time.Duration
	wanted    chan bus.Consumer

	mu   sync.Mutex
	made map[string]madeQueue // by name
	of   map[job.Node]int     // how many of made are a node's
}

type madeQueue struct {
	ackWait time.Duration // 0: it is not made yet
	at      time.Time     // when it was last looked at
}

func newQueues(b bus.Bus, heartbeat time.Duration, log logger) *queues {
	return &queues{
		bus: b, log: log, heartbeat: heartbeat, wanted: make(chan bus.Consumer, queuesWaiting), made: map[string]madeQueue{},
		of: map[job.Node]int{},
	}
}

// consumersOf are the queues that a worker process fetches from; none of one that makes them itself, as workers of
// older builds do.
func consumersOf(b *wire.Beat) (all []bus.Consumer) {
	if b.AckWaitMS == 0 {
		return nil
	}
	ackWait := time.Duration(b.AckWaitMS) * time.Millisecond
	if b.Role == wire.RoleSynth {
		return []bus.Consumer{{
			Stream: wire.StreamSynth, Name: wire.SynthConsumer(b.Node), Subject: wire.SynthSubject(b.Node), AckWait: ackWait,
		}}
	}
	for i := range b.Devices {
		device := b.Devices[i].Device
		all = append(all, bus.Consumer{
			Stream: wire.StreamProve, Name: wire.ProveConsumer(b.Node, device), Subject: wire.ProveSubject(b.Node, device),
			AckWait: ackWait,
		})
	}
	return all
}

// want notes what a worker that beats fetches from. It does not wait.
func (q *queues) want(b *wire.Beat, now time.Time) {
	every := lookEvery * q.heartbeat
	if b.State == wire.StateNotReady {
		every = q.heartbeat / 2 // that may be why
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, c := range consumersOf(b) {
		have, known := q.made[c.Name]
		if known && have.ackWait == c.AckWait && now.Sub(have.at) < every {
			continue
		}
		if !known && q.of[b.Node] > devicesMax {
			continue // no rack has such a node
		}
		select {
		case q.wanted <- c:
			q.made[c.Name] = madeQueue{have.ackWait, now}
			if !known {
				q.of[b.Node]++
			}
		default:
		}
	}
}

// run makes queues until ctx ends.
func (q *queues) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-q.wanted:
			if err := q.make(ctx, c); err != nil && ctx.Err() == nil {
				q.log.Warn().Err(err).Str("queue", c.Name).Msg("queue of a worker could not be made, trying again at its next beat")
				q.forget(c.Name)
			}
		}
	}
}

// make makes a queue that is not there, or whose ack wait is to be another.
func (q *queues) make(ctx context.Context, c bus.Consumer) error {
	q.mu.Lock()
	same := q.made[c.Name].ackWait == c.AckWait
	q.mu.Unlock()
	if same {
		there := c
		there.Existing = true
		if _, err := q.bus.Queue(ctx, there); fault.KindOf(err) != fault.NotFound {
			return err
		}
		q.log.Warn().Str("queue", c.Name).Msg("queue of a worker was gone and is made again")
	}
	if _, err := q.bus.Queue(ctx, c); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.made[c.Name] = madeQueue{c.AckWait, time.Now()}
	return nil
}

func (q *queues) forget(name string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.made[name] = madeQueue{}
}
