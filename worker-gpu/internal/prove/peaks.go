package prove

import (
	"maps"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
)

// gauge measures one engine.
type gauge struct {
	engine *engine.Engine
	meter  *agent.Meter
	// circuits are those that it has had anything of: what it has belongs to one of them only while there is one.
	circuits map[string]bool
}

// newGauge measures an engine from its start; one that cannot be read is not measured.
func (d *Device) newGauge(e *engine.Engine) *gauge {
	meter, err := agent.NewMeter(agent.MeterConfig{PID: e.PID(), Facts: inventory.NewHost()})
	if err != nil {
		d.config.Log.Warn().Err(err).Str("device", string(d.config.Device)).Msg("engine's memory is not measured")
		meter = nil
	}
	return &gauge{engine: e, meter: meter, circuits: map[string]bool{}}
}

// has notes that an engine has something of a circuit.
func (d *Device) has(e *engine.Engine, id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gauge != nil && d.gauge.engine == e {
		d.gauge.circuits[id] = true
	}
}

// observation is one proof's time in an engine, as far as it can be told.
type observation struct {
	device *Device
	gauge  *gauge // nil when the engine is not the device's any more
	span   *agent.Span
	vram   bytesize.Bytes
}

func (d *Device) observe(e *engine.Engine) *observation {
	o := &observation{device: d}
	d.mu.Lock()
	if d.gauge != nil && d.gauge.engine == e {
		o.gauge = d.gauge
	}
	d.mu.Unlock()
	var meter *agent.Meter
	if o.gauge != nil {
		meter = o.gauge.meter
	}
	o.span = meter.Begin()
	return o
}

// look takes what the device's own memory has lost since its engine was new.
func (o *observation) look() {
	if o.gauge == nil {
		return
	}
	p := o.gauge.engine.Progress()
	o.device.mu.Lock()
	defer o.device.mu.Unlock()
	if p.Total > 0 {
		o.vram = max(o.vram, o.device.free-p.Free)
	}
}

// end gives what the one circuit of the engine takes with one proof in it; nothing when the engine has had others too.
// What further proofs take that were pending at the same time is taken off by computation.
func (o *observation) end(c *circuitState) ledger.Amounts {
	peak := o.span.End()
	if o.gauge == nil || c.loaded == nil {
		return nil
	}
	o.look()
	o.device.mu.Lock()
	defer o.device.mu.Unlock()
	if len(o.gauge.circuits) != 1 {
		return nil
	}
	all := ledger.Amounts{}
	if one := peak.Bytes - bytesize.Bytes(peak.Attempts-1)*c.loaded.Pending; one > 0 {
		all[ledger.PoolRAM] = one
	}
	if o.vram > 0 {
		all[ledger.PoolVRAM(o.device.config.Device)] = o.vram
	}
	return all
}

// private is what an engine computes that it has of its own with one proof of a circuit in it. Parameters are left out:
// they are mapped, from their file or decoded.
func private(l *engine.Loaded) bytesize.Bytes { return l.Artifact + l.Shared + l.Working + l.Pending }

// peaks are those that synthesis measured, that of the segment, which is synthesis's too, and those of the proof.
func (t *task) peaks(segment, proof ledger.Amounts) wire.Peaks {
	all := wire.Peaks{}
	for stage, amounts := range t.Peaks {
		all[stage] = maps.Clone(amounts)
	}
	add := func(stage job.Stage, amounts ledger.Amounts) {
		if len(amounts) == 0 {
			return
		}
		if all[stage] == nil {
			all[stage] = ledger.Amounts{}
		}
		maps.Copy(all[stage], amounts)
	}
	add(job.Synthesizing, segment)
	add(job.Proving, proof)
	return all
}

// segmentPeak is what a sealed segment has of its pool, by the file system's count; nothing when that cannot be told.
// In memory it is bytes of shm.
func segmentPeak(s *handoff.Segment) ledger.Amounts {
	var stat unix.Stat_t
	file := s.File()
	if file == nil || unix.Fstat(int(file.Fd()), &stat) != nil {
		return nil
	}
	pool := ledger.PoolSHM
	if s.Kind() == handoff.Disk {
		pool = ledger.PoolDisk
	}
	return ledger.Amounts{pool: bytesize.Bytes(stat.Blocks * 512)}
}
