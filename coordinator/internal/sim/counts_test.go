package sim_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/job"
)

// Kinds of steps: what was delivered. A call is one step when it reaches its server and another one when its answer
// reaches the caller. Renewals of the lead, and beats of a host that has nothing booked and nothing running, are idle
// ticks and no steps.
const (
	stepCall     = "calls"
	stepAnswer   = "answers"
	stepMessage  = "messages"
	stepDelivery = "deliveries"
	stepRecord   = "revisions"
	stepFault    = "faults"
)

// counts are what happened in one run, or in several.
type counts struct {
	mu sync.Mutex

	// Seeds counts runs, Steps what was delivered, by kind; Faults what went wrong, by kind; Jobs how jobs ended.
	Seeds  int
	Steps  map[string]int
	Faults map[string]int
	Jobs   map[job.State]int
	// StepsMin is the least of a run, Virtual the seconds that passed in them.
	StepsMin int
	Virtual  float64
	// Failed are seeds.
	Failed []uint64
	total  int
	// history is a digest of what happened, and when: equal for two runs that were the same.
	history uint64
}

func newCounts() *counts {
	return &counts{Steps: map[string]int{}, Faults: map[string]int{}, Jobs: map[job.State]int{}}
}

func (c *counts) step(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Steps[kind]++
	c.total++
	c.note(kind)
}

// note mixes a step into the history.
func (c *counts) note(kind string) {
	const prime = 1099511628211 // FNV's
	for i := range len(kind) {
		c.history = (c.history ^ uint64(kind[i])) * prime
	}
	c.history = (c.history ^ uint64(time.Now().UnixNano())) * prime //nolint:gosec // any bits do
}

func (c *counts) fault(kind string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Faults[kind]++
	c.Steps[stepFault]++
	c.total++
	c.note(kind)
}

func (c *counts) steps() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.total
}

// add takes in those of other runs.
func (c *counts) add(o *counts) {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := 0
	for kind, n := range o.Steps {
		c.Steps[kind] += n
		sum += n
	}
	for kind, n := range o.Faults {
		c.Faults[kind] += n
	}
	for state, n := range o.Jobs {
		c.Jobs[state] += n
	}
	if c.Seeds == 0 || o.StepsMin < c.StepsMin {
		c.StepsMin = o.StepsMin
	}
	c.Seeds += o.Seeds
	c.Virtual += o.Virtual
	c.Failed = append(c.Failed, o.Failed...)
	c.total += sum
}

// String is a table for people.
func (c *counts) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "%d seeds, %d steps (at least %d each), %.1f hours of virtual time\n", c.Seeds, c.total, c.StepsMin,
		c.Virtual/3600)
	fmt.Fprintf(&b, "jobs ended: %s\n", listed(c.Jobs))
	fmt.Fprintf(&b, "steps:      %s\n", listed(c.Steps))
	fmt.Fprintf(&b, "faults:     %s\n", listed(c.Faults))
	if len(c.Failed) > 0 {
		slices.Sort(c.Failed)
		fmt.Fprintf(&b, "FAILED:     seeds %v\n", c.Failed)
	}
	return b.String()
}

func listed[K ~string](m map[K]int) string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%d %s", m[key], string(key)))
	}
	return strings.Join(parts, ", ")
}
