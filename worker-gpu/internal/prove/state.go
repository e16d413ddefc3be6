package prove

import (
	"fmt"
	"slices"

	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/wire"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
)

// State is what beats say of the device.
func (d *Device) State() wire.DeviceState {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := wire.DeviceState{
		Device: d.config.Device, UUID: d.config.UUID, Name: d.config.Name, NUMANode: d.config.NUMANode,
		Healthy: d.engine != nil, Reason: d.reason, Pending: d.active,
		Canary: d.canary,
	}
	switch {
	case s.Reason == "" && !d.started:
		s.Reason = "engine is starting"
	case s.Reason == "":
		s.Reason = d.drift
	}
	for _, c := range d.config.Circuits {
		s.Circuits = append(s.Circuits, d.circuit(c.ID()))
	}
	return s
}

func (d *Device) circuit(id string) wire.DeviceCircuit {
	c := wire.DeviceCircuit{Circuit: id, Loading: d.loading(id)}
	s := d.circuits[id]
	switch {
	case s == nil:
		c.Missing = "parameters are not looked at yet"
	case s.loaded == nil:
		c.Missing = firstLine(s.err.Error())
	default:
		l := s.loaded
		c.Ready, c.ParamsDigest, c.FileBytes, c.Development = true, l.Digest, l.SRS, l.Development
		c.ArtifactBytes, c.SharedBytes, c.PendingBytes = l.Artifact, l.Shared, l.Pending
		c.WorkingBytes, c.DeviceBytes, c.PrivateBytes = l.Working, l.Device, private(l)
		switch {
		case d.config.Images != nil:
			c.SRSBytes = l.Image
		case !d.config.Streamed:
			c.SRSBytes = l.SRS
		}
	}
	return c
}

// Flight is what the device's engine reported last of its buffers, nil while there is none.
func (d *Device) Flight() *flight.Report {
	d.mu.Lock()
	e := d.engine
	d.mu.Unlock()
	if e == nil {
		return nil
	}
	return e.Progress().Flight
}

// Points are the counts of the device's engines as they changed.
func (d *Device) Points() []flight.Point {
	return d.line.Points(engine.FlightProcess(string(d.config.Device)))
}

// loading is how far a load of a circuit is; it must run under the device's lock.
func (d *Device) loading(id string) *wire.Loading {
	if d.engine == nil {
		return nil
	}
	l := d.engine.Progress().Loading
	if l == nil || l.Circuit != id {
		return nil
	}
	return &wire.Loading{What: "load", Done: l.Done, Total: l.Total}
}

// Trouble is why the device can prove nothing, "" when it can.
func (d *Device) Trouble() string {
	s := d.State()
	if !s.Healthy {
		return fmt.Sprintf("device %s: %s", s.Device, s.Reason)
	}
	var missing string
	for _, c := range s.Circuits {
		if c.Ready {
			return ""
		}
		if missing == "" {
			missing = c.Missing
		}
	}
	return fmt.Sprintf("device %s: no parameters: %s", s.Device, missing)
}

// Closed is why nothing should be fetched for the device now: until its engine has started once, and while no circuit
// has parameters. What is sealed for it waits. A device that broke down later hands back what it is given.
func (d *Device) Closed() string {
	d.mu.Lock()
	started := d.started
	d.mu.Unlock()
	s := d.State()
	if started && (!s.Healthy || slices.ContainsFunc(s.Circuits, func(c wire.DeviceCircuit) bool { return c.Ready })) {
		return ""
	}
	return d.Trouble()
}
