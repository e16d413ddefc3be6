//go:build long

package e2e_test

import (
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// starving is recipe R4: busy loops on all cores, until stop or the end of the test.
func (r *rack) starving(loops int) (stop func()) {
	r.t.Helper()
	var all []*process
	for i := range loops {
		all = append(all, start(r.t, fmt.Sprintf("busy loop %d", i+1), "sh", "-c", "while :; do :; done"))
	}
	return func() {
		for _, p := range all {
			p.kill()
		}
	}
}

// B35: eight busy loops starve the rack for the whole of a job, in which a result comes three times: no lease is
// lost, each message is delivered once. Then a worker is frozen in mid-proof for its lease and a third: it loses what
// it had in the device, once, and nothing wedges. A job without progress fails at its deadline. It runs alone, since
// it would starve the other drills too.
func TestDrillB35StarvedThenFrozen(t *testing.T) {
	d := newDrillAlone(t)
	d.coordinator()
	slow := simulated(d.lease()/3, 0)
	n1 := d.node("n1", slow...)
	d.ready()
	results := d.captureResults()
	stop := d.starving(8)
	j := d.submit(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	untilWithin(t, 2*d.lease()+patience, "the first result", func() bool { return results.first() != nil })
	for i := range 2 {
		copied := *results.first()
		_, err := d.bus.Publish(t.Context(), bus.Message{
			Subject: copied.Subject, ID: fmt.Sprintf("copy-%d", i), Data: copied.Data,
		})
		d.check(err)
	}
	d.ended(6*d.lease() + 2*patience)
	record := d.record(j)
	for i, p := range record.Partitions {
		if len(p.Attempts) != 1 || d.watch.publishedOf(p.Last().Fence, j.id, i) != 1 {
			t.Errorf("load alone cost partition %d an attempt: %+v", i, p.Attempts)
		}
	}
	if record.LateCount != 0 {
		t.Errorf("%d copies of a result counted as late", record.LateCount)
	}
	for _, stream := range []string{wire.StreamSynth, wire.StreamProve, wire.StreamResult} {
		d.gone(stream+" is empty", func() string { return d.messages(stream) })
		if delivered, stored := d.deliveries(stream); delivered != stored || stored < 12 {
			t.Errorf("%s: %d deliveries of %d messages", stream, delivered, stored)
		}
	}
	d.node("n2", slow...)
	d.ready()
	d.frozenInProof(n1)
	stop()
	d.done(6*d.lease() + 2*patience)
	d.failsAtItsDeadline()
}

// frozenInProof freezes a node's GPU worker and its engine in mid-proof for a lease and a third.
func (d *drill) frozenInProof(n *node) {
	d.t.Helper()
	j := d.submit(21, 22, 23, 24, 25, 26)
	at := -1
	untilWithin(d.t, 2*d.lease()+patience, "a proof is made on "+string(n.name), func() bool {
		for i, p := range d.record(j).Partitions {
			if p.Node == n.name && p.Stage == job.Proving {
				at = i
			}
		}
		return at >= 0
	})
	frozen := append(children(n.gpu.pid()), n.gpu.pid())
	for _, pid := range frozen {
		d.check(syscall.Kill(pid, syscall.SIGSTOP))
	}
	untilWithin(d.t, 2*d.lease()+patience, "its attempt is given up", func() bool {
		return lost(&d.record(j).Partitions[at]) == 1
	})
	time.Sleep(d.lease() / 3)
	for _, pid := range frozen {
		d.check(syscall.Kill(pid, syscall.SIGCONT))
	}
	d.ended(6*d.lease() + 2*patience)
	attempts := 0
	for i, p := range d.record(j).Partitions {
		attempts += len(p.Attempts)
		if len(p.Attempts) > 2 || lost(&p) > 1 {
			d.t.Errorf("one freeze cost partition %d more than an attempt: %+v", i, p.Attempts)
		}
	}
	if published := d.watch.published(j.id); published != attempts {
		d.t.Errorf("%d tasks were published for %d attempts", published, attempts)
	}
}

// failsAtItsDeadline stops all workers and has a job that nobody takes.
func (d *drill) failsAtItsDeadline() {
	d.t.Helper()
	for _, n := range d.nodes {
		n.gpu.stops()
		n.synth.stops()
	}
	deadline := time.Now().Add(d.lease())
	q := request("nobody takes it", 99, 1)
	q.Deadline, q.WaitForNode = &deadline, true
	s, err := d.client.Submit(d.t.Context(), q)
	d.check(err)
	record := d.waitEnd(&submitted{id: s.Job})
	if record.State != job.Failed || record.Fault.Kind != fault.Exhausted ||
		!strings.Contains(record.Fault.Message, "deadline") {
		d.t.Errorf("a job that nobody took is %s: %+v", record.State, record.Fault)
	}
}

// captured are the results of successful attempts, as they were sent.
type captured struct {
	mu   sync.Mutex
	list []bus.Message
}

func (r *rack) captureResults() *captured {
	r.t.Helper()
	c := &captured{}
	stop, err := r.bus.Subscribe(wire.AllResult, func(m bus.Message) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.list = append(c.list, m)
	})
	r.check(err)
	r.t.Cleanup(stop)
	return c
}

func (c *captured) first() *bus.Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == 0 {
		return nil
	}
	return &c.list[0]
}

// publishedOf is how many tasks of one attempt were published.
func (w *watch) publishedOf(fence uint64, id job.ID, partition int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.tasks[job.Attempt{Job: id, Partition: partition, Fence: fence}]
}

// consumersOf are the infos of a work queue's consumers.
func (r *rack) consumersOf(stream string) (list []*jetstream.ConsumerInfo) {
	r.t.Helper()
	conn := r.raw()
	defer conn.Close()
	js, err := jetstream.New(conn)
	r.check(err)
	s, err := js.Stream(r.t.Context(), stream)
	r.check(err)
	lister := s.ListConsumers(r.t.Context())
	for info := range lister.Info() {
		list = append(list, info)
	}
	r.check(lister.Err())
	return list
}

// deliveries is how often messages of a work queue were delivered, and how many there ever were.
func (r *rack) deliveries(stream string) (delivered, stored uint64) {
	r.t.Helper()
	for _, info := range r.consumersOf(stream) {
		delivered += info.Delivered.Consumer
	}
	log, err := r.bus.Log(r.t.Context(), stream)
	r.check(err)
	state, err := log.State(r.t.Context())
	r.check(err)
	return delivered, state.Last
}
