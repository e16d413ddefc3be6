package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
)

// holdersMax bounds the holders that a reason names.
const holdersMax = 8

// Why gives a reason for each partition of a job that waits (invariant 8), in the order of the partitions; none for a
// job that is not known or has nothing waiting.
func (c *Core) Why(id job.ID) []Reason {
	j := c.jobs[id]
	if j == nil || j.waiters == 0 && !j.asking() {
		return nil
	}
	ahead, _ := c.aheadOf(j)
	var reasons []Reason
	known := map[*shape]Reason{}
	for i := range j.parts {
		p := &j.parts[i]
		var r Reason
		switch p.state {
		case idle, running:
			continue
		case asked:
			r = Reason{Code: Asked, Place: p.run.device.place(), Text: "is being reserved on " + p.run.device.place().String()}
		case pausing:
			r = c.whyPausing(p)
		case waiting:
			first, ok := known[p.shape]
			if !ok {
				first = c.whyWaiting(p)
				known[p.shape] = first
			}
			r = first
		}
		r.Partition = i
		if p.state == waiting {
			r.Ahead = ahead
			ahead++
		}
		reasons = append(reasons, r)
	}
	return reasons
}

func (c *Core) whyPausing(p *part) Reason {
	r := Reason{Code: Backoff, Until: p.notBefore}
	r.Text = "waits until " + p.notBefore.UTC().Format(time.RFC3339)
	switch {
	case p.cause != "":
		r.Text += " after a refusal: " + p.cause
	case p.last != "":
		r.Text += " after its last attempt " + p.last
	default:
		r.Text += " after its last attempt"
	}
	return r
}

func (c *Core) whyWaiting(p *part) Reason {
	switch {
	case c.halted:
		return Reason{Code: PausedCode, Text: "stopped: " + c.haltReason}
	case c.paused:
		return Reason{Code: PausedCode, Text: "paused" + because(c.pauseReason)}
	}
	survey := c.survey(p.job.circuit)
	if r, nowhere := survey.whyNowhere(p.job.circuit.name); nowhere {
		return r
	}
	if r, waits := c.whyPromised(p); waits {
		return r
	}
	at, ok := c.nearest(p)
	if !ok {
		return Reason{Code: Turn, Text: "waits for its turn"}
	}
	return c.whySpot(p, at)
}

// nearest is soonest without regard to pins.
func (c *Core) nearest(p *part) (spot, bool) {
	if p.pin != nil {
		return p.pin.pinned, true
	}
	if at, ok := c.soonest(p); ok {
		return at, true
	}
	for _, n := range c.order {
		for _, d := range n.devices {
			if d.canRun(p.job.circuit) && n.pin != nil {
				pr := d.lookup(p.job.circuit)
				i := slices.IndexFunc(pr.choices, func(ch choice) bool { return ch.fits })
				return spot{n, d, pr, &pr.choices[i]}, true
			}
		}
	}
	return spot{}, false
}

// whySpot tells why a partition does not go to a spot now.
func (c *Core) whySpot(p *part, at spot) Reason {
	n, place := at.node, at.device.place()
	if r, stopped := c.whyQuota(p, at); stopped {
		return r
	}
	load, _, short := c.fits(n, at.choice)
	switch {
	case !n.leaveUntil.IsZero():
		text := "refused on " + string(n.name) + because(n.leaveCause)
		return Reason{Code: Refusal, Place: place, Until: n.leaveUntil, Text: text}
	case short >= 0:
		r := Reason{Code: Memory, Place: place, Pool: n.pools[short], Need: c.need[short], Free: max(0, n.free(short))}
		r.Missing = c.need[short] - n.free(short)
		r.Holders = n.holders(short)
		r.Text = fmt.Sprintf("needs %s of %s on %s, %s are free, %s are missing; held by %s",
			r.Need, r.Pool, n.name, r.Free, r.Missing, listHolders(r.Holders))
		if c.coming(n, short) > 0 {
			r.Text += fmt.Sprintf("; %s are being evicted", c.coming(n, short))
		}
		return r
	case load < 0:
		text := "waits on " + string(n.name) + " for an asset that is on its way out"
		return Reason{Code: Eviction, Place: place, Text: text}
	case n.pin != nil && n.pin != p && !c.harmless(p, at):
		why, since := "has been passed over", n.pin.passedAt
		if since.IsZero() {
			why, since = "assets are evicted for and which waits", n.pin.since
		}
		return Reason{Code: Pinned, Place: place, Text: fmt.Sprintf("the free bytes of %s are kept for partition %d "+
			"of job %s, which %s since %s", n.name, n.pin.index, n.pin.job.id, why, since.UTC().Format(time.RFC3339))}
	case c.slots(n) <= 0:
		return Reason{Code: Slots, Place: place, Text: fmt.Sprintf("synthesis on %s has all its slots full, %d partitions",
			n.name, n.unsealed)}
	}
	count, booked, _ := c.ahead(at.device)
	return Reason{Code: Turn, Place: place, Text: fmt.Sprintf("waits for its turn: the devices have enough work ahead, "+
		"%s first with %d partitions, about %s", place, count, booked.Round(time.Second))}
}

func (c *Core) coming(n *node, pool int) (total bytesize.Bytes) {
	for _, s := range n.assets {
		if s.pool == pool && s.present && c.leaving(s) {
			total += s.bytes
		}
	}
	return total
}

// holders are who holds bytes of a pool, largest first.
func (n *node) holders(pool int) []Holder {
	var out []Holder
	for _, h := range n.holdings {
		for _, b := range h.amounts {
			if b.pool == pool && b.bytes > 0 {
				name := h.attempt.String()
				if h.limbo {
					name += " (gone, not proved to be)"
				}
				out = append(out, Holder{name, b.bytes})
			}
		}
	}
	for _, s := range n.assets {
		if s.present && s.pool == pool && s.bytes > 0 {
			out = append(out, Holder{s.name, s.bytes})
		}
	}
	slices.SortFunc(out, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return out
}

func listHolders(holders []Holder) string {
	if len(holders) == 0 {
		return "nobody: the pool is smaller than it was"
	}
	var b strings.Builder
	for i, h := range holders {
		if i == holdersMax {
			fmt.Fprintf(&b, " and %d more", len(holders)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s (%s)", h.Name, h.Bytes)
	}
	return b.String()
}
