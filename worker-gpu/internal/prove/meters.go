package prove

import (
	"github.com/proofrack/proofrack/shared/metrics"
)

// Meters count what devices do. Their methods may be called on nil.
type Meters struct {
	starts, loads, evictions, wrong *metrics.Tally
	took                            *metrics.Times
}

// NewMeters makes those that a registry shows.
func NewMeters(r *metrics.Registry) *Meters {
	return &Meters{
		starts: r.Tally(metrics.EngineStarts), loads: r.Tally(metrics.AssetLoads),
		evictions: r.Tally(metrics.AssetEvictions), wrong: r.Tally(metrics.WrongProofs),
		took: r.Times(metrics.AssetLoadTime),
	}
}

// started counts an engine that is ready.
func (m *Meters) started(d *Device) {
	if m != nil {
		m.starts.Inc(string(d.config.Device))
		m.wrong.Add(0, string(d.config.Device)) // so that a first one is a rise
	}
}

// loaded counts a load of a circuit's parameters that took so many seconds, or failed.
func (m *Meters) loaded(d *Device, circuit string, seconds float64, err error) {
	switch {
	case m == nil:
	case err != nil:
		m.loads.Inc(string(d.config.Device), circuit, "failed")
	default:
		m.loads.Inc(string(d.config.Device), circuit, "ok")
		m.took.Observe(seconds, string(d.config.Device), circuit)
	}
}

// evicted counts a circuit whose assets were given back.
func (m *Meters) evicted(d *Device, circuit string) {
	if m != nil {
		m.evictions.Inc(string(d.config.Device), circuit)
	}
}

// wrongProof counts a proof that did not verify in the worker.
func (m *Meters) wrongProof(d *Device) {
	if m != nil {
		m.wrong.Inc(string(d.config.Device))
	}
}

// EnginePID is the process of the device's engine, 0 while there is none.
func (d *Device) EnginePID() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.engine == nil {
		return 0
	}
	return d.engine.PID()
}
