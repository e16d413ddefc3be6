package scheduler

import (
	"cmp"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
)

// leaving tells whether an asset is on its way out.
func (c *Core) leaving(s *asset) bool {
	return !s.evictAt.IsZero() && c.now.Sub(s.evictAt) < c.cfg.EvictTimeout
}

// makeRoom asks for idle assets to go for a waiter that found no spot, where that is quicker than to wait. The node is
// kept for it then.
func (c *Core) makeRoom(p *part, where []*node, elsewhere bool) {
	if p.pin != nil && !slices.Contains(where, p.pin) {
		return
	}
	for _, n := range where {
		if p.pin != nil && p.pin != n || n.pin != nil && n.pin != p && n.pin.before(p) || !n.leaveUntil.IsZero() {
			continue
		}
		for _, d := range n.devices {
			if !d.canRun(p.job.circuit) || elsewhere && p.shape.avoids(d) {
				continue
			}
			pr := d.lookup(p.job.circuit)
			if !c.wants(d, pr, 0) {
				continue
			}
			for i := range pr.choices {
				ch := &pr.choices[i]
				if !ch.fits {
					continue
				}
				if c.evictFor(p, spot{n, d, pr, ch}) {
					return
				}
				break
			}
		}
	}
}

// evictFor asks for assets of a node to go, if that lets a waiter run there sooner. It reports whether it did.
func (c *Core) evictFor(p *part, at spot) bool {
	n := at.node
	idle := c.idleAssets(n, at.choice)
	if len(idle) == 0 {
		return false
	}
	c.sum(n, at.choice)
	lack := slices.Clone(c.need)
	for i := range lack {
		lack[i] -= n.free(i)
	}
	for _, s := range n.assets {
		if s.present && c.leaving(s) {
			lack[s.pool] -= s.bytes
		}
	}
	var chosen []*asset
	var cost bytesize.Bytes
	for _, s := range idle {
		if lack[s.pool] > 0 {
			lack[s.pool] -= s.bytes
			chosen = append(chosen, s)
			cost += s.bytes
		}
	}
	if len(chosen) == 0 || slices.ContainsFunc(lack, func(b bytesize.Bytes) bool { return b > 0 }) {
		return false
	}
	loading := c.loadTime(cost)
	if wait, possible := c.waitFor(n, at.choice); possible && wait <= loading {
		return false
	}
	c.settleEnded(n)
	for _, s := range chosen {
		for _, same := range n.assets {
			if same.name == s.name {
				same.evictAt = c.now
			}
		}
		c.emit(&Evict{Node: n.name, Asset: s.name, For: p.attempt(p.fence + 1)})
	}
	if p.pin == nil {
		c.pinTo(p, at)
		p.shape.dirty = false
	}
	return true
}

// loadTime is about how long a node takes to load so many bytes of assets.
func (c *Core) loadTime(b bytesize.Bytes) time.Duration {
	return time.Duration(float64(b) / float64(c.cfg.LoadRate) * float64(time.Second))
}

// idleAssets are those that nothing has used for long enough and a choice doesn't need, the cheapest to lose first: by
// how long they were not used, in units of the time it takes to load them again. The ledger's pool of free segments is
// none of them: it gives way by itself.
func (c *Core) idleAssets(n *node, ch *choice) []*asset {
	var idle []*asset
	for _, s := range n.assets {
		wanted := slices.ContainsFunc(ch.assets, func(a assetNeed) bool { return a.asset == s })
		if n.pin != nil && n.pinned.choice != nil && !wanted {
			wanted = slices.ContainsFunc(n.pinned.choice.assets, func(a assetNeed) bool { return a.asset == s })
		}
		if s.present && s.refs == 0 && s.bytes > 0 && !wanted && !c.leaving(s) && !c.now.Before(s.keepUntil) &&
			c.now.Sub(s.usedAt) >= min(c.loadTime(s.bytes), c.cfg.EvictIdle) {
			idle = append(idle, s)
		}
	}
	weight := func(s *asset) float64 { return float64(c.now.Sub(s.usedAt)) / float64(s.bytes) }
	slices.SortStableFunc(idle, func(a, b *asset) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a.name, b.name))
	})
	return idle
}
