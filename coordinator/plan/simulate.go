package plan

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// island is machines under one scheduler: the whole rack, or one box.
type island struct {
	core       *scheduler.Core
	machines   []*machine
	byName     map[job.Node]*machine
	events     []scheduler.Event
	live       map[job.Attempt]*attempt
	unfinished int
	waiting    int
	ticking    bool
	// quiet counts ticks since anything else happened.
	quiet int
}

// simJob is a job in simulated time.
type simJob struct {
	index   int
	kind    int
	circuit *Circuit
	view    scheduler.JobView
	home    *island
	at      time.Duration
	left    int
}

// simulation is one run.
type simulation struct {
	profile *Profile
	rack    *Rack
	load    *Load
	now     time.Duration
	queue   timeline
	serial  int

	islands  []*island
	machines []*machine
	touched  []*machine
	jobs     []*simJob
	inFlight []int // by kind of job
	next     []int // jobs of each kind that were submitted
	spans    []Span
	latency  []time.Duration
	waited   time.Duration
	firstAt  time.Duration
	lastAt   time.Duration
	idle     map[Cause]time.Duration
	killed   *Killed
	hash     uint64
}

// epoch is where simulated time begins for the scheduler; the zero time means "never" there.
func epoch() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// happening is something due at a time; serial orders those of one instant by age.
type happening struct {
	at     time.Duration
	serial int
	do     func()
}

type timeline []happening

// Len, Less, Swap, Push and Pop implement heap.Interface.
func (t timeline) Len() int { return len(t) }
func (t timeline) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(t[i].at, t[j].at), cmp.Compare(t[i].serial, t[j].serial)) < 0
}
func (t timeline) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

// Push implements heap.Interface.
func (t *timeline) Push(x any) {
	h, _ := x.(happening)
	*t = append(*t, h)
}

// Pop implements heap.Interface.
func (t *timeline) Pop() any {
	last := (*t)[len(*t)-1]
	(*t)[len(*t)-1] = happening{}
	*t = (*t)[:len(*t)-1]
	return last
}

func (s *simulation) at(when time.Duration, do func()) {
	s.serial++
	heap.Push(&s.queue, happening{max(when, s.now), s.serial, do})
}

func newSimulation(p *Profile, r *Rack, l *Load) (*simulation, error) {
	if _, err := l.partitions(p); err != nil {
		return nil, err
	}
	s := &simulation{
		profile: p, rack: r, load: l, inFlight: make([]int, len(l.Jobs)), next: make([]int, len(l.Jobs)),
		idle: map[Cause]time.Duration{}, firstAt: -1,
	}
	for i := range r.Nodes {
		for number := range r.Nodes[i].Count {
			m := newMachine(len(s.machines), &r.Nodes[i], number, &r.Policy)
			m.touch = func() { s.touch(m) }
			s.machines = append(s.machines, m)
		}
	}
	groups := [][]*machine{s.machines}
	if r.Policy.Name == PolicyBox {
		groups = nil
		for _, m := range s.machines {
			groups = append(groups, []*machine{m})
		}
	}
	for _, group := range groups {
		if err := s.addIsland(group); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// schedulerConfig is the coordinator's own, with the policy's settings. A box has no look ahead but its number of
// workers: partitions in synthesis or waiting for the device, or only those in synthesis.
func schedulerConfig(p *Policy, slots int) scheduler.Config {
	cfg := scheduler.DefaultConfig()
	if p.Name == PolicyRack {
		cfg.WorkAhead = cmp.Or(time.Duration(p.WorkAhead), cfg.WorkAhead)
		cfg.SealedAhead = cmp.Or(time.Duration(p.SealedAhead), cfg.SealedAhead)
		cfg.Ageing = cmp.Or(time.Duration(p.Ageing), cfg.Ageing)
		return cfg
	}
	cfg.WorkAhead, cfg.SealedAhead, cfg.SynthQueueMax = 1e6*time.Hour, 0, 0
	cfg.GuessDefault = time.Second
	cfg.DevicePartitionsMax = slots
	if p.Permit == PermitSynthesis {
		cfg.DevicePartitionsMax = PartitionsMax
	}
	return cfg
}

func (s *simulation) addIsland(machines []*machine) error {
	core, err := scheduler.New(schedulerConfig(&s.rack.Policy, machines[0].kind.SynthSlots))
	if err != nil {
		return fault.As(fault.Internal, err)
	}
	is := &island{core: core, machines: machines, byName: map[job.Node]*machine{}, live: map[job.Attempt]*attempt{}}
	for _, m := range machines {
		m.home = is
		is.byName[m.name] = m
		view := scheduler.NodeView{
			Node: m.name, Ready: true, SynthSlots: m.kind.SynthSlots, Wire: scheduler.Versions{Min: 1, Max: 1},
			Capacity: m.told, Book: &scheduler.Book{Declared: true},
		}
		for _, d := range m.devices {
			dv := scheduler.DeviceView{
				Device: d.name, Healthy: true, Wire: view.Wire, Circuits: map[string]scheduler.CircuitView{},
			}
			for _, c := range s.wanted() {
				if c.device(d.kind.Kind) == nil {
					continue
				}
				needs := m.needs(c, d)
				if pool, _ := m.lacks(&needs); pool != "" {
					continue
				}
				dv.Circuits[c.Name] = scheduler.CircuitView{Ready: true, Choices: []scheduler.Needs{needs}}
				if s.rack.Policy.Warm {
					for _, a := range needs.Assets {
						if _, there := m.assets[assetKey{a.Name, string(a.Pool)}]; !there {
							view.Book.Assets = append(view.Book.Assets, a)
						}
					}
					m.load(needs.Assets, 0, true)
				}
			}
			view.Devices = append(view.Devices, dv)
		}
		for pool, held := range m.held {
			if held.now > m.capacity[pool] {
				return fault.WithHint(fault.New(fault.Exhausted, "node %s: %s of assets do not fit into its %s of %s",
					m.name, held.now, m.capacity[pool], pool), "leave policy.warm out: then they are loaded on demand")
			}
		}
		s.tell(is, scheduler.NodeSeen{Node: view})
	}
	s.islands = append(s.islands, is)
	return nil
}

// wanted are the circuits that jobs name, in the profile's order.
func (s *simulation) wanted() []*Circuit {
	var out []*Circuit
	for i := range s.profile.Circuits {
		c := &s.profile.Circuits[i]
		if slices.ContainsFunc(s.load.Jobs, func(j JobKind) bool { return j.Circuit == c.Name }) {
			out = append(out, c)
		}
	}
	return out
}

// possible refuses jobs that no node could ever run, with the numbers.
func (s *simulation) possible() error {
	for _, c := range s.wanted() {
		why := fault.New(fault.Invalid, "profile %s has no times of circuit %s on any device of these nodes",
			clip(s.profile.Name), c.Name)
		hint := "it has: "
		for i := range c.Devices {
			hint += c.Devices[i].Kind + " "
		}
		for _, is := range s.islands {
			able := false
			for _, m := range is.machines {
				for _, d := range m.devices {
					if c.device(d.kind.Kind) == nil {
						continue
					}
					needs := m.needs(c, d)
					pool, need := m.lacks(&needs)
					if pool == "" {
						able = true
						continue
					}
					why = fault.New(fault.Exhausted, "a partition of %s with its assets needs %s of %s; node %s has %s",
						c.Name, need, pool, m.name, m.capacity[pool])
					hint = "no node of the plan is large enough"
				}
			}
			if !able {
				return fault.WithHint(why, hint)
			}
		}
	}
	return nil
}

// run goes through simulated time until all jobs are done.
func (s *simulation) run(ctx context.Context) error {
	if err := s.possible(); err != nil {
		return err
	}
	for kind := range s.load.Jobs {
		s.at(time.Duration(s.load.Jobs[kind].At), func() { s.arrive(kind) })
	}
	for step := 0; len(s.queue) > 0 && s.killed == nil; step++ {
		if step%1024 == 0 && ctx.Err() != nil {
			return fmt.Errorf("plan: %w", ctx.Err())
		}
		next, _ := heap.Pop(&s.queue).(happening)
		if next.at > HorizonMax {
			return fault.WithHint(fault.New(fault.Invalid, "the plan would take more than ten years of simulated time"),
				"plan fewer jobs, or look at the profile's times")
		}
		s.now = next.at
		next.do()
		if len(s.queue) == 0 || s.queue[0].at > s.now {
			s.settle()
		}
	}
	if s.killed != nil {
		return nil
	}
	for _, is := range s.islands {
		if is.unfinished > 0 {
			panic(fmt.Sprintf("plan: %d jobs never end: %+v", is.unfinished, is.core.Stats()))
		}
	}
	return nil
}

// settle closes an instant: peaks count what lasts, and a box that holds more than it has is killed.
func (s *simulation) settle() {
	for _, m := range s.touched {
		m.touched = false
		for _, pool := range m.pools {
			held, booked := m.held[pool], m.booked[pool]
			held.settle(s.now)
			booked.settle(s.now)
			if held.now > m.capacity[pool] && s.rack.Policy.Name == PolicyBox && s.killed == nil {
				s.killed = &Killed{Node: string(m.name), Pool: string(pool), Held: held.now, Capacity: m.capacity[pool],
					Sealed: m.sealed, At: s.now.Seconds()}
			}
			if s.rack.Policy.Name == PolicyRack && booked.now > m.capacity[pool] {
				panic(fmt.Sprintf("plan: %s of %s booked on %s, which has %s", booked.now, pool, m.name, m.capacity[pool]))
			}
		}
	}
	s.touched = s.touched[:0]
}

// touch has a machine looked at when the instant closes.
func (s *simulation) touch(m *machine) {
	if !m.touched {
		m.touched = true
		s.touched = append(s.touched, m)
	}
}

// arrive submits jobs of a kind: all that come now.
func (s *simulation) arrive(kind int) {
	k := &s.load.Jobs[kind]
	for s.next[kind] < k.Count && (k.InFlight == 0 || s.inFlight[kind] < k.InFlight) {
		due := time.Duration(k.At) + time.Duration(s.next[kind])*time.Duration(k.Every)
		if due > s.now {
			s.at(due, func() { s.arrive(kind) })
			return
		}
		s.next[kind]++
		s.inFlight[kind]++
		s.submit(kind)
	}
}

// submit gives a job to the rack, or to the box with the fewest unfinished ones.
func (s *simulation) submit(kind int) {
	circuit, err := s.profile.circuit(s.load.Jobs[kind].Circuit)
	if err != nil {
		panic("plan: " + err.Error()) // checked before
	}
	j := &simJob{index: len(s.jobs), kind: kind, circuit: circuit, at: s.now, left: circuit.Partitions}
	j.home = slices.MinFunc(s.islands, func(a, b *island) int { return cmp.Compare(a.unfinished, b.unfinished) })
	j.view = scheduler.JobView{
		ID: job.ID(fmt.Sprintf("job-%06d", j.index)), Circuit: circuit.Name, Priority: s.load.Jobs[kind].Priority,
		SubmittedAt: epoch().Add(s.now), Partitions: make([]scheduler.PartitionView, circuit.Partitions),
	}
	for i := range j.view.Partitions {
		j.view.Partitions[i] = scheduler.PartitionView{Stage: job.Waiting, StageAt: j.view.SubmittedAt}
	}
	if s.firstAt < 0 {
		s.firstAt = s.now
	}
	s.jobs = append(s.jobs, j)
	j.home.unfinished++
	j.home.waiting += circuit.Partitions
	s.tell(j.home, scheduler.JobSeen{Job: cloneView(&j.view)})
	s.tick(j.home)
}

// cloneView keeps the scheduler from seeing later changes.
func cloneView(v *scheduler.JobView) scheduler.JobView {
	c := *v
	c.Partitions = slices.Clone(v.Partitions)
	return c
}

// tickMost bounds the pause between two ticks.
const tickMost = 10 * time.Minute

// tick wakes a scheduler every second while partitions wait, as its contract asks; less often the longer nothing else
// happens.
func (s *simulation) tick(is *island) {
	if is.ticking {
		return
	}
	is.ticking = true
	pause := min(tickMost, time.Second<<min(is.quiet, 10))
	is.quiet++
	s.at(s.now+pause, func() {
		is.ticking = false
		if is.waiting > 0 {
			s.tell(is, scheduler.Tick{})
			s.tick(is)
		}
	})
}

// tell gives a scheduler an event and carries out what it decides, and what follows from that.
func (s *simulation) tell(is *island, event scheduler.Event) {
	if _, tick := event.(scheduler.Tick); !tick {
		is.quiet = 0
	}
	is.events = append(is.events, event)
	if len(is.events) > 1 {
		return
	}
	for ; len(is.events) > 0; is.events = is.events[1:] {
		for _, decision := range is.core.Apply(epoch().Add(s.now), is.events[0]) {
			s.note(decision.String())
			s.carryOut(is, decision)
		}
	}
}

// note folds a decision into the run's fingerprint.
func (s *simulation) note(line string) {
	const prime = 1099511628211
	for _, b := range fmt.Appendf(nil, "%d %s\n", s.now, line) {
		s.hash = (s.hash ^ uint64(b)) * prime
	}
}

func (s *simulation) carryOut(is *island, decision scheduler.Decision) {
	switch d := decision.(type) {
	case *scheduler.Admit:
		s.admit(is, d)
	case *scheduler.Evict:
		m := is.byName[d.Node]
		m.unload(d.Asset, s.now)
		is.events = append(is.events, scheduler.Evicted{Node: d.Node, Asset: d.Asset, OK: true})
	case *scheduler.Release:
	case *scheduler.Refresh, *scheduler.Quarantine, *scheduler.Halt, *scheduler.Unhalt:
		panic("plan: nothing fails here, yet the scheduler decides " + decision.String())
	}
}
