package scheduler

import (
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
)

// partState is where a partition is for the scheduler.
type partState uint8

const (
	idle    partState = iota // finished, stopped, or unknown
	waiting                  // in its shape's heap
	pausing                  // in the heap of pauses
	asked                    // an Admit has no outcome yet
	running                  // an attempt owns it
)

// jobState is a job with its partitions.
type jobState struct {
	id        job.ID
	circuit   *circuit
	tenant    *tenant // nil without a quota
	priority  int
	submitted time.Time
	deadline  time.Time // zero without one
	due       time.Time // when it should begin at the latest, see dueOf
	parts     []part
	// waiters counts partitions that wait or pause; pos is the place in Core.withWaiters while there are any.
	waiters int
	pos     int
}

// asking tells whether an Admit of one of its partitions has no outcome.
func (j *jobState) asking() bool {
	return slices.ContainsFunc(j.parts, func(p part) bool { return p.state == asked })
}

// part is a partition.
type part struct {
	job       *jobState
	index     int
	state     partState
	fence     uint64 // the highest known
	avoid     Place
	notBefore time.Time
	// since is when it could have gone first; passedAt when somebody behind it went first (zero: nobody did).
	since    time.Time
	passedAt time.Time
	// shape is where it waits, pos its place there or among the pausing ones.
	shape *shape
	pos   int
	// pin is the node whose free bytes are kept for it, since pinnedAt.
	pin      *node
	pinnedAt time.Time
	// quotaAt is when its tenant's quota held it back first, quotaNeed the bytes that it asked for then.
	quotaAt   time.Time
	quotaNeed bytesize.Bytes
	// promised is the faster device that it waits for, since promisedAt.
	promised   *device
	promisedAt time.Time
	run        *run
	// refusals counts refusals in a row that were the job's own, cause is the last.
	refusals int
	cause    string
	// last is how the attempt before ended.
	last string
}

func (p *part) attempt(fence uint64) job.Attempt {
	return job.Attempt{Job: p.job.id, Partition: p.index, Fence: fence}
}

// before is the order of waiting: priority, then when the job should begin (its age, where it has no deadline).
func (p *part) before(q *part) bool { return p.compare(q) < 0 }

func (p *part) compare(q *part) int {
	if p.job == q.job {
		return cmp.Compare(p.index, q.index)
	}
	if c := cmp.Compare(q.job.priority, p.job.priority); c != 0 {
		return c
	}
	if c := p.job.due.Compare(q.job.due); c != 0 {
		return c
	}
	if c := p.job.submitted.Compare(q.job.submitted); c != 0 {
		return c
	}
	return strings.Compare(string(p.job.id), string(q.job.id))
}

// shapeKey tells waiters apart that can't be treated alike.
type shapeKey struct {
	circuit *circuit
	tenant  *tenant // nil for all without a quota
	avoid   Place
	apart   *part // waits for a fast device, alone in its shape
}

// shape is a group of waiters with the same needs and the same places to avoid. Only its head is looked at.
type shape struct {
	shapeKey
	waiters waitHeap
	// dirty asks for a look at all nodes in the next pass.
	dirty bool
	// elsewhere tells that there is a place that is not avoided, as of generation.
	elsewhere  bool
	generation uint64
	// hold is what held the head when it was looked at last.
	hold   held
	heldAt time.Time
	// spells are what held its heads in turn.
	spells []HeldSince
	// pinTriedAt is when no node could be pinned for the head.
	pinTriedAt time.Time
}

func (s *shape) head() *part { return s.waiters[0] }

// avoidShapesMax bounds the shapes of one circuit that avoid something; beyond it waiters avoid nothing.
const avoidShapesMax = 64

// enqueue makes a partition wait. since is when it could have gone.
func (c *Core) enqueue(p *part, since time.Time) {
	c.enqueueAs(shapeKey{circuit: p.job.circuit, tenant: p.job.tenant, avoid: p.avoid}, p, since)
}

// enqueueApart makes it wait alone in its shape.
func (c *Core) enqueueApart(p *part) {
	c.enqueueAs(shapeKey{circuit: p.job.circuit, tenant: p.job.tenant, avoid: p.avoid, apart: p}, p, p.since)
}

func (c *Core) enqueueAs(key shapeKey, p *part, since time.Time) {
	s := c.shapes[key]
	if s == nil && p.avoid != (Place{}) && p.job.circuit.avoidShapes >= avoidShapesMax {
		key.avoid = Place{}
		s = c.shapes[key]
	}
	if s == nil {
		s = &shape{shapeKey: key}
		c.shapes[key] = s
		if key.avoid != (Place{}) {
			p.job.circuit.avoidShapes++
		}
	}
	if len(s.waiters) > 0 && s.head().before(p) {
		heap.Push(&s.waiters, p)
	} else {
		c.unqueue(s)
		heap.Push(&s.waiters, p)
		c.requeue(s)
		s.dirty = true
	}
	p.state, p.shape, p.since = waiting, s, since
	c.countWaiter(p.job, 1)
}

// dequeue takes a partition out of its shape or pause, if it is in one.
func (c *Core) dequeue(p *part) {
	switch p.state {
	case waiting:
		s := p.shape
		if s.head() == p {
			c.unqueue(s)
			heap.Remove(&s.waiters, p.pos)
			c.requeue(s)
		} else {
			heap.Remove(&s.waiters, p.pos)
		}
		c.unpin(p)
		c.leaveQuota(p)
		c.unpromise(p)
		p.shape = nil
		c.countWaiter(p.job, -1)
	case pausing:
		c.pausing.remove(p)
		c.countWaiter(p.job, -1)
	case idle, asked, running:
	}
	p.state = idle
}

// pause makes a partition wait until a time before it waits in order.
func (c *Core) pause(p *part) {
	p.state = pausing
	heap.Push(&c.pausing, p)
	c.countWaiter(p.job, 1)
}

func (c *Core) countWaiter(j *jobState, n int) {
	before := j.waiters
	j.waiters += n
	switch {
	case before == 0 && j.waiters > 0:
		j.pos = len(c.withWaiters)
		c.withWaiters = append(c.withWaiters, j)
	case before > 0 && j.waiters == 0:
		last := len(c.withWaiters) - 1
		c.withWaiters[j.pos] = c.withWaiters[last]
		c.withWaiters[j.pos].pos = j.pos
		c.withWaiters[last] = nil
		c.withWaiters = c.withWaiters[:last]
	}
}

// unqueue takes a shape out of the queue, since its head is about to change.
func (c *Core) unqueue(s *shape) {
	if len(s.waiters) == 0 {
		return
	}
	i, found := slices.BinarySearchFunc(c.queue, s.head(), func(s *shape, p *part) int { return s.head().compare(p) })
	if !found {
		panic("scheduler: shape of " + s.head().attempt(0).String() + " is not in the queue")
	}
	c.queue = slices.Delete(c.queue, i, i+1)
}

// requeue puts a shape back into the queue by its new head; one without waiters is forgotten.
func (c *Core) requeue(s *shape) {
	if len(s.waiters) == 0 {
		delete(c.shapes, s.shapeKey)
		if s.avoid != (Place{}) {
			s.circuit.avoidShapes--
		}
		return
	}
	i, _ := slices.BinarySearchFunc(c.queue, s.head(), func(s *shape, p *part) int { return s.head().compare(p) })
	c.queue = slices.Insert(c.queue, i, s)
}

// waitHeap orders waiters of one shape.
type waitHeap []*part

func (h waitHeap) Len() int           { return len(h) }
func (h waitHeap) Less(i, j int) bool { return h[i].before(h[j]) }
func (h waitHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].pos, h[j].pos = i, j }

// Push implements heap.Interface.
func (h *waitHeap) Push(x any) {
	p, _ := x.(*part)
	p.pos = len(*h)
	*h = append(*h, p)
}

// Pop implements heap.Interface.
func (h *waitHeap) Pop() any {
	last := len(*h) - 1
	p := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return p
}

// pauseHeap orders pausing partitions by when they may go.
type pauseHeap []*part

func (h pauseHeap) Len() int           { return len(h) }
func (h pauseHeap) Less(i, j int) bool { return h[i].notBefore.Before(h[j].notBefore) }
func (h pauseHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i]; h[i].pos, h[j].pos = i, j }

// Push implements heap.Interface.
func (h *pauseHeap) Push(x any) { (*waitHeap)(h).Push(x) }

// Pop implements heap.Interface.
func (h *pauseHeap) Pop() any { return (*waitHeap)(h).Pop() }

func (h *pauseHeap) remove(p *part) { heap.Remove(h, p.pos) }

// due gives the first partition whose pause is over.
func (h pauseHeap) due(now time.Time) *part {
	if len(h) == 0 || now.Before(h[0].notBefore) {
		return nil
	}
	return h[0]
}
