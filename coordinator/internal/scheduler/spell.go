package scheduler

import (
	"slices"
	"time"
)

// spellsMax bounds what is kept of what held a shape's head in turn; the oldest goes first.
const spellsMax = 8

// HeldSince is what held a partition, or the head of a shape, from some time on, until the next one or an admission.
type HeldSince struct {
	Hold
	Since time.Time
}

// holdBack notes what holds a shape's head now.
func (c *Core) holdBack(s *shape, h held) {
	s.hold, s.heldAt = h, c.now
	now := h.hold()
	if n := len(s.spells); n > 0 && s.spells[n-1].Code == now.Code && s.spells[n-1].Pool == now.Pool {
		return // of which node the memory is makes no difference to somebody who waits
	}
	if len(s.spells) == spellsMax {
		s.spells = slices.Delete(s.spells, 0, 1)
	}
	s.spells = append(s.spells, HeldSince{now, c.now})
}

// turns are what held a partition of a shape, in turn, since it could go; nil when it was one thing all the time.
func (s *shape) turns(since time.Time) []HeldSince {
	var out []HeldSince
	for i, sp := range s.spells {
		if i+1 == len(s.spells) || s.spells[i+1].Since.After(since) {
			out = append(out, sp)
		}
	}
	if len(out) < 2 {
		return nil
	}
	out[0].Since = since
	return out
}
