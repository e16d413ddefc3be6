package plan

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/job"
)

// admit books an attempt and puts it into its node's queue.
func (s *simulation) admit(is *island, d *scheduler.Admit) {
	index, err := strconv.Atoi(strings.TrimPrefix(string(d.Attempt.Job), "job-"))
	if err != nil || index >= len(s.jobs) {
		panic("plan: an unknown job is admitted: " + d.String())
	}
	j, m := s.jobs[index], is.byName[d.Place.Node]
	dev := m.devices[slices.IndexFunc(m.devices, func(d2 *device) bool { return d2.name == d.Place.Device })]
	a := &attempt{
		name: d.Attempt, job: j, node: m, device: dev, times: j.circuit.device(dev.kind.Kind), booked: d.Needs.Amounts,
		held: d.Held, waited: d.Waited, left: 1,
		span: Span{Job: index, Partition: d.Attempt.Partition, Node: m.index, Device: dev.index, Admitted: s.now},
	}
	a.assetsAt = m.load(d.Needs.Assets, s.now, s.rack.Policy.Warm)
	m.book(a.booked, s.now, 1)
	is.live[a.name] = a
	is.waiting--
	s.waited = max(s.waited, d.Waited)
	p := &j.view.Partitions[d.Attempt.Partition]
	p.Stage, p.Fence, p.Node, p.Device = job.Reserved, d.Attempt.Fence, d.Place.Node, d.Place.Device
	is.events = append(is.events, scheduler.Granted{Attempt: a.name})
	m.queue = append(m.queue, a)
	s.at(s.now, func() { s.fill(m) })
}

// fill gives free slots to those that wait for one.
func (s *simulation) fill(m *machine) {
	if len(m.queue) == 0 || len(m.synthesizing) >= m.kind.SynthSlots {
		return
	}
	m.work(s.now)
	for len(m.queue) > 0 && len(m.synthesizing) < m.kind.SynthSlots {
		a := m.queue[0]
		m.queue = m.queue[1:]
		m.synthesizing = append(m.synthesizing, a)
		a.span.Started = s.now
		m.hold(a, a.job.circuit.Sizes.Synthesizing, s.now)
		s.tell(m.home, scheduler.Progress{Attempt: a.name, Stage: job.Synthesizing})
	}
	s.planSealed(m)
}

// planSealed sets when the next synthesis of a node ends; earlier plans are void.
func (s *simulation) planSealed(m *machine) {
	m.version++
	version := m.version
	if at, any := m.nextSealed(); any {
		s.at(at, func() {
			if m.version == version {
				s.seal(m)
			}
		})
	}
}

// seal ends the syntheses that are done.
func (s *simulation) seal(m *machine) {
	m.work(s.now)
	for _, a := range m.sealedNow() {
		a.span.Sealed = s.now
		m.synthTime += s.now - a.span.Started
		m.hold(a, a.job.circuit.Sizes.Sealed, s.now)
		a.device.ready = append(a.device.ready, a)
		m.sealed++
		s.tell(m.home, scheduler.Progress{Attempt: a.name, Stage: job.Sealed})
		s.at(max(s.now, a.assetsAt), func() { s.feed(m, a.device) })
	}
	s.planSealed(m)
	s.fill(m)
}

// feed lets feeders take what is sealed, and the device begin.
func (s *simulation) feed(m *machine, d *device) {
	for len(d.ready) > 0 && len(d.hands) < d.kind.Feeders && d.ready[0].assetsAt <= s.now {
		a := d.ready[0]
		d.ready = d.ready[1:]
		d.hands = append(d.hands, a)
		m.sealed--
		a.span.Taken = s.now
		m.hold(a, a.job.circuit.Sizes.Proving, s.now)
		s.tell(m.home, scheduler.Progress{Attempt: a.name, Stage: job.Proving})
	}
	m.sealedMax = max(m.sealedMax, m.sealed)
	if d.proving != nil || len(d.hands) == 0 {
		return
	}
	a := d.hands[0]
	d.proving, d.provingAt = a, s.now
	a.span.Proving = s.now
	s.blame(d, a)
	s.at(s.now+seconds(a.times.Seconds), func() { s.proved(m, d, a) })
}

// proved frees the device; the CPU goes on.
func (s *simulation) proved(m *machine, d *device, a *attempt) {
	d.proving, d.hands, d.idleAt = nil, d.hands[1:], s.now
	d.busy += s.now - a.span.Proving
	d.count++
	a.span.Proved = s.now
	m.hold(a, a.job.circuit.Sizes.Finishing, s.now)
	s.feed(m, d)
	s.at(s.now+seconds(a.times.FinishSeconds), func() { s.ended(a) })
}

// ended counts a partition, and its job when it was the last.
func (s *simulation) ended(a *attempt) {
	is, j := a.node.home, a.job
	a.span.Ended = s.now
	s.lastAt = s.now
	s.tell(is, scheduler.Ended{
		Attempt: a.name, Outcome: job.OutcomeOK, Synth: a.span.Sealed - a.span.Started,
		Device: a.span.Proved - a.span.Proving,
	})
	j.view.Partitions[a.name.Partition].Stage = job.Verified
	if j.left--; j.left > 0 {
		s.tell(is, scheduler.JobSeen{Job: cloneView(&j.view)})
	} else {
		s.tell(is, scheduler.JobGone{Job: j.view.ID})
		s.latency = append(s.latency, s.now-j.at)
		is.unfinished--
		s.inFlight[j.kind]--
		if s.load.Jobs[j.kind].InFlight > 0 {
			s.at(s.now, func() { s.arrive(j.kind) })
		}
	}
	s.at(s.now+seconds(a.times.GoneSeconds), func() { s.gone(a) })
}

// gone gives the bytes back.
func (s *simulation) gone(a *attempt) {
	a.span.Gone = s.now
	a.node.hold(a, nil, s.now)
	a.node.book(a.booked, s.now, -1)
	delete(a.node.home.live, a.name)
	s.spans = append(s.spans, a.span)
	s.tell(a.node.home, scheduler.Freed{Attempt: a.name, Node: a.node.name})
}

// Cause is why a device had nothing to prove.
type Cause string

// Causes of idle devices. Memory is one per pool: "memory:ram".
const (
	CauseNoWork    Cause = "no work"
	CauseSynthesis Cause = "synthesis"
	CauseAssets    Cause = "loading assets"
	// CauseAhead is that the scheduler held work back since the device had enough ahead of it, CauseWorkers that all
	// workers of a box had a partition.
	CauseAhead   Cause = "work ahead"
	CauseWorkers Cause = "workers"
	causeMemory        = "memory:"
)

// blame shares out the time that a device was idle by the way of the attempt that ended it. Before its job came there
// was no work. Of the time until it was sealed as much is due to what held it before it was admitted as it was held:
// so much earlier it could have been there. The rest is synthesis, then loading of assets.
func (s *simulation) blame(d *device, a *attempt) {
	from := d.idleAt
	until := func(at time.Duration, cause Cause) {
		if at = min(at, s.now); at > from {
			s.idle[cause] += at - from
			from = at
		}
	}
	until(a.job.at, CauseNoWork)
	until(min(a.span.Sealed, from+a.waited), s.holder(a))
	until(a.span.Sealed, CauseSynthesis)
	until(s.now, CauseAssets)
}

// holder is what held an attempt before it was admitted.
func (s *simulation) holder(a *attempt) Cause {
	switch a.held.Code {
	case scheduler.Memory, scheduler.Pinned, scheduler.Eviction:
		if strings.HasPrefix(string(a.held.Pool), vram) {
			return causeMemory + vram
		}
		return Cause(causeMemory + string(cmp.Or(a.held.Pool, "ram")))
	case scheduler.Slots:
		return CauseSynthesis
	default:
	}
	if s.rack.Policy.Name == PolicyBox {
		return CauseWorkers
	}
	return CauseAhead
}
