package scheduler

import (
	"fmt"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Quota bounds what a tenant has in flight on the whole rack: attempts whose bytes are booked, until these are really
// gone. Shared assets count for nobody.
type Quota struct {
	// Partitions bounds the attempts, Bytes the ram that they have booked (a byte of shm is one of ram, too). 0 does not.
	Partitions int
	Bytes      bytesize.Bytes
}

// tenant is a tenant that has a quota.
type tenant struct {
	name  job.Tenant
	quota Quota
	// partitions and bytes are booked.
	partitions int
	bytes      bytesize.Bytes
	// first is the waiter that goes before all others of the tenant that the quota held back; nil when there is none.
	first *part
}

// lacks tells whether attempts with some bytes would pass the quota.
func (t *tenant) lacks(attempts int, bytes bytesize.Bytes) bool {
	return t.quota.Partitions > 0 && t.partitions+attempts > t.quota.Partitions ||
		t.quota.Bytes > 0 && t.bytes+bytes > t.quota.Bytes
}

// tenantOf gives a tenant that has a quota, nil when it has none.
func (c *Core) tenantOf(name job.Tenant) *tenant { return c.tenants[name] }

func makeTenants(quotas map[job.Tenant]Quota) map[job.Tenant]*tenant {
	made := map[job.Tenant]*tenant{}
	for name, quota := range quotas {
		if quota != (Quota{}) {
			made[name] = &tenant{name: name, quota: quota}
		}
	}
	return made
}

// FitsQuota tells whether a partition of a circuit is larger than all that its tenant may have booked, on every device
// that says what it takes; then the error is fault.Exhausted with both numbers. It is nil while none says so.
func (c *Core) FitsQuota(name job.Tenant, circuit string) error {
	t, known := c.tenantOf(name), c.circuits[circuit]
	if t == nil || t.quota.Bytes == 0 || known == nil {
		return nil
	}
	least := bytesize.Bytes(0)
	for _, n := range c.order {
		for _, d := range n.devices {
			pr := d.lookup(known)
			if !d.present || pr.off() || !pr.view.Ready {
				continue
			}
			for i := range pr.choices {
				if ram := pr.choices[i].ram; least == 0 || ram < least {
					least = ram
				}
			}
		}
	}
	if least <= t.quota.Bytes {
		return nil
	}
	return fault.WithHint(fault.New(fault.Exhausted, "a partition of %s needs %s of ram, the quota of tenant %s is %s",
		circuit, least, name, t.quota.Bytes), "the operator can raise schedule.quota_bytes of the coordinators")
}

// charge counts a holding for its tenant, by 1 when it is booked and by −1 when it is not any more.
func (c *Core) charge(n *node, h *holding, by int) {
	if h.stranger {
		c.strangers += by
	}
	t := h.tenant
	if t == nil {
		return
	}
	t.partitions += by
	t.bytes += bytesize.Bytes(by) * n.ram(h)
	if by < 0 {
		c.wakeTenant(t)
	}
}

// ram is what a holding has booked of that pool.
func (n *node) ram(h *holding) (bytes bytesize.Bytes) {
	for _, b := range h.amounts {
		if n.pools[b.pool] == ledger.PoolRAM {
			bytes += b.bytes
		}
	}
	return bytes
}

// own finds the tenant of a holding that the ledger's book has: by the holding that was known, or by its job.
func (c *Core) own(h, known *holding) {
	j := c.jobs[h.attempt.Job]
	switch {
	case known != nil && !known.stranger:
		h.tenant = known.tenant
	case j != nil:
		h.tenant = j.tenant
	default:
		h.stranger = true
	}
}

// adopt finds the holdings of a job that were known before the job was.
func (c *Core) adopt(j *jobState) {
	if c.strangers == 0 {
		return
	}
	for _, n := range c.order {
		for _, h := range n.holdings {
			if h.stranger && h.attempt.Job == j.id {
				c.charge(n, h, -1)
				h.stranger, h.tenant = false, j.tenant
				c.charge(n, h, 1)
			}
		}
	}
}

// wakeTenant has the waiters of a tenant looked at on all nodes.
func (c *Core) wakeTenant(t *tenant) {
	for _, s := range c.queue {
		s.dirty = s.dirty || s.tenant == t
	}
}

// overQuota tells whether its tenant's quota keeps a waiter from being booked with some bytes. The quota has an order
// of its own, like a node that is pinned: from [Config.Ageing] after it held a waiter back first, those of the tenant
// behind that waiter leave it what it needs, so that small ones do not keep a large one out.
func (c *Core) overQuota(p *part, bytes bytesize.Bytes) bool {
	t := p.job.tenant
	switch {
	case t == nil:
		return false
	case t.lacks(1, bytes):
		return true
	}
	q := t.first
	return q != nil && q != p && q.before(p) && c.now.Sub(q.quotaAt) >= c.cfg.Ageing &&
		t.lacks(2, bytes+q.quotaNeed) && c.runnable(q.job.circuit) > 0
}

// heldByQuota notes that the quota held a waiter back. Nothing is kept for one that is larger than
// the whole quota.
func (c *Core) heldByQuota(p *part, bytes bytesize.Bytes) {
	t := p.job.tenant
	if p.quotaAt.IsZero() {
		p.quotaAt = c.now
	}
	p.quotaNeed = bytes
	larger := t.quota.Bytes > 0 && bytes > t.quota.Bytes
	if !larger && t.lacks(1, bytes) && (t.first == nil || p.before(t.first)) {
		t.first = p
	}
}

// leaveQuota forgets a waiter that waits no more.
func (c *Core) leaveQuota(p *part) {
	if t := p.job.tenant; t != nil && t.first == p {
		t.first = nil
		c.wakeTenant(t)
	}
}

// stoppedByQuota tells whether the quota holds a waiter back that it was noted for.
func (c *Core) stoppedByQuota(p *part) bool {
	return p.job.tenant != nil && !p.quotaAt.IsZero() && c.overQuota(p, p.quotaNeed)
}

// whyQuota tells of a waiter that its tenant's quota holds back from a spot; false when it does not.
func (c *Core) whyQuota(p *part, at spot) (Reason, bool) {
	t := p.job.tenant
	if t == nil {
		return Reason{}, false
	}
	r := Reason{Code: QuotaCode, Place: at.device.place()}
	need, most := at.choice.ram, t.quota.Bytes
	booked := fmt.Sprintf("tenant %s has %d partitions with %s of ram booked", t.name, t.partitions, t.bytes)
	switch {
	case most > 0 && need > most:
		r.Need, r.Free, r.Missing = need, most, need-most
		r.Text = fmt.Sprintf("a partition of %s needs %s of ram, the quota of tenant %s is %s",
			p.job.circuit.name, need, t.name, most)
	case most > 0 && t.bytes+need > most:
		r.Need, r.Free = need, max(0, most-t.bytes)
		r.Missing = t.bytes + need - most
		r.Text = fmt.Sprintf("%s, its quota is %s: %s are missing", booked, most, r.Missing)
	case t.lacks(1, need):
		r.Text = fmt.Sprintf("%s, its quota is %d partitions", booked, t.quota.Partitions)
	case c.overQuota(p, need):
		r.Text = fmt.Sprintf("%s; the rest of its quota is kept for partition %d of job %s", booked, t.first.index,
			t.first.job.id)
	default:
		return Reason{}, false
	}
	return r, true
}
