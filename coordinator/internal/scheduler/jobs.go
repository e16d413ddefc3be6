package scheduler

import (
	"time"

	"github.com/proofrack/proofrack/shared/job"
)

// run is an attempt that was asked for or owns its partition.
type run struct {
	attempt job.Attempt
	// part is nil once the partition went on without it while the Admit had no outcome.
	part    *part
	node    *node
	device  *device
	profile *profile
	stage   job.Stage
	stageAt time.Time
	asked   bool
	// from is the ended attempt whose reservation was to be handed over.
	from *job.Attempt
}

func (c *Core) jobSeen(v JobView) {
	j := c.jobs[v.ID]
	if j == nil {
		j = &jobState{
			id: v.ID, circuit: c.circuit(v.Circuit), tenant: c.tenantOf(v.Tenant), priority: v.Priority,
			submitted: v.SubmittedAt, deadline: v.Deadline, parts: make([]part, len(v.Partitions)),
		}
		j.due = c.dueOf(j, v.left())
		for i := range j.parts {
			j.parts[i] = part{job: j, index: i}
		}
		c.jobs[v.ID] = j
		c.adopt(j)
	} else if !j.deadline.IsZero() {
		c.setDue(j, c.dueOf(j, v.left()))
	}
	for i := range min(len(v.Partitions), len(j.parts)) {
		c.partSeen(&j.parts[i], &v.Partitions[i])
	}
}

func (c *Core) partSeen(p *part, v *PartitionView) {
	if v.Fence < p.fence {
		return // an older view
	}
	known := p.fence
	p.fence = v.Fence
	switch {
	case v.Stage == job.Waiting:
		if p.state == asked && v.Fence < p.run.attempt.Fence {
			return
		}
		if (p.state == waiting || p.state == pausing) && v.Fence == known {
			return
		}
		c.dequeue(p)
		c.leave(p)
		p.avoid, p.notBefore, p.passedAt, p.refusals, p.cause = v.Avoid, v.NotBefore, time.Time{}, 0, ""
		p.quotaAt, p.last = time.Time{}, v.Last
		if v.NotBefore.After(c.now) {
			c.pause(p)
			return
		}
		since := v.StageAt
		for _, at := range []time.Time{v.NotBefore, p.job.submitted} {
			if at.After(since) {
				since = at
			}
		}
		if since.After(c.now) {
			since = c.now
		}
		c.enqueue(p, since)
	case v.Stage.Running():
		if p.run != nil && p.run.attempt.Fence == v.Fence {
			c.advance(p.run, v.Stage, c.now)
			return
		}
		c.dequeue(p)
		c.leave(p)
		c.start(p, p.attempt(v.Fence), Place{Node: v.Node, Device: v.Device})
		p.state = running
		c.advance(p.run, v.Stage, v.StageAt)
	default:
		c.dequeue(p)
		c.leave(p)
	}
}

func (c *Core) jobGone(id job.ID) {
	j := c.jobs[id]
	if j == nil {
		return
	}
	for i := range j.parts {
		c.dequeue(&j.parts[i])
		c.leave(&j.parts[i])
	}
	delete(c.jobs, id)
}

// start books a run on a device.
func (c *Core) start(p *part, a job.Attempt, at Place) *run {
	n := c.node(at.Node)
	d := n.device(at.Device)
	r := &run{
		attempt: a, part: p, node: n, device: d, profile: d.profile(p.job.circuit), stage: job.Reserved, stageAt: c.now,
	}
	p.run = r
	c.runs[a] = r
	d.runs = append(d.runs, r)
	r.count(1)
	return r
}

// leave parts a partition from its run, which takes no device any more.
func (c *Core) leave(p *part) {
	r := p.run
	if r == nil {
		p.state = idle
		return
	}
	c.advance(r, job.Proved, c.now)
	p.run, r.part, p.state = nil, nil, idle
	if !r.asked {
		delete(c.runs, r.attempt)
	}
}

// rank orders the stages of a run.
func rank(s job.Stage) int {
	switch s {
	case job.Reserved:
		return 1
	case job.Synthesizing:
		return 2
	case job.Sealed:
		return 3
	case job.Proving:
		return 4
	case job.Proved:
		return 5
	case job.Waiting, job.Verified, job.StageFailed, job.StageStopped:
	}
	return 0
}

// advance moves a run on; a stage that was reached or passed changes nothing.
func (c *Core) advance(r *run, stage job.Stage, at time.Time) {
	if rank(stage) <= rank(r.stage) {
		return
	}
	r.count(-1)
	r.stage, r.stageAt = stage, at
	r.count(1)
	switch stage {
	case job.Proving:
		r.device.provingUntil = at.Add(c.estimate(r.profile))
	case job.Proved:
		r.device.forget(r)
	default:
	}
	c.touch(r.node)
}

// count adds a run to what its device and node have ahead, or takes it out.
func (r *run) count(n int) {
	r.device.counted = false
	switch r.stage {
	case job.Reserved, job.Synthesizing:
		r.profile.ahead += n
		r.node.unsealed += n
	case job.Sealed:
		r.profile.ahead += n
		r.profile.sealed += n
	case job.Proving:
		r.device.proving += n
	default:
	}
}

func (c *Core) granted(a job.Attempt) {
	r := c.runs[a]
	if r == nil || !r.asked {
		return
	}
	r.asked = false
	if h := r.node.holdings[a]; h != nil {
		h.asked = false
		for _, s := range h.assets {
			s.confirmed = true
		}
	}
	if r.part == nil {
		delete(c.runs, a)
		return
	}
	r.part.state, r.part.refusals, r.part.cause = running, 0, ""
}

func (c *Core) refused(e Refused) {
	r := c.runs[e.Attempt]
	if r == nil || !r.asked {
		return
	}
	n, p := r.node, r.part
	unsure := !e.OfJob
	if h := n.holdings[e.Attempt]; h != nil {
		c.charge(n, h, -1)
		unsure = n.drop(h, c.now) || unsure // the ledger may have kept an asset
	}
	r.asked = false
	c.advance(r, job.Proved, c.now)
	delete(c.runs, e.Attempt)
	c.touch(n)
	if r.from != nil {
		c.emit(&Release{Attempt: *r.from, Node: n.name})
	}
	if !e.OfJob && r.from == nil { // a Reserve may work where a Transfer did not
		n.leaveUntil, n.leaveCause = c.now.Add(c.cfg.RefusalPause), e.Cause
	}
	if unsure {
		c.emit(&Refresh{Node: n.name})
	}
	if p == nil {
		return
	}
	p.run, p.state = nil, idle
	if !e.OfJob {
		c.enqueue(p, p.since)
		return
	}
	pause := c.cfg.RefusalPause
	for range p.refusals {
		pause = min(2*pause, c.cfg.RefusalPauseMax)
	}
	p.refusals, p.cause, p.notBefore = p.refusals+1, e.Cause, c.now.Add(pause)
	c.pause(p)
}

func (c *Core) progress(a job.Attempt, stage job.Stage) {
	if r := c.runs[a]; r != nil {
		c.advance(r, stage, c.now)
	}
}

func (c *Core) ended(e Ended) {
	r := c.runs[e.Attempt]
	if r == nil {
		return
	}
	if e.Outcome == job.OutcomeOK {
		c.measure(r, e.Synth, e.Device)
		c.learn(r, e.Peaks)
	}
	c.judge(r, e)
	if h := r.node.holdings[e.Attempt]; h != nil && e.Outcome == job.OutcomeLost {
		h.limbo = true // its lease is over, so it can't be handed over
	}
	c.advance(r, job.Proved, c.now)
}
