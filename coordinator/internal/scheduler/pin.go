package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
)

// overtake notes which waiters were passed over when a partition behind them was admitted: those that could run on the
// same node and lack only bytes there. Waiters for a device or for a synthesis slot can't be overtaken, since they are
// looked at first.
func (c *Core) overtake(before []*shape, p *part) {
	for _, s := range before {
		head := s.head()
		if !head.passedAt.IsZero() || head.promised != nil || c.stoppedByQuota(head) {
			continue
		}
		if slices.ContainsFunc(p.run.node.devices, func(d *device) bool {
			return d.canRun(s.circuit) && !(c.elsewhere(s) && s.avoids(d)) &&
				(d == p.run.device || c.wants(d, d.lookup(s.circuit), 0)) // it was open before p took it
		}) {
			head.passedAt = c.now
		}
	}
}

// pinTries is how often within the ageing time a node is looked for, for a waiter that found none to pin.
const pinTries = 60

// age pins a node for each head that was passed over for too long. A pin that did not help for as long moves to where
// it would be sooner by now.
func (c *Core) age() {
	for _, s := range c.queue {
		p := s.head()
		if c.stoppedByQuota(p) { // no free bytes would help it
			c.unpin(p)
			continue
		}
		if p.passedAt.IsZero() || c.now.Sub(p.passedAt) < c.cfg.Ageing || c.now.Sub(s.pinTriedAt) < c.cfg.Ageing/pinTries ||
			p.pin != nil && c.now.Sub(p.pinnedAt) < c.cfg.Ageing {
			continue
		}
		s.pinTriedAt = c.now
		at, ok := c.soonest(p)
		switch {
		case !ok, c.overQuota(p, at.choice.ram):
		case at.node == p.pin:
			p.pinnedAt = c.now
		default:
			c.unpin(p)
			c.pinTo(p, at)
		}
	}
}

// pinTo keeps a node's free bytes for a waiter.
func (c *Core) pinTo(p *part, at spot) {
	if at.node.pin != nil {
		c.unpin(at.node.pin)
	}
	at.node.pin, at.node.pinned, p.pin, p.pinnedAt = p, at, at.node, c.now
	p.shape.dirty = true
}

func (c *Core) unpin(p *part) {
	n := p.pin
	if n == nil {
		return
	}
	n.pin, n.pinned, p.pin = nil, spot{}, nil
	c.touch(n)
}

// soonest gives the spot where a waiter will have its bytes first, of the nodes that no older waiter has pinned.
func (c *Core) soonest(p *part) (best spot, ok bool) {
	elsewhere := c.elsewhere(p.shape)
	var at time.Duration
	for _, n := range c.order {
		if n.pin != nil && n.pin.before(p) {
			continue
		}
		for _, d := range n.devices {
			if !d.canRun(p.job.circuit) || elsewhere && p.shape.avoids(d) {
				continue
			}
			pr := d.lookup(p.job.circuit)
			for i := range pr.choices {
				ch := &pr.choices[i]
				if !ch.fits {
					continue
				}
				wait, _ := c.waitFor(n, ch)
				wait = max(wait, c.busy(d)-c.cfg.WorkAhead)
				if !ok || wait < at {
					best, at, ok = spot{n, d, pr, ch}, wait, true
				}
				break
			}
		}
	}
	return best, ok
}

// forever is the wait for bytes whose end is not known: those in limbo and of attempts of which no partition knows.
const forever = 1000 * time.Hour

// waitFor estimates how long it takes until a choice fits on a node, if nobody else gets bytes there; possible is false
// when that needs assets to be evicted.
func (c *Core) waitFor(n *node, ch *choice) (wait time.Duration, possible bool) {
	type ending struct {
		after time.Duration
		h     *holding
	}
	ends := make([]ending, 0, len(n.holdings))
	for a, h := range n.holdings {
		after := forever
		if r := c.runs[a]; r != nil && !h.limbo {
			after = c.endOf(r)
		}
		ends = append(ends, ending{after, h})
	}
	slices.SortFunc(ends, func(a, b ending) int {
		return cmp.Or(cmp.Compare(a.after, b.after), compareAttempts(a.h.attempt, b.h.attempt))
	})
	c.sum(n, ch)
	lack := c.need
	for i := range lack {
		lack[i] -= n.free(i)
	}
	for i := 0; ; i++ {
		if !slices.ContainsFunc(lack, func(b bytesize.Bytes) bool { return b > 0 }) {
			return wait, true
		}
		if i == len(ends) {
			return max(wait, forever), false
		}
		wait = ends[i].after
		for _, b := range ends[i].h.amounts {
			lack[b.pool] -= b.bytes
		}
	}
}

func compareAttempts(a, b job.Attempt) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Fence, b.Fence))
}

// endOf estimates how long a run still takes: its device does what was booked before it first.
func (c *Core) endOf(r *run) time.Duration {
	d := r.device
	var left time.Duration
	if d.proving > 0 && d.provingUntil.After(c.now) {
		left = d.provingUntil.Sub(c.now)
	}
	if rank(r.stage) >= rank(job.Proving) {
		return left
	}
	for _, other := range d.runs {
		if rank(other.stage) < rank(job.Proving) {
			left += c.estimate(other.profile)
		}
		if other == r {
			break
		}
	}
	return left
}

// harmless tells whether a partition may go to a spot although its node is pinned: it goes before the pinned waiter, or
// leaves it all that it needs. It takes no byte of a pool in which the waiter lacks any, and afterwards the waiter's
// device and the node's synthesis still have room for it.
func (c *Core) harmless(p *part, at spot) bool {
	n := at.node
	if n.pin == nil || n.pin == p || p.before(n.pin) {
		return true
	}
	if c.slots(n) <= 1 {
		return false
	}
	if at.device == n.pinned.device && !c.wants(at.device, at.profile, 1) {
		return false
	}
	c.sum(n, at.choice)
	own := slices.Clone(c.need)
	c.sum(n, n.pinned.choice)
	for i, need := range c.need {
		if own[i] > 0 && need > 0 && n.free(i)-own[i] < need {
			return false
		}
	}
	return true
}
