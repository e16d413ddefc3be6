package rack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/sizes"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// View is a node as the scheduler takes it, without its book.
func (n *Node) View(mark store.NodeMark) scheduler.NodeView {
	v := scheduler.NodeView{
		Node: n.Node, Cordoned: mark.Cordoned, Draining: mark.Draining,
	}
	synth, idle := map[string]wire.SynthCircuit{}, map[string]string{}
	v.Ready, v.Reason = n.ready()
	first := true
	for _, p := range n.Processes {
		b := &p.Beat
		if b.Role != wire.RoleSynth {
			continue
		}
		if b.State != wire.StateReady {
			for _, c := range b.Synth {
				idle[c.Circuit] = stateOf(b)
			}
			continue
		}
		v.SynthSlots += b.Slots
		wireOf := scheduler.Versions{Min: b.WireMin, Max: b.WireMax}
		if first {
			v.Wire, first = wireOf, false
		} else {
			v.Wire = scheduler.Versions{Min: max(v.Wire.Min, wireOf.Min), Max: min(v.Wire.Max, wireOf.Max)}
		}
		for _, c := range b.Synth {
			synth[c.Circuit] = largest(synth[c.Circuit], c)
		}
	}
	if n.Host != nil {
		v.Capacity = n.Host.Report.Capacity
	}
	v.Devices = n.devices(mark, synth, idle, v.Capacity)
	if len(v.Devices) == 0 {
		v.NoDevice = n.noDevice()
	}
	return v
}

// stateOf says that a synthesis worker takes no work, and why.
func stateOf(b *wire.Beat) string {
	text := "synthesis worker is not ready"
	if b.State == wire.StateDraining {
		text = "synthesis worker is draining"
	}
	return strings.TrimSuffix(text+": "+b.Reason, ": ")
}

// noDevice says why a node has no device.
func (n *Node) noDevice() string {
	var reasons []string
	for _, p := range n.Processes {
		if p.Beat.Role == wire.RoleGPU {
			reasons = append(reasons, strings.TrimSuffix("its GPU worker has none: "+p.Beat.Reason, ": "))
		}
	}
	if len(reasons) == 0 {
		return "no GPU worker"
	}
	return strings.Join(slices.Compact(reasons), "; ")
}

// ready tells whether a node can take work at all.
func (n *Node) ready() (bool, string) {
	if n.Host == nil {
		return false, "no process has reported for the host yet"
	}
	var reasons []string
	for _, p := range n.Processes {
		if p.Beat.Role != wire.RoleSynth {
			continue
		}
		if p.Beat.State == wire.StateReady {
			return true, ""
		}
		reasons = append(reasons, stateOf(&p.Beat))
	}
	if len(reasons) == 0 {
		return false, "no synthesis worker"
	}
	return false, strings.Join(slices.Compact(reasons), "; ")
}

// devices gives each device once: when two processes name one, the later start drives it.
func (n *Node) devices(
	mark store.NodeMark, synth map[string]wire.SynthCircuit, idle map[string]string, capacity ledger.Amounts,
) []scheduler.DeviceView {
	var out []scheduler.DeviceView
	for _, p := range slices.Backward(n.Processes) {
		b := &p.Beat
		if b.Role != wire.RoleGPU {
			continue
		}
		for _, d := range b.Devices {
			if slices.ContainsFunc(out, func(o scheduler.DeviceView) bool { return o.Device == d.Device }) {
				continue
			}
			dv := scheduler.DeviceView{
				Device: d.Device, Kind: clip(d.Name, sizes.KindBytesMax),
				Healthy: d.Healthy && b.State == wire.StateReady, Reason: d.Reason,
				Instance: b.Instance, Wire: scheduler.Versions{Min: b.WireMin, Max: b.WireMax},
				Circuits: map[string]scheduler.CircuitView{},
			}
			if d.Healthy && b.State != wire.StateReady {
				dv.Reason = strings.TrimSuffix("worker is "+b.State+": "+b.Reason, ": ")
			}
			if q, ok := mark.Quarantined[d.Device]; ok {
				dv.Quarantined, dv.Reason = true, q.Text()
			}
			for _, c := range d.Circuits {
				dv.Circuits[c.Circuit] = circuitView(d, c, synth, idle, capacity)
			}
			out = append(out, dv)
		}
	}
	slices.SortFunc(out, func(a, b scheduler.DeviceView) int {
		return strings.Compare(string(a.Device), string(b.Device))
	})
	return out
}

// circuitView is what a device and its node offer for a circuit: synth are the circuits of synthesis workers that are
// ready, idle those of the others, with what keeps these.
func circuitView(
	d wire.DeviceState, c wire.DeviceCircuit, synth map[string]wire.SynthCircuit, idle map[string]string,
	capacity ledger.Amounts,
) scheduler.CircuitView {
	s, ok := synth[c.Circuit]
	switch {
	case !c.Ready && c.Missing == "":
		return scheduler.CircuitView{Missing: "its worker does not say what it lacks"}
	case !c.Ready:
		return scheduler.CircuitView{Missing: c.Missing}
	case !ok && idle[c.Circuit] != "":
		return scheduler.CircuitView{Missing: idle[c.Circuit]}
	case !ok:
		return scheduler.CircuitView{Missing: "no synthesis worker of the node knows circuit " + c.Circuit}
	case s.SegmentBytes <= 0: // nothing is given out whose need is not told (B19)
		return scheduler.CircuitView{Missing: "its synthesis worker does not say how large a segment is"}
	}
	v := scheduler.CircuitView{Ready: true}
	assets := assetsOf(d, c, s)
	ram := s.ScratchBytes + c.PendingBytes
	if capacity[ledger.PoolSHM] > 0 || capacity[ledger.PoolDisk] == 0 {
		// Every byte of shm is also a byte of ram.
		v.Choices = append(v.Choices, scheduler.Needs{
			Amounts: amounts(ledger.PoolRAM, ram+s.SegmentBytes, ledger.PoolSHM, s.SegmentBytes), Assets: assets,
		})
	}
	if capacity[ledger.PoolDisk] > 0 {
		v.Choices = append(v.Choices, scheduler.Needs{
			Amounts: amounts(ledger.PoolRAM, ram, ledger.PoolDisk, s.SegmentBytes), Assets: assets,
		})
	}
	v.Computed = computed(c, s)
	return v
}

// computed is what workers compute by stage, for comparison with what is measured.
func computed(c wire.DeviceCircuit, s wire.SynthCircuit) (all []scheduler.Computed) {
	for _, one := range []scheduler.Computed{
		{Stage: job.Synthesizing, Pool: ledger.PoolRAM, Bytes: s.ScratchBytes},
		{Stage: job.Synthesizing, Pool: ledger.PoolSHM, Bytes: s.SegmentBytes},
		{Stage: job.Synthesizing, Pool: ledger.PoolDisk, Bytes: s.SegmentBytes},
		{Stage: job.Proving, Pool: ledger.PoolRAM, Bytes: c.PrivateBytes},
		{Stage: job.Proving, Pool: sizes.VRAM, Bytes: c.DeviceBytes},
	} {
		if one.Bytes > 0 {
			all = append(all, one)
		}
	}
	return all
}

// clip bounds a text from outside.
func clip(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }

// assetsOf are the bytes that proofs of a circuit share: counted once per node (parameters, artifact) or device (B40).
func assetsOf(d wire.DeviceState, c wire.DeviceCircuit, s wire.SynthCircuit) []ledger.Asset {
	device := fmt.Sprintf("%s.%s", d.Device, c.Circuit)
	var out []ledger.Asset
	for _, a := range []ledger.Asset{
		{Name: "srs:" + c.Circuit, Pool: ledger.PoolRAM, Class: ledger.ClassSRS, Bytes: c.SRSBytes},
		{Name: "artifact:" + c.Circuit, Pool: ledger.PoolRAM, Class: ledger.ClassArtifact, Bytes: c.ArtifactBytes},
		{Name: "artifact:synth." + c.Circuit, Pool: ledger.PoolRAM, Class: ledger.ClassArtifact, Bytes: s.ArtifactBytes},
		{Name: "engine:" + device, Pool: ledger.PoolRAM, Class: ledger.ClassScratch, Bytes: c.SharedBytes + c.WorkingBytes},
		{Name: "device:" + device, Pool: ledger.PoolVRAM(d.Device), Class: ledger.ClassScratch, Bytes: c.DeviceBytes},
	} {
		if a.Bytes > 0 {
			out = append(out, a)
		}
	}
	return out
}

func amounts(p ledger.Pool, b bytesize.Bytes, q ledger.Pool, c bytesize.Bytes) ledger.Amounts {
	a := ledger.Amounts{}
	if b > 0 {
		a[p] = b
	}
	if c > 0 {
		a[q] = c
	}
	return a
}

func largest(a, b wire.SynthCircuit) wire.SynthCircuit {
	return wire.SynthCircuit{
		Circuit: b.Circuit, SegmentBytes: max(a.SegmentBytes, b.SegmentBytes),
		ScratchBytes: max(a.ScratchBytes, b.ScratchBytes), ArtifactBytes: max(a.ArtifactBytes, b.ArtifactBytes),
	}
}
