package scheduler

import (
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/sizes"
)

// circuit is what is known of a circuit on the whole rack.
type circuit struct {
	name  string
	index int
	// device and synth are how long devices take and synthesis takes, measured; 0 before the first time.
	device, synth time.Duration
	guess         time.Duration
	avoidShapes   int
	// devices can run it once bytes are free, as of the generation countedAt.
	devices   int
	countedAt uint64
}

func (c *Core) circuit(name string) *circuit {
	if known := c.circuits[name]; known != nil {
		return known
	}
	guess, ok := c.cfg.Guess[name]
	if !ok {
		guess = c.cfg.GuessDefault
	}
	made := &circuit{name: name, index: len(c.circuits), guess: guess}
	c.circuits[name] = made
	return made
}

// estimate is how long a device takes for a partition: as measured there, else as measured elsewhere, else the guess.
func (c *Core) estimate(p *profile) time.Duration {
	switch {
	case p.device > 0:
		return p.device
	case p.circuit.device > 0:
		return p.circuit.device
	}
	return p.circuit.guess
}

// measure takes durations of a run over. Devices that were never measured go by the others, so they may want more now.
func (c *Core) measure(r *run, synth, device time.Duration) {
	for _, n := range c.order {
		for _, d := range n.devices {
			if p := d.lookup(r.profile.circuit); p != nil && p.device == 0 && p.ahead > 0 {
				d.counted = false
				c.touch(n)
			}
		}
	}
	smooth(&r.profile.device, device)
	smooth(&r.profile.circuit.device, device)
	smooth(&r.profile.circuit.synth, synth)
	c.keepSpeed(r, synth)
	r.device.counted = false
	c.touch(r.node)
}

// keepSpeed has the table of what was learned keep how fast a device is.
func (c *Core) keepSpeed(r *run, synth time.Duration) {
	key := sizes.SpeedKey{Circuit: r.profile.circuit.name, Node: r.node.name, Device: r.device.view.Device}
	s := c.sizes.Speed(key.Circuit, key.Node, key.Device)
	smooth(&s.Synthesis, synth)
	s.Proof, s.At, s.Samples = r.profile.device, c.now, s.Samples+1
	c.sizes.SetSpeed(key, s)
}

// smooth moves an average a quarter of the way to a new value; 0 is no value.
func smooth(average *time.Duration, value time.Duration) {
	switch {
	case value <= 0:
	case *average == 0:
		*average = value
	default:
		*average += (value - *average) / 4
	}
}

// ahead is how much work is booked on a device before the proof that it works on, and how much of it is sealed.
func (c *Core) ahead(d *device) (count int, booked, sealed time.Duration) {
	if d.counted {
		return d.count, d.booked, d.sealed
	}
	for _, p := range d.profiles {
		if p != nil && p.ahead > 0 {
			each := c.estimate(p)
			count += p.ahead
			booked += time.Duration(p.ahead) * each
			sealed += time.Duration(p.sealed) * each
		}
	}
	d.counted, d.count, d.booked, d.sealed = true, count, booked, sealed
	return count, booked, sealed
}

// wants tells whether a device should get another partition of a circuit, with more of them on top of what it has.
func (c *Core) wants(d *device, p *profile, more int) bool {
	count, booked, sealed := c.ahead(d)
	booked += time.Duration(more) * c.estimate(p)
	switch count += more; {
	case count >= c.cfg.DevicePartitionsMax:
		return false
	case count == 0, booked < c.cfg.WorkAhead:
		return true
	}
	return sealed < c.cfg.SealedAhead && booked < c.cfg.SealedAhead+p.circuit.synth
}

// slots is how many more partitions a node may get before its synthesis has enough.
func (c *Core) slots(n *node) int {
	slots := n.view.SynthSlots
	if c.cfg.SynthSlotsMax > 0 {
		slots = min(slots, c.cfg.SynthSlotsMax)
	}
	return slots*(1+c.cfg.SynthQueueMax) - n.unsealed
}

// busy is how long a device still takes for what it has.
func (c *Core) busy(d *device) time.Duration {
	_, booked, _ := c.ahead(d)
	if d.proving > 0 && d.provingUntil.After(c.now) {
		booked += d.provingUntil.Sub(c.now)
	}
	return booked
}
