package scheduler

import (
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
)

// pass goes through the waiters in order and admits those that can go where something changed.
func (c *Core) pass() {
	if c.paused || c.halted {
		return
	}
	admits := 0
	for i := 0; i < len(c.queue); {
		s := c.queue[i]
		where := c.dirty
		if s.dirty || c.allDirty {
			where = c.order
		}
		p := s.head()
		if !c.place(s, where) {
			s.dirty = false
			i++
			continue
		}
		c.overtake(c.queue[:i], p)
		// The shape's next waiter lies at i or behind it.
		if admits++; admits == c.cfg.AdmitsMax {
			return // the outcomes go on from here: what is dirty stays so
		}
	}
	for _, n := range c.dirty {
		n.dirty = false
	}
	c.dirty, c.allDirty = c.dirty[:0], false
}

// place admits the head of a shape to the best spot of some nodes; it reports whether there was one.
func (c *Core) place(s *shape, where []*node) bool {
	if len(where) == 0 {
		return false
	}
	p := s.head()
	elsewhere := c.elsewhere(s)
	var best candidate
	var hold held
	for _, n := range where {
		if !n.leaveUntil.IsZero() {
			hold = hold.or(held{kind: heldRefusal, node: n})
			continue
		}
		if c.slots(n) <= 0 {
			hold = hold.or(held{kind: heldSlots, node: n})
			continue
		}
		for _, d := range n.devices {
			found, by := c.try(p, d, elsewhere)
			hold = hold.or(by)
			if found.better(&best) {
				best = found
			}
		}
	}
	if best.node == nil {
		if hold.kind > heldTurn || len(where) == len(c.order) {
			c.holdBack(s, hold)
		}
		if hold.kind == heldMemory {
			c.makeRoom(p, where, elsewhere)
		}
		return false
	}
	if c.worthWaiting(p, &best) {
		return false
	}
	c.admit(p, best.spot)
	return true
}

// candidate is a spot where a waiter fits now, and how good it is.
type candidate struct {
	spot
	// near tells that it is on a node where the waiter failed or was lost, end is when its proof would be ready, in
	// quarters of a proof, free the smallest share of a pool that would be left.
	near bool
	end  int64
	free float64
	// takes is how long it takes until its proof is ready.
	takes time.Duration
}

// better is a strict order; equal ones are told apart by the order of names, in which they are tried.
func (k *candidate) better(other *candidate) bool {
	switch {
	case k.node == nil:
		return false
	case other.node == nil:
		return true
	case k.near != other.near:
		return other.near
	case k.end != other.end:
		return k.end < other.end
	}
	return k.free > other.free
}

// try looks whether a waiter can go to a device now; if not, what holds it there.
func (c *Core) try(p *part, d *device, elsewhere bool) (candidate, held) {
	n := d.node
	pr := d.lookup(p.job.circuit)
	if !d.usable || pr == nil || !pr.view.Ready || elsewhere && p.shape.avoids(d) {
		return candidate{}, held{kind: heldUnavailable}
	}
	hold := held{kind: heldTurn}
	if !c.wants(d, pr, 0) {
		return candidate{}, hold
	}
	for i := range pr.choices {
		ch := &pr.choices[i]
		if !ch.fits {
			continue
		}
		if c.overQuota(p, ch.ram) {
			c.heldByQuota(p, ch.ram)
			hold = hold.or(held{kind: heldQuota, node: n})
			continue
		}
		at := spot{n, d, pr, ch}
		load, free, short := c.fits(n, ch)
		switch {
		case short >= 0:
			hold = hold.or(held{kind: heldMemory, node: n, pool: short})
		case load < 0:
			hold = hold.or(held{kind: heldEviction, node: n})
		case !c.harmless(p, at):
			hold = hold.or(held{kind: heldPinned, node: n})
		default:
			return c.rate(p, at, load, free), hold
		}
		if count, _, _ := c.ahead(d); count > 0 || d.proving > 0 {
			return candidate{}, hold // the device has work: wait for the preferred way
		}
	}
	return candidate{}, hold
}

// rate tells how good a spot is.
func (c *Core) rate(p *part, at spot, load bytesize.Bytes, free float64) candidate {
	loading := time.Duration(float64(load) / float64(c.cfg.LoadRate) * float64(time.Second))
	each := c.estimate(at.profile)
	typical := at.profile.circuit.device
	if typical == 0 {
		typical = at.profile.circuit.guess
	}
	takes := loading + c.busy(at.device) + each
	return candidate{
		spot: at, near: p.avoid.Node == at.node.name, end: int64(takes / max(1, typical/4)), free: free, takes: takes,
	}
}

// avoids tells whether a shape keeps away from a device.
func (s *shape) avoids(d *device) bool {
	return s.avoid.Node == d.node.name && (s.avoid.Device == "" || s.avoid.Device == d.view.Device)
}

// elsewhere tells whether there is a place for a shape beside the one that it avoids.
func (c *Core) elsewhere(s *shape) bool {
	if s.avoid == (Place{}) {
		return false
	}
	if s.generation == c.generation {
		return s.elsewhere
	}
	s.generation, s.elsewhere = c.generation, false
	for _, n := range c.order {
		for _, d := range n.devices {
			if !s.avoids(d) && d.canRun(s.circuit) {
				s.elsewhere = true
				return true
			}
		}
	}
	return false
}

// canRun tells whether a device can run a circuit once bytes are free.
func (d *device) canRun(circuit *circuit) bool {
	pr := d.lookup(circuit)
	if !d.usable || pr == nil || !pr.view.Ready {
		return false
	}
	for i := range pr.choices {
		if pr.choices[i].fits {
			return true
		}
	}
	return false
}

// fits tells whether a choice fits into what is free on a node: short is the pool that lacks most, −1 when none does;
// load is what must be loaded, −1 when an asset is on its way out; free is the smallest share of a pool that is left.
func (c *Core) fits(n *node, ch *choice) (load bytesize.Bytes, free float64, short int) {
	load = c.sum(n, ch)
	free, short = 1, -1
	var lack bytesize.Bytes
	for i, need := range c.need {
		left := n.free(i) - need
		if need == 0 && left >= 0 {
			continue // a pool that holds more than there is stops all grants
		}
		if -left > lack {
			lack, short = -left, i
		}
		if left >= 0 {
			free = min(free, float64(left)/float64(n.capacity[i]))
		}
	}
	return load, free, short
}

// sum puts what a choice takes now into c.need, by pool, and tells what must be loaded for it.
func (c *Core) sum(n *node, ch *choice) (load bytesize.Bytes) {
	c.clearNeed(n)
	for _, b := range ch.amounts {
		c.need[b.pool] += b.bytes
	}
	leaving := false
	for _, a := range ch.assets {
		switch {
		case !a.asset.present:
			c.need[a.asset.pool] += a.bytes
			load += a.bytes
		case c.leaving(a.asset):
			leaving = true
		default:
			c.need[a.asset.pool] += max(0, a.bytes-a.asset.bytes)
		}
	}
	if leaving {
		return -1
	}
	return load
}

func (c *Core) clearNeed(n *node) {
	if cap(c.need) < len(n.pools) {
		c.need = make([]bytesize.Bytes, len(n.pools), 2*len(n.pools))
	}
	c.need = c.need[:len(n.pools)]
	clear(c.need)
}

// fitsEmpty tells whether a node could hold a choice and nothing else.
func (c *Core) fitsEmpty(n *node, ch *choice) bool {
	c.sumWhole(n, ch)
	for i, need := range c.need {
		if need > n.capacity[i] {
			return false
		}
	}
	return true
}

// sumWhole is sum on an empty node.
func (c *Core) sumWhole(n *node, ch *choice) {
	c.clearNeed(n)
	for _, b := range ch.amounts {
		c.need[b.pool] += b.bytes
	}
	for _, a := range ch.assets {
		c.need[a.asset.pool] += a.bytes
	}
}

// admit books a waiter on a spot and asks for it.
func (c *Core) admit(p *part, at spot) {
	a := p.attempt(p.fence + 1)
	d := &Admit{Attempt: a, Place: at.device.place(), Circuit: p.job.circuit.name, Needs: at.choice.needs}
	d.Waited = c.now.Sub(p.since)
	if !p.shape.heldAt.IsZero() && !p.shape.heldAt.Before(p.since) {
		d.Held, d.Turns = p.shape.hold.hold(), p.shape.turns(p.since)
	}
	n := at.node
	if n.ended != nil && !n.ended.limbo && equalAmounts(n.ended.full, at.choice.needs.Amounts) && n.ended.uses(at.choice) {
		from := n.ended.attempt
		d.From, n.ended = &from, nil
	}
	c.settleEnded(n)
	c.dequeue(p)
	r := c.start(p, a, d.Place)
	r.asked, r.from = true, d.From
	p.state = asked
	n.take(a, at.choice, c.now)
	n.holdings[a].tenant = p.job.tenant
	c.charge(n, n.holdings[a], 1)
	c.emit(d)
}

// uses tells whether a holding has the same assets as a choice.
func (h *holding) uses(ch *choice) bool {
	if len(h.assets) != len(ch.assets) {
		return false
	}
	for i := range ch.assets {
		if !slices.Contains(h.assets, ch.assets[i].asset) {
			return false
		}
	}
	return true
}

// held is a Hold while it is found out; stronger kinds say more.
type held struct {
	kind heldKind
	node *node
	pool int
}

type heldKind uint8

const (
	heldUnavailable heldKind = iota
	heldTurn
	heldSlots
	heldRefusal
	heldEviction
	heldPinned
	heldMemory
	heldQuota
)

func (h held) or(other held) held {
	if other.kind > h.kind {
		return other
	}
	return h
}

func (h held) hold() Hold {
	out := Hold{Code: [...]Code{Unavailable, Turn, Slots, Refusal, Eviction, Pinned, Memory, QuotaCode}[h.kind]}
	if h.node != nil {
		out.Node = h.node.name
		if h.kind == heldMemory {
			out.Pool = h.node.pools[h.pool]
		}
	}
	return out
}
