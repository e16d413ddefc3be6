package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

func (c *Core) nodeSeen(v *NodeView) {
	n := c.node(v.Node)
	old := n.view
	n.seen, n.gone = true, false
	n.view = *v
	n.view.Book, n.view.Devices = nil, nil
	for _, name := range slices.Sorted(maps.Keys(v.Capacity)) {
		n.pool(name)
	}
	for i, name := range n.pools {
		n.capacity[i] = v.Capacity[name]
	}
	resized := !maps.Equal(old.Capacity, v.Capacity)
	for _, d := range n.devices {
		d.present = false
	}
	changed := resized
	for i := range v.Devices {
		changed = c.deviceSeen(n, &v.Devices[i], resized) || changed
	}
	if v.Book != nil {
		n.leaveUntil = time.Time{}
		changed = changed || n.declared != v.Book.Declared
		n.declared = v.Book.Declared
		c.rewrite(n, v.Book)
	}
	c.reckon(n, changed)
	c.touch(n)
}

// deviceSeen takes a device's view over and tells whether what it can do changed.
func (c *Core) deviceSeen(n *node, v *DeviceView, resized bool) bool {
	d := n.device(v.Device)
	if d.view.Instance != v.Instance || d.view.Quarantined && !v.Quarantined {
		c.absolve(d)
	}
	d.present = true
	changed := resized || d.view.Kind != v.Kind
	var fresh []*profile
	for name := range d.view.Circuits {
		if _, ok := v.Circuits[name]; !ok {
			p := d.profile(c.circuit(name))
			p.view, p.choices, changed = CircuitView{}, nil, true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(v.Circuits)) {
		p, view := d.profile(c.circuit(name)), v.Circuits[name]
		if !resized && d.view.Kind == v.Kind && equalCircuit(&p.view, &view) {
			continue
		}
		changed = true
		p.view = view
		fresh = append(fresh, p)
	}
	d.view = *v
	for _, p := range fresh {
		c.recall(d, p)
		c.compile(n, d, p)
	}
	return changed
}

func equalCircuit(a, b *CircuitView) bool {
	return a.Ready == b.Ready && a.Missing == b.Missing && slices.EqualFunc(a.Choices, b.Choices, equalNeeds) &&
		slices.Equal(a.Computed, b.Computed)
}

func equalNeeds(a, b Needs) bool {
	return maps.Equal(a.Amounts, b.Amounts) && slices.Equal(a.Assets, b.Assets)
}

// reckon decides again which devices of a node may get work.
func (c *Core) reckon(n *node, changed bool) {
	for _, d := range n.devices {
		usable := c.nodeExcuse(n) == "" && c.deviceExcuse(d) == ""
		changed = changed || d.usable != usable
		d.usable = usable
	}
	if !changed {
		return
	}
	c.generation++
	for _, s := range c.queue {
		s.dirty = s.dirty || s.avoid != (Place{}) // what was elsewhere may be gone
	}
	if n.pin != nil && !n.pinned.renew() {
		c.unpin(n.pin)
	}
}

// nodeExcuse says why a whole node gets no work, "" when it may.
func (c *Core) nodeExcuse(n *node) string {
	switch {
	case n.gone, !n.seen:
		return "is gone"
	case n.view.Draining:
		return "is draining"
	case n.view.Cordoned:
		return "is cordoned"
	case !n.view.Ready:
		return "is not ready" + because(n.view.Reason)
	case n.view.SynthSlots <= 0:
		return "has no synthesis worker with a slot"
	case !n.declared:
		return "has not declared its holdings"
	}
	return ""
}

// deviceExcuse says why a device gets no work although its node would.
func (c *Core) deviceExcuse(d *device) string {
	n := d.node
	wire := c.cfg.Wire.meet(n.view.Wire).meet(d.view.Wire)
	switch {
	case !d.present:
		return "is gone"
	case d.quarantined, d.view.Quarantined:
		return "is in quarantine" + because(d.view.Reason)
	case !d.view.Healthy:
		return "is not healthy" + because(d.view.Reason)
	case wire.Max < wire.Min:
		return fmt.Sprintf("speaks other versions (coordinator %d to %d, synthesis %d to %d, device %d to %d)",
			c.cfg.Wire.Min, c.cfg.Wire.Max, n.view.Wire.Min, n.view.Wire.Max, d.view.Wire.Min, d.view.Wire.Max)
	}
	return ""
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// renew takes the choice of a spot from the node's latest view; it reports whether work can still run there once bytes
// are free.
func (s *spot) renew() bool {
	i := slices.IndexFunc(s.profile.choices, func(ch choice) bool { return equalNeeds(ch.needs, s.choice.needs) })
	if i < 0 {
		return false
	}
	s.choice = &s.profile.choices[i]
	return s.device.usable && s.profile.view.Ready && s.choice.fits
}

// rewrite replaces a node's book by the ledger's, for the tenants too.
func (c *Core) rewrite(n *node, b *Book) {
	old := n.holdings
	for _, h := range old {
		c.charge(n, h, -1)
	}
	n.rewrite(b, c.now)
	for a, h := range n.holdings {
		c.own(h, old[a])
		c.charge(n, h, 1)
	}
}

// rewrite replaces a node's book by the ledger's. What was asked for and has no outcome stays booked.
func (n *node) rewrite(b *Book, now time.Time) {
	old := n.holdings
	n.holdings = make(map[job.Attempt]*holding, len(b.Holdings))
	for _, s := range n.assets {
		s.refs = 0
		s.present = s.present && !s.confirmed
	}
	clear(n.held)
	for _, a := range b.Assets {
		if a.Name == ledger.AssetSegments {
			continue // gives way to any reservation by itself
		}
		s := n.asset(a.Name, n.pool(a.Pool))
		if s.usedAt.IsZero() {
			s.usedAt = now
		}
		s.bytes, s.present, s.confirmed = a.Bytes, true, true
	}
	for _, entry := range b.Holdings {
		h := &holding{
			attempt: entry.Attempt, amounts: n.compileAmounts(entry.Amounts), full: entry.Amounts, limbo: entry.Limbo,
		}
		if known := old[entry.Attempt]; known != nil {
			h.full, h.asked = known.full, known.asked
		}
		for _, s := range n.assets {
			if slices.Contains(entry.Assets, s.name) {
				h.assets = append(h.assets, s)
			}
		}
		n.holdings[h.attempt] = h
	}
	for _, h := range old {
		if h.asked && n.holdings[h.attempt] == nil {
			n.holdings[h.attempt] = h
		}
	}
	for _, h := range n.holdings {
		for _, amount := range h.amounts {
			n.held[amount.pool] += amount.bytes
		}
		for _, s := range h.assets {
			s.refs++
			s.usedAt = now
		}
	}
	for _, s := range n.assets {
		switch {
		case s.present && !s.confirmed && s.refs == 0:
			s.present = false
		case !s.present:
			s.evictAt = time.Time{}
		}
		if s.present {
			n.held[s.pool] += s.bytes
		}
	}
}

func (c *Core) nodeGone(name job.Node) {
	n := c.nodes[name]
	if n == nil {
		return
	}
	n.gone, n.declared, n.leaveUntil = true, false, time.Time{}
	c.reckon(n, true)
}

func (c *Core) shrunk(e Shrunk) {
	n := c.nodes[e.Node]
	if n == nil || n.holdings[e.Attempt] == nil {
		return
	}
	h := n.holdings[e.Attempt]
	c.charge(n, h, -1)
	for i := range h.amounts {
		gone := min(e.Amounts[n.pools[h.amounts[i].pool]], h.amounts[i].bytes)
		h.amounts[i].bytes -= gone
		n.held[h.amounts[i].pool] -= gone
	}
	c.charge(n, h, 1)
	c.touch(n)
}

func (c *Core) freed(e Freed) {
	if r := c.runs[e.Attempt]; r != nil && !r.asked {
		c.advance(r, job.Proved, c.now)
	}
	n := c.nodes[e.Node]
	if n == nil || n.holdings[e.Attempt] == nil {
		c.emit(&Release{Attempt: e.Attempt, Node: e.Node})
		return
	}
	h := n.holdings[e.Attempt]
	c.charge(n, h, -1)
	n.drop(h, c.now)
	n.ended, n.leaveUntil = h, time.Time{}
	c.touch(n)
}

// settleEnded releases what nobody took over on a node.
func (c *Core) settleEnded(n *node) {
	if n.ended != nil {
		c.emit(&Release{Attempt: n.ended.attempt, Node: n.name})
		n.ended = nil
	}
}

// releaseEnded does so on all nodes. Only nodes that were touched can have something.
func (c *Core) releaseEnded() {
	for _, n := range c.order {
		c.settleEnded(n)
	}
}

func (c *Core) evicted(e Evicted) {
	n := c.nodes[e.Node]
	if n == nil {
		return
	}
	for _, s := range n.assets {
		if s.name != e.Asset || !s.present || s.evictAt.IsZero() {
			continue
		}
		s.evictAt = time.Time{}
		switch {
		case !e.OK:
			s.keepUntil = c.now.Add(c.cfg.EvictTimeout)
		case s.refs == 0:
			n.unload(s)
		}
	}
	c.touch(n)
}

// equalAmounts compares what an ended attempt asked for with what the next one needs.
func equalAmounts(a, b ledger.Amounts) bool { return a != nil && maps.Equal(a, b) }
