package scheduler

import (
	"fmt"
	"slices"
	"time"
)

// promisesMax bounds the partitions that wait for a faster device: each is looked at by itself.
const promisesMax = 16

// worthWaiting tells whether a job's last waiting partition is done sooner when it waits for a device that is about to
// be free than when it goes to a spot now; then it is promised to that device. Only the last one decides when a job
// ends; for others it is better that no device idles. A promise counts as work of the device for those that come after,
// so a queue of such partitions does not leave slow devices idle. Nothing waits longer than the spot would have taken.
func (c *Core) worthWaiting(p *part, now *candidate) bool {
	since := p.promisedAt
	c.unpromise(p)
	if p.job.waiters > 1 || c.promises >= promisesMax || !since.IsZero() && c.now.Sub(since) >= now.takes {
		p.promisedAt = since
		return false
	}
	each := c.estimate(now.profile)
	fast := each - each/4 // less is no other speed
	elsewhere := c.elsewhere(p.shape)
	var best *device
	least := now.takes - now.takes/8 // less is within what estimates are wrong by
	for _, n := range c.order {
		if n.pin != nil && n.pin != p || !n.leaveUntil.IsZero() {
			continue
		}
		for _, d := range n.devices {
			pr := d.lookup(p.job.circuit)
			if pr == nil || pr.device == 0 || pr.device > fast { // one that was never measured is not known to be fast
				continue
			}
			if !d.canRun(p.job.circuit) || elsewhere && p.shape.avoids(d) {
				continue
			}
			if takes, ok := c.takesLater(d, pr, least); ok {
				best, least = d, takes
			}
		}
	}
	if best == nil {
		return false
	}
	if since.IsZero() {
		since = c.now
	}
	c.promise(p, best, since)
	return true
}

// takesLater is how long it takes until a device that has enough to do now has proved a partition, too; false when
// that is not known, or not less than a limit.
func (c *Core) takesLater(d *device, pr *profile, limit time.Duration) (time.Duration, bool) {
	takes := c.busy(d) + pr.device
	for _, other := range d.promised {
		takes += c.estimate(d.profile(other.job.circuit))
	}
	if takes >= limit {
		return 0, false
	}
	i := slices.IndexFunc(pr.choices, func(ch choice) bool { return ch.fits })
	wait, possible := c.waitFor(d.node, &pr.choices[i])
	takes = max(takes, wait+pr.device)
	return takes, possible && takes < limit
}

// promise lets a partition wait for a device, apart from the others of its shape: they may go where it does not.
func (c *Core) promise(p *part, d *device, since time.Time) {
	if p.shape.apart == nil {
		c.dequeue(p)
		c.enqueueApart(p)
	}
	p.promised, p.promisedAt = d, since
	d.promised = append(d.promised, p)
	c.promises++
	p.shape.dirty = false // it was just looked at
	c.holdBack(p.shape, held{kind: heldTurn})
}

// unpromise takes a partition off the device that it waits for.
func (c *Core) unpromise(p *part) {
	if d := p.promised; d != nil {
		c.promises--
		d.promised = slices.DeleteFunc(d.promised, func(other *part) bool { return other == p })
	}
	p.promised, p.promisedAt = nil, time.Time{}
}

// whyPromised tells of a partition that waits for a faster device; false when it does not.
func (c *Core) whyPromised(p *part) (Reason, bool) {
	if p.promised == nil {
		return Reason{}, false
	}
	place := p.promised.place()
	return Reason{Code: Turn, Place: place, Text: fmt.Sprintf("is the last of its job and waits for %s: that is done "+
		"sooner than the slower devices that are free", place)}, true
}
