package workergpu

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/attempt/host"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/inventory/gpu"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/wire"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
	"github.com/proofrack/proofrack/worker-gpu/internal/prove"
	"github.com/proofrack/proofrack/worker-gpu/internal/residency"
)

// EngineArgument is the program's only argument when it is to be an engine.
const EngineArgument = "engine"

// Engine is an engine process from start to end; it returns the exit code. It must be called before anything else when
// the program was started with EngineArgument.
func Engine() int { return engine.Main() }

// Run is a GPU worker until ctx ends or the Control that it carries (package service) asks to stop. The logger of the
// configuration is used; Connect is NATS unless it is set.
func Run(ctx context.Context, config Config) error {
	config.Role = wire.RoleGPU
	if config.Connect == nil {
		config.Connect = host.NATS(config.NATS, config.Log)
	}
	health := service.NewHealth()
	mux := http.NewServeMux()
	health.Mount(mux)
	if config.Flight == nil {
		var err error
		if config.Flight, err = host.Recorder(config.Role); err != nil {
			return err
		}
	}
	w := &worker{config: config, health: health, facts: inventory.NewHost()}
	flight.Mount(mux, func() flight.Status { return flight.Status{Reports: w.reports()} }, w.points)
	var err error
	if w.copies, err = newCopies(config); err != nil {
		return err
	}
	w.meter(mux)
	w.monitor = gpu.NewMonitor(gpu.NVML(gpu.DefaultLibrary, w.facts), config.GPU, config.Log)
	log := config.Log
	group := service.NewGroup(config.Service, log, health)
	return group.Run(ctx,
		service.HTTP(config.HTTP, mux, func(at net.Addr) { log.Info().Stringer("address", at).Msg("health is served") }),
		w.meters.Service(),
		w.copies.service(),
		w.monitor.Service(),
		service.Service{Name: "gpu", Run: w.run})
}

// worker is a running one.
type worker struct {
	config  Config
	health  *service.Health
	facts   *inventory.Host
	monitor *gpu.Monitor
	meters  *host.Meters
	proofs  *prove.Meters
	host    *host.Host
	cpus    int
	none    string // why there is no device
	images  *residency.Images
	copies  *copies
	devices []*driven
	shown   atomic.Pointer[[]*driven] // devices, once they are complete
}

// reports are the buffers of the process and its engines.
func (w *worker) reports() []flight.Report {
	return append([]flight.Report{w.config.Flight.Report()}, w.engines()...)
}

func (w *worker) engines() (all []flight.Report) {
	for _, d := range w.known() {
		if r := d.Flight(); r != nil {
			all = append(all, *r)
		}
	}
	return all
}

// points are the time lines of the process and its engines.
func (w *worker) points() []flight.Point {
	all := w.config.Flight.Points()
	for _, d := range w.known() {
		all = append(all, d.Points()...)
	}
	return all
}

func (w *worker) known() []*driven {
	if shown := w.shown.Load(); shown != nil {
		return *shown
	}
	return nil
}

// driven is a device with the gate of its queue.
type driven struct {
	*prove.Device

	config prove.Config
	gate   *attempt.Gate
}

// run opens the host and works. It is ready at once: whatever it waits for shows in its health, not in its life.
func (w *worker) run(ctx context.Context, c *service.Control) (err error) {
	c.Ready()
	w.health.Set("bus", errors.New("not connected to NATS yet"))
	opening, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-c.Stopping():
			cancel()
		case <-opening.Done():
		}
	}()
	w.host, err = host.Open(opening, w.config.Config, w.facts)
	stopped := opening.Err() != nil
	cancel()
	if err != nil {
		if stopped {
			return nil //nolint:nilerr // it was stopped before it was open
		}
		return err
	}
	defer func() { err = errors.Join(err, w.host.Close()) }()
	w.meters.Show(w.host)
	w.copies.poke = w.host.Poke
	defer w.copies.close()
	if err := w.prepare(); err != nil {
		return err
	}
	w.health.Set("bus", nil)
	w.health.Ready("nats", func(context.Context) error {
		if !w.host.Bus.Connected() {
			return errors.New("not connected to NATS")
		}
		return nil
	})
	w.health.Ready("work", func(context.Context) error {
		if state, reason := w.host.State(); state != wire.StateReady {
			return fmt.Errorf("%s: %s", state, reason)
		}
		return nil
	})
	return w.host.Run(ctx, c, w.describe, w.obey, func(ctx context.Context) error { return w.serve(ctx, c) })
}

// prepare finds the devices and lists them for the other workers of the host.
func (w *worker) prepare() error {
	cpus, err := w.facts.CPUs()
	if err != nil {
		return fmt.Errorf("count processors: %w", err)
	}
	w.cpus = cpus.Usable
	if w.config.Prove.Decoded {
		w.images = residency.NewImages(w.config.Flight)
	}
	var circuits []circuit.Circuit
	for _, c := range catalog.Circuits() {
		if len(w.config.Prove.Circuits) == 0 || slices.Contains(w.config.Prove.Circuits, c.ID()) {
			circuits = append(circuits, c)
		}
	}
	found, err := w.find()
	if err != nil {
		return err
	}
	for _, d := range found {
		d.Circuits = circuits
		w.complete(&d, cpus, len(found))
		if err := w.host.ListDevice(host.Device{Device: d.Device, NUMANode: d.NUMANode, Memory: d.Memory}); err != nil {
			return err
		}
		w.devices = append(w.devices, &driven{
			Device: prove.New(d, w.host), config: d, gate: attempt.NewGate(func() {}),
		})
	}
	w.shown.Store(&w.devices)
	w.inspectAll() // so that the first beat says what is not ready
	return nil
}

// complete fills in what all devices have in common.
func (w *worker) complete(d *prove.Config, cpus inventory.CPUs, count int) {
	c := &w.config
	workers := c.Prove.Workers
	if workers == 0 {
		workers = max(1, cpus.Usable/max(1, count))
	}
	command := c.EngineCommand
	if len(command) == 0 {
		command = engine.DefaultCommand()
	}
	d.Images, d.Meters = w.images, w.proofs
	d.Params, d.PollEvery, d.SealWait, d.Log = c.Prove.Params, c.Prove.Poll, c.Spill.SealWait, c.Log
	d.TickEvery = max(time.Millisecond, c.Worker.Heartbeat/2)
	d.PauseMin, d.PauseMax, d.FaultsMax = c.Engine.PauseMin, c.Engine.PauseMax, c.Engine.FaultsMax
	setup := d.Engine.Setup
	setup.Name, setup.UUID, setup.Params, setup.Cache = string(d.Device), d.UUID, c.Prove.Params, c.Prove.Cache
	setup.Workers, setup.HookFolder, setup.Hooks = workers, c.Test.Folder, c.Test.Hooks
	setup.MemoryBytes, setup.Library = d.Memory, c.Prove.Library
	d.Engine = engine.Config{
		Command: command, Setup: setup, Environ: cpus.Environ(), Inherit: nil,
		StartMax: c.Engine.StartMax, StopMax: c.Engine.StopMax, StallMax: c.Engine.StallMax, StageMax: c.Engine.StageMax,
		Log: c.Log,
	}
	if setup.Device == kindCUDA { // it sees no other, whatever order the driver counts in (B21)
		d.Engine.Environ = append(d.Engine.Environ, "CUDA_VISIBLE_DEVICES="+d.UUID)
	}
	for _, evidence := range []*os.File{w.host.Book.Evidence(), w.host.Claim.Evidence()} {
		if evidence != nil {
			d.Engine.Inherit = append(d.Engine.Inherit, evidence)
		}
	}
}

// serve drives the devices and their queues until all queues are done.
func (w *worker) serve(ctx context.Context, c *service.Control) error {
	driving, stop := context.WithCancel(ctx)
	var drivers, queues sync.WaitGroup
	errs := make([]error, len(w.devices))
	for i, d := range w.devices {
		drivers.Go(func() {
			if err := d.Run(driving); err != nil {
				w.config.Log.Error().Err(err).Str("device", string(d.config.Device)).Msg("device is given up")
			}
		})
		queues.Go(func() { errs[i] = w.host.Serve(ctx, c, w.source(d)) })
	}
	drivers.Go(func() { w.watch(driving) })
	if len(w.devices) == 0 {
		<-c.Stopping()
	}
	queues.Wait()
	stop()
	drivers.Wait()
	return errors.Join(errs...)
}

func (w *worker) source(d *driven) attempt.Source {
	node, device := w.host.Node, d.config.Device
	return attempt.Source{
		Consumer: bus.Consumer{
			Stream: wire.StreamProve, Name: wire.ProveConsumer(node, device), Subject: wire.ProveSubject(node, device),
			AckWait: w.config.Worker.AckWait, Existing: true,
		},
		// One is started while another finishes, the rest waits.
		Slots: 2 + w.config.Prove.Ahead, Decode: d.Decode, Gate: d.gate, Left: d.Left,
	}
}

// gateDevices is the reason while no device can prove anything, or one cannot.
const gateDevices = "devices"

// watch keeps reasons and gates as the devices' health says.
func (w *worker) watch(ctx context.Context) {
	ticker := time.NewTicker(max(time.Millisecond, min(w.config.Worker.Heartbeat, time.Second)/4))
	defer ticker.Stop()
	for {
		w.inspectAll()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (w *worker) inspectAll() {
	var troubles []string
	for _, d := range w.devices {
		d.gate.Set(gateDevices, d.Closed())
		w.inspect(d)
		if trouble := d.Trouble(); trouble != "" {
			troubles = append(troubles, trouble)
		}
	}
	switch {
	case len(w.devices) == 0:
		w.host.Notes.Set(gateDevices, w.none)
	case len(troubles) == len(w.devices):
		w.host.Notes.Set(gateDevices, strings.Join(troubles, "; "))
	default:
		w.host.Notes.Set(gateDevices, "")
	}
}

// gateDriver is the reason while the driver complains about a device.
const gateDriver = "driver"

// inspect closes a GPU's queue while the driver calls it unhealthy.
func (w *worker) inspect(d *driven) {
	for _, g := range w.monitor.Inventory().Devices {
		if g.UUID != "" && g.UUID == d.config.UUID {
			reason := ""
			if !g.Healthy {
				reason = fmt.Sprintf("device %s: %s", d.config.Device, g.Reason)
			}
			d.gate.Set(gateDriver, reason)
		}
	}
}

// describe completes a beat.
func (w *worker) describe(b *wire.Beat) {
	b.CPUs, b.Slots = w.cpus, len(w.devices)
	b.Flight = append(b.Flight, w.engines()...)
	for _, d := range w.devices {
		s := d.State()
		if reason := d.gate.Reasons(); reason != "" && s.Healthy && d.gate.Has(gateDriver) {
			s.Healthy, s.Reason = false, reason
		}
		b.Devices = append(b.Devices, s)
	}
	w.copies.describe(b)
}
