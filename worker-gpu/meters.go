package workergpu

import (
	"context"
	"net/http"

	"github.com/proofrack/proofrack/shared/attempt/host"
	"github.com/proofrack/proofrack/shared/inventory/gpu"
	"github.com/proofrack/proofrack/shared/metrics"
	"github.com/proofrack/proofrack/worker-gpu/internal/prove"
)

// meter makes the worker's metrics.
func (w *worker) meter(mux *http.ServeMux) {
	w.meters = host.NewMeters(&w.config.Config, mux, w.health, w.reports, w.enginePIDs)
	w.proofs = prove.NewMeters(w.meters.Registry)
	w.meters.Add("devices", w.showDevices)
	w.meters.Add("gpus", w.showGPUs)
}

// enginePIDs are the processes of the engines that live.
func (w *worker) enginePIDs() (all []int) {
	for _, d := range w.known() {
		if pid := d.EnginePID(); pid != 0 {
			all = append(all, pid)
		}
	}
	return all
}

func (w *worker) showDevices(_ context.Context, e *metrics.Emitter) error {
	for _, d := range w.known() {
		s := d.State()
		e.Flag(metrics.DeviceHealthy, s.Healthy && !d.gate.Has(gateDriver), string(s.Device))
		for _, c := range s.Circuits {
			e.Flag(metrics.DeviceAsset, c.Ready, string(s.Device), c.Circuit)
		}
	}
	return nil
}

// showGPUs shows what the driver tells of the worker's GPUs. What it does not tell is left out, never 0 (B99, B101).
func (w *worker) showGPUs(_ context.Context, e *metrics.Emitter) error {
	names := map[string]string{}
	for _, d := range w.known() {
		if d.config.UUID != "" {
			names[d.config.UUID] = string(d.config.Device)
		}
	}
	for _, g := range w.monitor.Inventory().Devices {
		if name, ours := names[g.UUID]; ours {
			showGPU(e, name, &g)
		}
	}
	return nil
}

// Units of the driver.
const (
	milliwatts       = 1000
	millijoulesPerWh = 3_600_000
)

func showGPU(e *metrics.Emitter, name string, g *gpu.Device) {
	e.Flag(metrics.DeviceDriver, g.Healthy, name)
	if g.Memory.Known {
		e.Put(metrics.DeviceMemory, float64(g.Memory.Total), name, "total")
		e.Put(metrics.DeviceMemory, float64(g.Memory.Total-g.Memory.Free), name, "used")
	}
	if g.Utilization != gpu.Unknown {
		e.Put(metrics.DeviceBusy, float64(g.Utilization)/100, name)
	}
	if g.PowerMW != gpu.Unknown {
		e.Put(metrics.DevicePower, float64(g.PowerMW)/milliwatts, name)
	}
	if g.EnergyMJ != gpu.Unknown {
		e.Put(metrics.DeviceEnergy, float64(g.EnergyMJ)/millijoulesPerWh, name)
	}
}
