package scheduler

import (
	"maps"
	"slices"

	"github.com/proofrack/proofrack/coordinator/internal/sizes"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Computed is what workers compute that a stage of an attempt takes of a pool; sizes.VRAM stands for the device's own
// memory.
type Computed struct {
	Stage job.Stage
	Pool  ledger.Pool
	Bytes bytesize.Bytes
}

// Peaks are the most that an attempt had of each pool at each stage, by measurement.
type Peaks map[job.Stage]ledger.Amounts

// computed is what the workers of a device compute for a stage and pool, 0 when they don't say.
func (p *profile) computed(stage job.Stage, pool ledger.Pool) bytesize.Bytes {
	for _, c := range p.view.Computed {
		if c.Stage == stage && c.Pool == pool {
			return c.Bytes
		}
	}
	return 0
}

// learn takes the measured peaks of an attempt over. Pools that were not measured are not in them.
func (c *Core) learn(r *run, peaks Peaks) {
	for _, stage := range slices.Sorted(maps.Keys(peaks)) {
		for _, pool := range slices.Sorted(maps.Keys(peaks[stage])) {
			key := sizes.Key{
				Circuit: r.profile.circuit.name, Stage: stage, Kind: r.device.view.Kind, Pool: sizes.PoolOf(pool),
			}
			out := c.sizes.Observe(c.now, key, r.profile.computed(stage, key.Pool), peaks[stage][pool])
			if out.Resized {
				c.resize(key)
			}
			if out.Told {
				c.drifts++
				c.emit(&Drifted{Size: out.Size})
			}
		}
	}
}

// Sizes is a copy of all that was learned.
func (c *Core) Sizes() *sizes.Table { return c.sizes.Clone() }

// SizesChanges rises with each change of what was learned.
func (c *Core) SizesChanges() uint64 { return c.sizes.Changes() }

// Drifts is how often measured sizes began or ceased to drift from what workers compute, and how many do now.
func (c *Core) Drifts() (told uint64, now int) { return c.drifts, c.sizes.Drifting() }

// remembered takes over what an earlier reign learned: sizes, and how fast devices are.
func (c *Core) remembered(before *sizes.Table) {
	c.sizes.Recall(before)
	for _, s := range before.Speeds() {
		circuit := c.circuit(s.Circuit)
		typical := before.Typical(s.Circuit)
		if circuit.device == 0 {
			circuit.device = typical.Proof
		}
		if circuit.synth == 0 {
			circuit.synth = typical.Synthesis
		}
	}
	c.compileAll(func(*node, *device, *profile) bool { return true })
}

// pinned sets what is booked for a size, or lets it be measured again.
func (c *Core) pinned(e SizePinned) {
	var err error
	if e.Bytes > 0 {
		err = c.sizes.Pin(c.now, e.Key, e.Bytes)
	} else {
		err = c.sizes.Unpin(e.Key)
	}
	if err == nil {
		c.resize(e.Key)
	}
}

// corrected changes what an attempt is said to need by what was learned of its stages on a device.
func (c *Core) corrected(p *profile, d *device, needs Needs) Needs {
	var amounts ledger.Amounts
	for _, said := range p.view.Computed {
		key := sizes.Key{Circuit: p.circuit.name, Stage: said.Stage, Kind: d.view.Kind, Pool: said.Pool}
		more := c.sizes.Surplus(key, said.Bytes)
		pool := said.Pool
		switch pool {
		case sizes.VRAM:
			pool = ledger.PoolVRAM(d.view.Device)
		case ledger.PoolSHM, ledger.PoolDisk:
			if needs.Amounts[pool] == 0 {
				continue // it is the other way to run it
			}
		}
		if more == 0 {
			continue
		}
		if amounts == nil {
			amounts = maps.Clone(needs.Amounts)
		}
		amounts[pool] += more
		if pool == ledger.PoolSHM { // every byte of shm is one of ram, too
			amounts[ledger.PoolRAM] += more
		}
	}
	if amounts == nil {
		return needs
	}
	for _, pool := range slices.Sorted(maps.Keys(amounts)) { // a pin may have taken more than there was
		if amounts[pool] <= 0 {
			delete(amounts, pool)
		}
	}
	if shm := amounts[ledger.PoolSHM]; shm > 0 {
		amounts[ledger.PoolRAM] = max(amounts[ledger.PoolRAM], shm)
	}
	needs.Amounts = amounts
	return needs
}

// resize compiles the needs of all devices again that a key is about.
func (c *Core) resize(key sizes.Key) {
	circuit := c.circuit(key.Circuit)
	c.compileAll(func(_ *node, d *device, p *profile) bool { return p.circuit == circuit && d.view.Kind == key.Kind })
}

// compileAll compiles the needs again of the profiles that are affected.
func (c *Core) compileAll(affected func(*node, *device, *profile) bool) {
	for _, n := range c.order {
		changed := false
		for _, d := range n.devices {
			for _, p := range d.profiles {
				if p != nil && affected(n, d, p) {
					c.recall(d, p)
					c.compile(n, d, p)
					changed = true
				}
			}
		}
		if changed {
			c.reckon(n, true)
			c.touch(n)
		}
	}
}

// recall gives a device that was not measured yet in this reign the speed that it had.
func (c *Core) recall(d *device, p *profile) {
	if p.device == 0 {
		p.device = c.sizes.Speed(p.circuit.name, d.node.name, d.view.Device).Proof
		d.counted = false
	}
}

// compile makes the choices of a circuit on a device.
func (c *Core) compile(n *node, d *device, p *profile) {
	p.choices = nil
	for _, needs := range p.view.Choices {
		ch := n.compile(c.corrected(p, d, needs))
		ch.fits = c.fitsEmpty(n, &ch)
		p.choices = append(p.choices, ch)
	}
}
