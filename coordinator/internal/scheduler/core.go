package scheduler

import (
	"fmt"
	"time"

	"github.com/proofrack/proofrack/shared/job"
)

// Core is the scheduler. It is not safe for concurrent use.
type Core struct {
	cfg Config
	now time.Time
	out []Decision
}

// New makes a core that knows nothing yet. An invalid Config is an error.
func New(cfg Config) (*Core, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure scheduler: %w", err)
	}
	return &Core{cfg: cfg}, nil
}

// Apply takes one event and gives what is to be done, in order. now must not run backwards by more than jitter: an
// earlier time than the last one counts as that.
func (c *Core) Apply(now time.Time, event Event) []Decision { return nil }

// Why gives a reason for each partition of a job that waits (invariant 8), in the order of the partitions; none for a
// job that is not known or has nothing waiting.
func (c *Core) Why(id job.ID) []Reason { return nil }

// Fits tells whether a partition of a circuit is larger than every known node: then the error is an *Unfit. It is nil
// while no node is known that could tell.
func (c *Core) Fits(circuit string) error { return nil }

// Drain tells how many partitions run on a node, or on all for "", and about how long they will take.
func (c *Core) Drain(node job.Node) (running int, left time.Duration) { return 0, 0 }

// Left estimates how long a job will take from now on; false when it is not known or can't be told.
func (c *Core) Left(id job.ID) (time.Duration, bool) { return 0, false }
