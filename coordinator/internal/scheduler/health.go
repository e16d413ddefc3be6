package scheduler

import (
	"fmt"

	"github.com/proofrack/proofrack/shared/job"
)

// judge counts faults that a device is blamed for. One that repeats them is put in quarantine; when most devices have
// them at once, parameters or a driver are wrong rather than the devices, and everything stops instead. One partition
// alone puts no device in quarantine, one job alone stops nothing.
func (c *Core) judge(r *run, e Ended) {
	d := r.device
	switch {
	case e.Outcome == job.OutcomeOK:
		d.bad = 0
		c.unhalt()
	case e.Outcome == job.OutcomeFailed && e.BlameDevice:
		part := job.Attempt{Job: e.Attempt.Job, Partition: e.Attempt.Partition}
		if d.bad == 0 {
			d.badParts = 0
		}
		if d.bad++; d.badPart != part || d.badParts == 0 {
			d.badParts++
		}
		d.badAt, d.badPart = c.now, part
		if c.halted || c.halt() {
			return
		}
		if d.bad >= c.cfg.QuarantineAfter && d.badParts > 1 {
			d.quarantined = true
			d.view.Reason = fmt.Sprintf("%d faults in a row", d.bad)
			c.emit(&Quarantine{Place: d.place(), Reason: d.view.Reason})
			c.reckon(d.node, false)
		}
	}
}

// suspects counts devices that were blamed lately, all that are in service or suspect, and whether more than one job
// was there: one job alone stops nothing.
func (c *Core) suspects() (bad, all int, many bool) {
	var only job.ID
	for _, n := range c.order {
		for _, d := range n.devices {
			suspect := d.bad > 0 && (c.halted || c.now.Sub(d.badAt) <= c.cfg.HaltWindow) && !d.quarantined
			if suspect || d.usable {
				all++
			}
			if suspect {
				bad++
				many = many || only != "" && only != d.badPart.Job
				only = d.badPart.Job
			}
		}
	}
	return bad, all, many
}

// halt stops admission when most devices fail.
func (c *Core) halt() bool {
	bad, all, many := c.suspects()
	if bad < 2 || 2*bad <= all || !many {
		return false
	}
	c.halted = true
	c.haltReason = fmt.Sprintf("%d of %d devices failed within %s: parameters or driver are wrong rather than the devices",
		bad, all, c.cfg.HaltWindow)
	c.emit(&Halt{Reason: c.haltReason})
	return true
}

// unhalt ends a halt when most devices are not suspect any more.
func (c *Core) unhalt() {
	if !c.halted {
		return
	}
	if bad, all, _ := c.suspects(); 2*bad > all {
		return
	}
	c.halted, c.haltReason, c.allDirty = false, "", true
	c.emit(&Unhalt{})
}

// absolve forgets the faults of a device: it was started again, passed its test or was let back by an operator.
func (c *Core) absolve(d *device) {
	d.bad, d.quarantined = 0, false
	c.unhalt()
}

func (c *Core) readmitted(at Place) {
	n := c.nodes[at.Node]
	if n == nil {
		return
	}
	for _, d := range n.devices {
		if d.view.Device == at.Device {
			c.absolve(d)
			d.view.Quarantined, d.view.Reason = false, ""
		}
	}
	c.reckon(n, false)
	c.touch(n)
}

// resumed ends a halt by an operator's word.
func (c *Core) resumed() {
	for _, n := range c.order {
		for _, d := range n.devices {
			d.bad = 0
		}
	}
	c.unhalt()
}
