package workergpu

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/inventory/gpu"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/worker-gpu/internal/cudadevice"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
	"github.com/proofrack/proofrack/worker-gpu/internal/prove"
)

// Kinds of devices that engines drive.
const (
	kindCPU  = "cpu"
	kindCUDA = "cuda"
)

// Choices that stand for devices.
const (
	chooseCUDA = "cuda" // every GPU, and an error when there is none
	chooseAuto = "auto" // every GPU, or the processor when there is none
)

// find gives the devices to drive: those that the configuration names, else all GPUs. Work is given to a device by its
// UUID, never by an index (B21).
func (w *worker) find() ([]prove.Config, error) {
	inv := w.monitor.Inventory()
	names := w.config.Prove.Devices
	if len(names) == 0 {
		names = slices.Sorted(maps.Keys(w.config.Simulate))
	}
	switch {
	case len(names) == 0:
		return w.allGPUs(inv), nil
	case len(names) == 1 && (names[0] == chooseCUDA || names[0] == chooseAuto):
		return w.choose(names[0], inv)
	}
	var found []prove.Config
	for _, name := range names {
		d, err := w.named(name, inv)
		if err != nil {
			return nil, err
		}
		found = append(found, d)
	}
	return found, nil
}

// choose gives the GPUs that the device library can drive. Where there are none, auto takes the processor and cuda is
// an error of kind fault.Device that says why.
func (w *worker) choose(choice string, inv gpu.Inventory) ([]prove.Config, error) {
	found, err := w.drivable(inv)
	if err == nil || choice == chooseCUDA {
		return found, err
	}
	w.config.Log.Warn().Err(err).Msg("no GPU to prove on: the processor does")
	cpu, err := w.named(kindCPU, inv)
	return []prove.Config{cpu}, err
}

func (w *worker) drivable(inv gpu.Inventory) ([]prove.Config, error) {
	library, devices, err := cudadevice.Devices(w.config.Prove.Library)
	if err != nil {
		return nil, err
	}
	if library.Version().Host {
		return []prove.Config{{
			Device: job.Device(devices[0].UUID), UUID: devices[0].UUID, Name: devices[0].Name,
			NUMANode: inventory.NUMAUnknown, Streamed: true, Engine: engineOf(kindCUDA),
		}}, nil
	}
	found := w.allGPUs(inv)
	if len(found) == 0 {
		return nil, fault.New(fault.Device, "%s", w.none)
	}
	return found, nil
}

func (w *worker) allGPUs(inv gpu.Inventory) []prove.Config {
	var found []prove.Config
	for _, g := range inv.Devices {
		if d, err := w.gpu(g); err == nil {
			found = append(found, d)
		} else {
			w.config.Log.Warn().Err(err).Str("uuid", g.UUID).Msg("device takes no jobs")
		}
	}
	if len(found) == 0 {
		w.none = "no GPU to prove on"
		if inv.Missing != "" {
			w.none += ": " + inv.Missing
		}
		w.none += `; devices = ["cpu"] proves on the processor`
	}
	return found
}

// named is a device by its name or UUID.
func (w *worker) named(name string, inv gpu.Inventory) (prove.Config, error) {
	if text, ok := w.config.Simulate[name]; ok {
		s, err := parseSimulated(name, text)
		if err != nil {
			return prove.Config{}, err
		}
		return prove.Config{
			Device: job.Device(name), UUID: s.UUID, Name: s.Model, NUMANode: s.NUMANode, Memory: s.MemoryBytes,
			Streamed: true, Simulate: &s.Config, Engine: engineOf(kindCPU),
		}, nil
	}
	if name == kindCPU {
		return prove.Config{
			Device: kindCPU, NUMANode: inventory.NUMAUnknown, Streamed: true, Engine: engineOf(kindCPU),
		}, nil
	}
	for _, g := range inv.Devices {
		if name == g.UUID || name == string(deviceName(g)) {
			return w.gpu(g)
		}
	}
	if name == chooseCUDA || name == chooseAuto {
		return prove.Config{}, fault.New(fault.Invalid, "prove.devices: %s stands alone", name)
	}
	known := []string{kindCPU}
	for _, g := range inv.Devices {
		known = append(known, string(deviceName(g)))
	}
	err := fault.New(fault.Invalid, "prove.devices: no device %q; there are %s", name, strings.Join(known, ", "))
	if inv.Missing != "" {
		err = fmt.Errorf("%w (%s)", err, inv.Missing)
	}
	return prove.Config{}, err
}

func engineOf(kind string) engine.Config { return engine.Config{Setup: engine.Setup{Device: kind}} }

// gpu is a GPU of the host. Without a known memory or a budget it takes no jobs (B101).
func (w *worker) gpu(g gpu.Device) (prove.Config, error) {
	name := deviceName(g)
	memory, ok := g.Capacity(w.config.Prove.Budget[string(name)])
	if !ok {
		return prove.Config{}, fault.New(fault.Invalid,
			"memory of device %s is unknown: set prove.budget.%s", name, name)
	}
	return prove.Config{
		Device: name, UUID: g.UUID, Name: g.Name, NUMANode: g.NUMANode, Memory: memory, Engine: engineOf(kindCUDA),
	}, nil
}

// deviceName is made of the UUID, which lasts: "GPU-1a2b3c4d-…" is gpu-1a2b3c4d.
func deviceName(g gpu.Device) job.Device {
	text := strings.ToLower(g.UUID)
	kind, rest, ok := strings.Cut(text, "-")
	if !ok {
		return job.Device(fmt.Sprintf("gpu-%d", g.Index))
	}
	first, _, _ := strings.Cut(rest, "-")
	return job.Device(kind + "-" + first)
}
