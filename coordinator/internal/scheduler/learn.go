package scheduler

import (
	"cmp"
	"maps"
	"slices"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/ledger"
)

// LearnedKey is what a size is learned for: attempts at a circuit on devices of a kind, in a pool.
type LearnedKey struct {
	Circuit string
	// Kind is the devices' model, "" where it is not known.
	Kind string
	Pool ledger.Pool
}

// Learned is how much attempts really had of a pool, beside what workers say that they need.
type Learned struct {
	LearnedKey
	// Said is what the workers say, Peak the 99th percentile of the latest measured peaks, Samples how many these are.
	Said, Peak bytesize.Bytes
	Samples    int
	// Booked is what is booked: Said, or the peak and a margin where that is more. A size is never booked lower than the
	// workers say, since their hosts book by the same word.
	Booked bytesize.Bytes
}

// Drifted says that measured peaks are off from what the workers say by more than [Config.DriftMax], or not any more.
type Drifted struct {
	Learned
	// Over tells that more is used than was said. When neither Over nor Under is set the drift is over.
	Over, Under bool
}

// samplesMax bounds the peaks that are remembered of one key, samplesMin is how many it takes to go by them.
const (
	samplesMax = 128
	samplesMin = 5
)

// size is what was learned of one key.
type size struct {
	said bytesize.Bytes
	// peaks are the latest, next is where the next one goes.
	peaks       []bytesize.Bytes
	next        int
	over, under bool
}

// peak is the 99th percentile by nearest rank, 0 while there are too few.
func (s *size) peak() bytesize.Bytes {
	if len(s.peaks) < samplesMin {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s.peaks))
	return sorted[(len(sorted)*99+99)/100-1]
}

// booked is what is booked in place of what was said.
func (c *Core) booked(s *size) bytesize.Bytes {
	peak := s.peak()
	if peak <= s.said+s.said/64 { // file systems count a little of their own
		return s.said
	}
	return max(s.said, peak+bytesize.Bytes(float64(peak)*c.cfg.PeakMargin))
}

// learn takes the measured peaks of an attempt over. Pools that were not measured are not in them.
func (c *Core) learn(r *run, peaks ledger.Amounts) {
	for _, pool := range slices.Sorted(maps.Keys(peaks)) {
		said, ok := saidOf(r.profile, pool)
		if !ok || peaks[pool] <= 0 {
			continue // the workers say something else by now
		}
		key := LearnedKey{Circuit: r.profile.circuit.name, Kind: r.device.view.Kind, Pool: pool}
		s := c.sizes[key]
		if s == nil {
			s = &size{}
			c.sizes[key] = s
		}
		before := c.booked(s)
		if s.said != said {
			*s = size{said: said} // another build, another size: what was measured of the old one is worth nothing
			before = said
		}
		if len(s.peaks) < samplesMax {
			s.peaks = append(s.peaks, peaks[pool])
		} else {
			s.peaks[s.next] = peaks[pool]
		}
		s.next = (s.next + 1) % samplesMax
		if c.booked(s) != before {
			c.resize(key)
		}
		c.drift(key, s)
	}
}

// saidOf is what the workers of a device say that an attempt takes of a pool, by the first way that takes any.
func saidOf(p *profile, pool ledger.Pool) (bytesize.Bytes, bool) {
	for _, needs := range p.view.Choices {
		if said := needs.Amounts[pool]; said > 0 {
			return said, true
		}
	}
	return 0, false
}

// drift tells when the peaks begin or cease to be off.
func (c *Core) drift(key LearnedKey, s *size) {
	peak := s.peak()
	if peak == 0 {
		return
	}
	most := bytesize.Bytes(float64(s.said) * c.cfg.DriftMax)
	over, under := peak > s.said+most, peak < s.said-most
	if over == s.over && under == s.under {
		return
	}
	s.over, s.under = over, under
	c.emit(&Drifted{Learned: c.learned(key, s), Over: over, Under: under})
}

func (c *Core) learned(key LearnedKey, s *size) Learned {
	return Learned{LearnedKey: key, Said: s.said, Peak: s.peak(), Samples: len(s.peaks), Booked: c.booked(s)}
}

// Learned gives all that was learned of sizes, by circuit, kind and pool.
func (c *Core) Learned() []Learned {
	out := make([]Learned, 0, len(c.sizes))
	for key, s := range c.sizes {
		out = append(out, c.learned(key, s))
	}
	slices.SortFunc(out, func(a, b Learned) int {
		return cmp.Or(cmp.Compare(a.Circuit, b.Circuit), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Pool, b.Pool))
	})
	return out
}

// corrected raises what an attempt is said to need to what was learned.
func (c *Core) corrected(circuit, kind string, needs Needs) Needs {
	var raised ledger.Amounts
	for pool, said := range needs.Amounts {
		s := c.sizes[LearnedKey{Circuit: circuit, Kind: kind, Pool: pool}]
		if s == nil || c.booked(s) <= said {
			continue
		}
		if raised == nil {
			raised = maps.Clone(needs.Amounts)
		}
		raised[pool] = c.booked(s)
	}
	if raised != nil {
		more := raised[ledger.PoolSHM] - needs.Amounts[ledger.PoolSHM] // every byte of shm is one of ram, too
		raised[ledger.PoolRAM] = max(raised[ledger.PoolRAM], needs.Amounts[ledger.PoolRAM]+more)
		needs.Amounts = raised
	}
	return needs
}

// resize compiles the needs of all devices again that a key is about.
func (c *Core) resize(key LearnedKey) {
	for _, n := range c.order {
		changed := false
		for _, d := range n.devices {
			if p := d.lookup(c.circuit(key.Circuit)); p != nil && d.view.Kind == key.Kind {
				c.compile(n, d.view.Kind, p)
				changed = true
			}
		}
		if changed {
			c.reckon(n, true)
			c.touch(n)
		}
	}
}

// compile makes the choices of a circuit on a device.
func (c *Core) compile(n *node, kind string, p *profile) {
	p.choices = nil
	for _, needs := range p.view.Choices {
		ch := n.compile(c.corrected(p.circuit.name, kind, needs))
		ch.fits = c.fitsEmpty(n, &ch)
		p.choices = append(p.choices, ch)
	}
}
