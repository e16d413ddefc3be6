package scheduler

import (
	"time"

	"github.com/proofrack/proofrack/shared/job"
)

// dueOf is when a job should begin at the latest; of jobs of one priority the one with the earliest goes first. With a
// deadline that is the deadline less what is left to do (its slack, and the present added: so it does not change with
// time alone). Without one it is [Config.Patience] after it was submitted. A deadline further away than that changes
// nothing, and none puts a job before those that are older by more than Patience: so nobody waits for ever.
func (c *Core) dueOf(j *jobState, left int) time.Time {
	latest := j.submitted.Add(c.cfg.Patience)
	if j.deadline.IsZero() {
		return latest
	}
	due := j.deadline.Add(-c.rest(j.circuit, left))
	switch {
	case due.After(latest):
		return latest
	case due.Before(j.submitted):
		return j.submitted
	}
	return due
}

// left counts the partitions of a view that are not proved yet.
func (v *JobView) left() (count int) {
	for i := range v.Partitions {
		if stage := v.Partitions[i].Stage; stage == job.Waiting || stage.Running() {
			count++
		}
	}
	return count
}

// duesMax bounds how many jobs have their order looked at anew per tick.
const duesMax = 64

// lookDues orders some of the jobs that wait and have a deadline anew, in turns: what is left of them may take longer,
// or less long, than it was thought to.
func (c *Core) lookDues() {
	var due []*jobState
	for range min(duesMax, len(c.withWaiters)) {
		c.dueNext++
		if j := c.withWaiters[c.dueNext%len(c.withWaiters)]; !j.deadline.IsZero() {
			due = append(due, j)
		}
	}
	for _, j := range due {
		left := 0
		for i := range j.parts {
			if j.parts[i].state != idle {
				left++
			}
		}
		c.setDue(j, c.dueOf(j, left))
	}
}

// rest estimates how long partitions of a circuit take when all devices that can run it work on them.
func (c *Core) rest(circuit *circuit, partitions int) time.Duration {
	if partitions == 0 {
		return 0
	}
	each := circuit.device
	if each == 0 {
		each = circuit.guess
	}
	devices := max(1, c.runnable(circuit))
	return circuit.synth + time.Duration((partitions+devices-1)/devices)*each
}

// runnable counts the devices that can run a circuit once bytes are free.
func (c *Core) runnable(circuit *circuit) int {
	if circuit.countedAt != c.generation || circuit.countedAt == 0 {
		circuit.countedAt, circuit.devices = c.generation, 0
		for _, n := range c.order {
			for _, d := range n.devices {
				if d.canRun(circuit) {
					circuit.devices++
				}
			}
		}
	}
	return circuit.devices
}

// setDue puts a job where it belongs by when it should begin. Changes of less than a quarter of a proof are not worth
// it.
func (c *Core) setDue(j *jobState, due time.Time) {
	each := j.circuit.device
	if each == 0 {
		each = j.circuit.guess
	}
	if due.Sub(j.due).Abs() <= each/4 {
		return
	}
	var moved []*part
	for i := range j.parts {
		if p := &j.parts[i]; p.state == waiting {
			moved = append(moved, p)
			c.dequeue(p)
		}
	}
	j.due = due
	for _, p := range moved {
		c.enqueue(p, p.since)
	}
}
