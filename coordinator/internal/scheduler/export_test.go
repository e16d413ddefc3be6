package scheduler

import (
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Held gives what the core has booked on a node, for comparison with a model.
func (c *Core) Held(name job.Node) ledger.Amounts {
	held := ledger.Amounts{}
	if n := c.nodes[name]; n != nil {
		for i, pool := range n.pools {
			if n.held[i] != 0 {
				held[pool] = n.held[i]
			}
		}
	}
	return held
}

// Pinned gives the partition that a node's free bytes are kept for.
func (c *Core) Pinned(name job.Node) (job.Attempt, bool) {
	if n := c.nodes[name]; n != nil && n.pin != nil {
		return n.pin.attempt(0), true
	}
	return job.Attempt{}, false
}

// NodeCount is how many nodes are remembered.
func (c *Core) NodeCount() int { return len(c.nodes) }

// JobCount is how many jobs are remembered.
func (c *Core) JobCount() int { return len(c.jobs) }

// Promised tells whether a partition waits for a faster device than those that are free.
func (c *Core) Promised(id job.ID, partition int) bool {
	j := c.jobs[id]
	return j != nil && j.parts[partition].promised != nil
}
