package scheduler

import (
	"fmt"
	"slices"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/sizes"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
)

// Core is the scheduler. It is not safe for concurrent use.
type Core struct {
	cfg Config
	now time.Time
	out []Decision

	circuits map[string]*circuit
	// sizes are what was measured of attempts' memory and time.
	sizes *sizes.Table
	// drifts counts how often drift began or ended.
	drifts uint64
	// tenants are those that have a quota; strangers counts the holdings of jobs that are not known.
	tenants   map[job.Tenant]*tenant
	strangers int
	// promises counts the partitions that wait for a faster device.
	promises int

	jobs map[job.ID]*jobState
	// withWaiters are the jobs that have a partition waiting or pausing, in no order.
	withWaiters []*jobState
	// runs are the attempts that were asked for or run, by their names.
	runs map[job.Attempt]*run

	shapes map[shapeKey]*shape
	// queue are the shapes that have waiters, in the order of their heads.
	queue   []*shape
	pausing pauseHeap

	nodes map[job.Node]*node
	// order are the nodes by name.
	order []*node
	// generation changes with anything that decides where work can run at all.
	generation uint64

	// dirty are the nodes where something may have become possible since the last pass; allDirty stands for all.
	dirty    []*node
	allDirty bool
	// lookNext is where the next tick looks without cause.
	lookNext int
	dueNext  int

	paused      bool
	pauseReason string
	halted      bool
	haltReason  string

	// need is scratch for one choice's bytes by pool.
	need []bytesize.Bytes
}

// New makes a core that knows nothing yet. An invalid Config is an error.
func New(cfg Config) (*Core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure scheduler: %w", err)
	}
	return &Core{
		cfg: cfg, circuits: map[string]*circuit{}, jobs: map[job.ID]*jobState{}, runs: map[job.Attempt]*run{},
		sizes: sizes.New(cfg.sizes()), tenants: makeTenants(cfg.Quotas), generation: 1,
		shapes: map[shapeKey]*shape{}, nodes: map[job.Node]*node{},
	}, nil
}

// Apply takes one event and gives what is to be done, in order. A time earlier than the last one counts as the last.
func (c *Core) Apply(now time.Time, event Event) []Decision {
	if now.After(c.now) {
		c.now = now
	}
	c.out = nil
	c.wake()
	c.handle(event)
	c.age()
	c.pass()
	c.releaseEnded()
	return c.out
}

func (c *Core) handle(event Event) {
	switch e := event.(type) {
	case JobSeen:
		c.jobSeen(e.Job)
	case JobGone:
		c.jobGone(e.Job)
	case NodeSeen:
		c.nodeSeen(&e.Node)
	case NodeGone:
		c.nodeGone(e.Node)
	case Granted:
		c.granted(e.Attempt)
	case Refused:
		c.refused(e)
	case Progress:
		c.progress(e.Attempt, e.Stage)
	case Ended:
		c.ended(e)
	case Shrunk:
		c.shrunk(e)
	case Freed:
		c.freed(e)
	case Evicted:
		c.evicted(e)
	case Readmitted:
		c.readmitted(e.Place)
	case Resumed:
		c.resumed()
	case Paused:
		c.paused, c.pauseReason, c.allDirty = e.On, e.Reason, true
	case Remembered:
		c.remembered(e.Sizes)
	case SizePinned:
		c.pinned(e)
	case Tick:
		c.look()
	default:
		panic(fmt.Sprintf("scheduler: unknown event %T", event))
	}
}

func (c *Core) emit(d Decision) { c.out = append(c.out, d) }

// wake lets waiters go whose pause is over, and nodes that refused be tried again.
func (c *Core) wake() {
	for {
		p := c.pausing.due(c.now)
		if p == nil {
			break
		}
		c.dequeue(p)
		c.enqueue(p, p.notBefore)
	}
	for _, n := range c.order {
		if !n.leaveUntil.IsZero() && !c.now.Before(n.leaveUntil) {
			n.leaveUntil = time.Time{}
			c.touch(n)
		}
	}
}

// lookChecksMax bounds what one tick looks at without cause, in devices times shapes.
const lookChecksMax = 4096

// look marks some nodes to be looked at although nothing is known to have changed there, in turns: no wake-up can get
// lost for good.
func (c *Core) look() {
	c.forget()
	c.lookDues()
	for checks := 0; checks < lookChecksMax && len(c.dirty) < len(c.order); {
		c.lookNext++
		n := c.order[c.lookNext%len(c.order)]
		if n.dirty {
			return
		}
		c.touch(n)
		checks += len(n.devices) * (len(c.queue) + 1)
	}
}

// forget drops nodes that are gone and of which no attempt is known any more (B33).
func (c *Core) forget() {
	var inUse map[*node]bool
	c.order = slices.DeleteFunc(c.order, func(n *node) bool {
		if !n.gone || n.dirty {
			return false
		}
		if inUse == nil {
			inUse = map[*node]bool{}
			for _, r := range c.runs {
				inUse[r.node] = true
			}
		}
		if inUse[n] {
			return false
		}
		for _, h := range n.holdings {
			c.charge(n, h, -1)
		}
		delete(c.nodes, n.name)
		return true
	})
}

// touch marks a node to be looked at in the next pass.
func (c *Core) touch(n *node) {
	if !n.dirty {
		n.dirty = true
		c.dirty = append(c.dirty, n)
	}
}
