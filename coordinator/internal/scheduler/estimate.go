package scheduler

import (
	"time"

	"github.com/proofrack/proofrack/shared/job"
)

// Drain tells how many partitions run on a node, or on all for "", and about how long they will take.
func (c *Core) Drain(name job.Node) (running int, left time.Duration) {
	for _, n := range c.order {
		if name != "" && n.name != name {
			continue
		}
		for _, d := range n.devices {
			running += len(d.runs)
			left = max(left, c.busy(d))
		}
	}
	return running, left
}

// Left estimates how long a job will take from now on; false when it can't be told: it is not known, paused, or no
// device can run it. It looks at all jobs that wait.
func (c *Core) Left(id job.ID) (time.Duration, bool) {
	j := c.jobs[id]
	if j == nil || c.paused || c.halted {
		return 0, false
	}
	var left time.Duration
	for i := range j.parts {
		p := &j.parts[i]
		if p.run != nil && p.state == running && p.run.stage != job.Proved {
			left = max(left, c.endOf(p.run))
		}
	}
	if j.waiters == 0 {
		return left, true
	}
	able, busy := 0, time.Duration(0)
	for _, n := range c.order {
		for _, d := range n.devices {
			if d.canRun(j.circuit) {
				able++
				busy += c.busy(d)
			}
		}
	}
	if able == 0 {
		return 0, false
	}
	_, work := c.aheadOf(j)
	work += time.Duration(j.waiters) * j.circuit.typical()
	return max(left, (busy+work)/time.Duration(able)), true
}

// aheadOf counts the partitions of other jobs that wait and go before a job's, and the devices' time for them.
func (c *Core) aheadOf(j *jobState) (count int, work time.Duration) {
	for _, other := range c.withWaiters {
		if other != j && other.parts[0].before(&j.parts[0]) {
			count += other.waiters
			work += time.Duration(other.waiters) * other.circuit.typical()
		}
	}
	return count, work
}

// typical is how long devices take for a circuit, or the guess.
func (c *circuit) typical() time.Duration {
	if c.device > 0 {
		return c.device
	}
	return c.guess
}

// Stats are numbers for metrics and operators.
type Stats struct {
	// Waiting and Pausing are partitions that wait in order, and that may not go yet; Asked have an Admit without an
	// outcome; Running own an attempt.
	Waiting, Pausing, Asked, Running int
	// Pinned are nodes whose free bytes are kept for a waiter.
	Pinned int
	// Paused and Halted tell why nothing is admitted, "" when not.
	Paused, Halted string
}

// Stats counts. It costs the number of attempts and shapes.
func (c *Core) Stats() Stats {
	s := Stats{Pausing: len(c.pausing), Halted: c.haltReason}
	for _, shape := range c.queue {
		s.Waiting += len(shape.waiters)
	}
	for _, r := range c.runs {
		if r.asked {
			s.Asked++
		} else {
			s.Running++
		}
	}
	for _, n := range c.order {
		if n.pin != nil {
			s.Pinned++
		}
	}
	if c.paused {
		s.Paused = "paused" + because(c.pauseReason)
	}
	return s
}
