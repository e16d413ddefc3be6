package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/job"
)

// rackSim lets the attempts of a world take their time: a synthesis takes one of the node's slots, a proof its device.
type rackSim struct {
	*world
	step          time.Duration
	synth, device func(circuit string) time.Duration
	slots         int
	// idle is how long each device had nothing to prove, startedAt when each attempt was admitted.
	idle      map[scheduler.Place]time.Duration
	startedAt map[job.Attempt]time.Time
	live      []*simAttempt
	places    []scheduler.Place
}

type simAttempt struct {
	attempt job.Attempt
	place   scheduler.Place
	circuit string
	stage   job.Stage
	left    time.Duration
}

func newRackSim(t fataler, cfg scheduler.Config, slots int) *rackSim {
	s := &rackSim{
		world: newWorld(t, cfg), step: 100 * time.Millisecond, slots: slots, idle: map[scheduler.Place]time.Duration{},
		startedAt: map[job.Attempt]time.Time{},
	}
	s.onAdmit = func(d *scheduler.Admit) {
		s.startedAt[d.Attempt] = s.now
		s.live = append(s.live, &simAttempt{attempt: d.Attempt, place: d.Place, circuit: d.Circuit, stage: job.Reserved})
	}
	return s
}

// advance lets one step pass.
func (s *rackSim) advance() {
	s.now = s.now.Add(s.step)
	busy := map[scheduler.Place]bool{}
	slots := map[job.Node]int{}
	for _, a := range slices.Clone(s.live) {
		if a.left -= s.step; a.stage == job.Synthesizing && a.left <= 0 {
			a.stage = job.Sealed
			s.progress(a.attempt, job.Sealed)
		}
		if a.stage == job.Proving && a.left <= 0 {
			s.live = slices.DeleteFunc(s.live, func(b *simAttempt) bool { return a == b })
			s.finish(scheduler.Ended{
				Attempt: a.attempt, Outcome: job.OutcomeOK, Synth: s.synth(a.circuit), Device: s.device(a.circuit),
			}, job.DefaultPolicy())
			s.free(a.attempt, a.place.Node)
		}
	}
	for _, a := range s.live {
		switch a.stage {
		case job.Synthesizing:
			slots[a.place.Node]++
		case job.Proving:
			busy[a.place] = true
		}
	}
	for _, a := range slices.Clone(s.live) {
		switch {
		case a.stage == job.Reserved && slots[a.place.Node] < s.slots:
			slots[a.place.Node]++
			a.stage, a.left = job.Synthesizing, s.synth(a.circuit)
			s.progress(a.attempt, job.Synthesizing)
		case a.stage == job.Sealed && !busy[a.place]:
			busy[a.place] = true
			a.stage, a.left = job.Proving, s.device(a.circuit)
			s.progress(a.attempt, job.Proving)
		}
	}
	for _, p := range s.places {
		if !busy[p] {
			s.idle[p] += s.step
		}
	}
	s.apply(scheduler.Tick{})
}

// "It keeps each device at least 15 s of booked work ahead, 10 s of it sealed" (25 and 20 s are the defaults, ADR 19):
// with enough memory and synthesis no device has nothing to prove once the first durations are measured, and never
// more is ahead than it takes.
func TestDevicesDoNotIdle(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		synth, device time.Duration
		slots         int
		ram           float64
		aheadMost     int
	}{
		"quick synthesis":                       {time.Second, 4 * time.Second, 2, 100, 7},
		"slow synthesis":                        {12 * time.Second, 2 * time.Second, 16, 100, 16},
		"a proof takes longer than all ahead":   {5 * time.Second, 300 * time.Second, 2, 100, 1},
		"a simulated device of one second":      {2 * time.Second, time.Second, 6, 100, 25},
		"memory for one ahead and one in proof": {time.Second, 4 * time.Second, 2, 4, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRackSim(t, scheduler.DefaultConfig(), test.slots)
			s.synth = func(string) time.Duration { return test.synth }
			s.device = func(string) time.Duration { return test.device }
			circuits := map[string]scheduler.CircuitView{"c": ready(kind(1, 0, 0, "c"))}
			for i := range 2 {
				v := nodeView(fmt.Sprint("n", i), test.ram, test.slots, circuits, "gpu0", "gpu1")
				s.addNode(v)
				for _, d := range v.Devices {
					s.places = append(s.places, scheduler.Place{Node: v.Node, Device: d.Device})
				}
			}
			for i := range 500 {
				s.addJob(job.ID(fmt.Sprintf("j%03d", i)), "c", 10, 0)
			}
			warm := s.now.Add(4*test.device + 10*test.synth + 60*time.Second)
			for s.now.Before(warm) {
				s.advance()
			}
			clear(s.idle)
			most := 0
			for range int(10 * time.Minute / s.step) {
				s.advance()
				ahead := map[scheduler.Place]int{}
				for _, a := range s.live {
					if a.stage != job.Proving {
						ahead[a.place]++
						most = max(most, ahead[a.place])
					}
				}
			}
			for p, idle := range s.idle {
				t.Errorf("%s idled for %s", p, idle)
			}
			if most > test.aheadMost {
				t.Errorf("up to %d partitions are ahead of a device", most)
			}
		})
	}
}

// A large waiter among small ones that never stop coming gets its bytes soon after the ageing time; without ageing it
// would never.
func TestNobodyStarves(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ageing time.Duration
		within time.Duration
	}{
		"with ageing":    {time.Minute, 100 * time.Second},
		"without ageing": {100 * time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := scheduler.DefaultConfig()
			cfg.Ageing = test.ageing
			s := newRackSim(t, cfg, 4)
			s.synth = func(string) time.Duration { return time.Second }
			s.device = func(string) time.Duration { return 4 * time.Second }
			circuits := map[string]scheduler.CircuitView{
				"small": ready(kind(2, 0, 0, "small")), "large": ready(kind(8, 0, 0, "large")),
			}
			s.addNode(nodeView("n1", 9, 4, circuits, "gpu0"))
			s.addNode(nodeView("n2", 9, 4, circuits, "gpu0"))
			for i := range 10 {
				s.addJob(job.ID(fmt.Sprintf("s%05d", i)), "small", 1, 0)
			}
			s.advance()
			s.addJob("large", "large", 2, 0)
			begin := s.now
			for i := range 6000 {
				if i%10 == 0 {
					s.addJob(job.ID(fmt.Sprintf("t%05d", i)), "small", 1, 0)
				}
				s.advance()
			}
			for p := range 2 {
				at, admitted := s.startedAt[job.Attempt{Job: "large", Partition: p, Fence: 1}]
				if waited := at.Sub(begin); admitted != (test.within > 0) || admitted && waited > test.within {
					t.Errorf("partition %d: admitted %v, after %s", p, admitted, waited)
				}
			}
		})
	}
}
