package scheduler

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/proofrack/proofrack/shared/ledger"
)

// survey is what the rack has for a circuit: for each node and device that can't run it, in one line, why.
type survey struct {
	// nodes are known and not gone, able devices could run it now but for bytes and time.
	nodes, able int
	// missing are workers that take work, but lack what this circuit needs; excuses are those that take no work.
	missing, excuses []string
	// unfit is set when no known node is large enough, whatever else keeps it from work.
	unfit *Unfit
}

// fitness tells which nodes could hold a circuit's partitions.
type fitness struct {
	unfit   *Unfit
	fitting bool
	// choices are what it takes where workers say so, unsized the nodes where they do not.
	choices []choice
	unsized []*node
}

func (c *Core) survey(circuit *circuit) survey {
	var s survey
	var z fitness
	for _, n := range c.order {
		if !n.gone && n.seen {
			s.nodes++
			c.surveyNode(&s, &z, n, circuit)
		}
	}
	for _, n := range z.unsized {
		z.fitting = z.fitting || couldHold(n, z.choices)
	}
	if !z.fitting && z.unfit != nil {
		s.unfit = z.unfit
		for _, n := range z.unsized { // too small as well, but perhaps the largest
			if has := n.view.Capacity[s.unfit.Pool]; has > s.unfit.Has && has < s.unfit.Need {
				s.unfit.Largest, s.unfit.Has = n.name, has
			}
		}
	}
	return s
}

// surveyNode takes a node in. What keeps the whole node from work is told before what its devices lack, since that
// often only follows from it.
func (c *Core) surveyNode(s *survey, z *fitness, n *node, circuit *circuit) {
	excuse := c.nodeExcuse(n)
	if excuse != "" {
		s.excuses = append(s.excuses, string(n.name)+" "+excuse)
	}
	devices, sized, off := 0, false, 0
	for _, d := range n.devices {
		if !d.present {
			continue
		}
		devices++
		pr := d.lookup(circuit)
		switch {
		case pr.off():
			off++
		case pr.view.Ready:
			sized = true
			c.size(z, n, pr)
		}
		if excuse == "" {
			c.surveyDevice(s, d, pr)
		}
	}
	if devices == 0 {
		s.excuses = append(s.excuses, string(n.name)+" has no device"+because(n.view.NoDevice))
	}
	if !sized && (off < devices || devices == 0) {
		z.unsized = append(z.unsized, n)
	}
}

// surveyDevice takes a device of a node that takes work in.
func (c *Core) surveyDevice(s *survey, d *device, pr *profile) {
	place, excuse := d.place().String(), c.deviceExcuse(d)
	lack := ""
	switch {
	case pr.off():
		lack = "it is not set to prove this"
	case !pr.view.Ready:
		lack = pr.view.Missing
	}
	switch {
	case excuse == "" && lack != "", excuse != "" && lack != "" && strings.Contains(excuse, lack):
		s.missing = append(s.missing, place+": "+lack) // it takes no work since it lacks this
	case lack != "":
		s.excuses = append(s.excuses, place+" "+excuse+", and "+lack)
	case excuse != "":
		s.excuses = append(s.excuses, place+" "+excuse)
	case pr.anyFits():
		s.able++
	default:
		var u *Unfit
		for i := range pr.choices {
			u = c.larger(u, d.node, pr, &pr.choices[i])
		}
		if u == nil {
			s.missing = append(s.missing, place+": its worker does not say what it needs")
			return
		}
		text := fmt.Sprintf("%s is too small: it needs %s of %s, the node has %s", place, u.Need, u.Pool, u.Has)
		s.excuses = append(s.excuses, text)
	}
}

// off tells that a device's worker says nothing of a circuit: it is not to prove it.
func (p *profile) off() bool { return p == nil || !p.view.Ready && p.view.Missing == "" }

func (p *profile) anyFits() bool {
	return slices.ContainsFunc(p.choices, func(ch choice) bool { return ch.fits })
}

// size takes in whether a node could hold what a device needs.
func (c *Core) size(z *fitness, n *node, pr *profile) {
	z.choices = append(z.choices, pr.choices...)
	z.fitting = z.fitting || len(n.view.Capacity) == 0 // its host has not reported yet
	for i := range pr.choices {
		if pr.choices[i].fits {
			z.fitting = true
		} else {
			z.unfit = c.larger(z.unfit, n, pr, &pr.choices[i])
		}
	}
}

// couldHold tells whether a node whose workers do not say what a circuit takes could hold what it takes elsewhere, but
// for the devices' own memory.
func couldHold(n *node, choices []choice) bool {
	return len(n.view.Capacity) == 0 || slices.ContainsFunc(choices, func(ch choice) bool {
		need := maps.Clone(ch.needs.Amounts)
		if need == nil {
			need = ledger.Amounts{}
		}
		for _, a := range ch.needs.Assets {
			need[a.Pool] += a.Bytes
		}
		for pool, bytes := range need {
			if bytes > n.view.Capacity[pool] && !strings.HasPrefix(string(pool), string(ledger.PoolVRAM(""))) {
				return false
			}
		}
		return true
	})
}

// larger gives the verdict on the node that comes closest to holding a choice.
func (c *Core) larger(best *Unfit, n *node, pr *profile, ch *choice) *Unfit {
	c.sumWhole(n, ch)
	u := &Unfit{Circuit: pr.circuit.name, Largest: n.name}
	for i, need := range c.need {
		if lack := need - n.capacity[i]; lack > u.Need-u.Has {
			u.Pool, u.Need, u.Has = n.pools[i], need, n.capacity[i]
		}
	}
	if best == nil || u.Need-u.Has < best.Need-best.Has {
		return u
	}
	return best
}

// Fits tells whether a partition of a circuit is larger than every known node: then the error is an *Unfit. It is nil
// while a node is known that could hold it, or of which that can't be told.
func (c *Core) Fits(circuit string) error {
	known := c.circuits[circuit]
	if known == nil {
		return nil
	}
	if s := c.survey(known); s.unfit != nil {
		return s.unfit
	}
	return nil
}

// whyNowhere tells why no device could run a partition; false when one could.
func (s *survey) whyNowhere(circuit string) (Reason, bool) {
	lines := func(groups ...[]string) string { return strings.Join(atMost(slices.Concat(groups...)), "; ") }
	switch {
	case s.nodes == 0:
		return Reason{Code: NoNode, Text: "no node"}, true
	case s.unfit != nil:
		u := s.unfit
		return Reason{
			Code: Unschedulable, Text: u.Error(), Pool: u.Pool, Need: u.Need, Free: u.Has, Missing: u.Need - u.Has,
			Place: Place{Node: u.Largest},
		}, true
	case s.able > 0:
		return Reason{}, false
	case len(s.excuses) == 0:
		return Reason{Code: NoParams, Text: "no worker has parameters for " + circuit + ": " + lines(s.missing)}, true
	}
	return Reason{Code: Unavailable, Text: "no device takes work: " + lines(s.excuses, s.missing)}, true
}

// linesMax bounds what a reason lists.
const linesMax = 8

func atMost(lines []string) []string {
	if len(lines) > linesMax {
		return append(lines[:linesMax:linesMax], fmt.Sprintf("and %d more", len(lines)-linesMax))
	}
	return lines
}
