package workersynth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/attempt/host"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/wire"
	"github.com/proofrack/proofrack/worker-synth/internal/synth"
)

// Run is a synthesis worker until ctx ends or the Control that it carries (package service) asks to stop. The logger of
// the configuration is used; Connect is NATS unless it is set.
func Run(ctx context.Context, config Config) error {
	config.Role = wire.RoleSynth
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
	reports := func() []flight.Report { return []flight.Report{config.Flight.Report()} }
	flight.Mount(mux, func() flight.Status { return flight.Status{Reports: reports()} }, config.Flight.Points)
	group := service.NewGroup(config.Service, config.Log, health)
	w := &worker{config: config, health: health, facts: inventory.NewHost()}
	w.meters = host.NewMeters(&w.config.Config, mux, health, reports, nil)
	return group.Run(ctx, service.HTTP(config.HTTP, mux, logAddress(config.Log)), w.meters.Service(),
		service.Service{Name: "synth", Run: w.run})
}

// worker is a running one.
type worker struct {
	config Config
	health *service.Health
	meters *host.Meters
	facts  *inventory.Host
	cpus   int
	synth  *synth.Synth
	host   *host.Host
	offers []wire.SynthCircuit
	known  []circuit.Circuit
}

// run opens the host and works. It is ready at once: whatever it waits for shows in its health, not in its life.
func (w *worker) run(ctx context.Context, c *service.Control) (err error) {
	c.Ready()
	w.health.Set("bus", errors.New("not connected to NATS yet"))
	opening, cancel := untilStopping(ctx, c)
	w.host, err = host.Open(opening, w.config.Config, w.facts)
	if err == nil {
		defer func() { err = errors.Join(err, w.host.Close()) }()
		w.meters.Show(w.host)
		err = w.prepare(opening)
	}
	stopped := opening.Err() != nil
	cancel()
	if err != nil {
		if stopped {
			return nil //nolint:nilerr // it was stopped before it was open
		}
		return err
	}
	h := w.host
	w.health.Set("bus", nil)
	w.health.Ready("nats", connected(h.Bus))
	w.health.Ready("work", func(context.Context) error {
		if state, reason := h.State(); state != wire.StateReady {
			return fmt.Errorf("%s: %s", state, reason)
		}
		return nil
	})
	return h.Run(ctx, c, w.describe, nil, func(ctx context.Context) error {
		watching, stop := context.WithCancel(ctx)
		defer stop()
		go w.watchSpill(watching)
		return h.Serve(ctx, c, attempt.Source{
			Consumer: bus.Consumer{
				Stream: wire.StreamSynth, Name: wire.SynthConsumer(h.Node), Subject: wire.SynthSubject(h.Node),
				AckWait: w.config.Worker.AckWait, Existing: true,
			},
			Slots: w.config.Synth.Slots, Decode: w.synth.Decode,
		})
	})
}

// untilStopping gives a context that ends when c says Stopping.
func untilStopping(ctx context.Context, c *service.Control) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-c.Stopping():
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func connected(b bus.Bus) service.Check {
	return func(context.Context) error {
		if !b.Connected() {
			return errors.New("not connected to NATS")
		}
		return nil
	}
}

// prepare opens the slices, counts cores and lays out the segments of all circuits.
func (w *worker) prepare(ctx context.Context) error {
	cpus, err := w.facts.CPUs()
	if err != nil {
		return fmt.Errorf("count processors: %w", err)
	}
	w.cpus = min(cpus.Usable, runtime.GOMAXPROCS(0))
	if w.config.Synth.Slots == 0 {
		w.config.Synth.Slots = max(1, w.cpus/4)
	}
	if w.config.Synth.Workers == 0 {
		w.config.Synth.Workers = max(1, w.cpus/w.config.Synth.Slots)
	}
	slices, err := host.Wait(ctx, w.host, "slices", func(ctx context.Context) (bus.Objects, error) {
		return w.host.Bus.Objects(ctx, wire.ObjectsSlices)
	})
	if err != nil {
		return err
	}
	w.synth = synth.New(synth.Config{
		Workers: w.config.Synth.Workers, Find: catalog.Find, CPUsOf: w.host.CPUsOf, Check: w.config.Synth.Check,
		Pad: w.config.Synth.PadBytes, Markers: w.config.Test.Markers, Flight: w.host.Flight,
		ScratchBytes: w.config.Synth.ScratchBytes, Meter: w.meter(), BallastBytes: w.config.Synth.BallastBytes,
	}, slices, w.host.Spill, w.host.Book, w.host.Points, w.config.Log)
	if err := w.offer(); err != nil {
		return err
	}
	w.host.Gate.Set(gateSpill, w.spillTrouble()) // so that the first beat says whether there is room
	return nil
}

// meter measures this process, if nobody else is at work in it.
func (w *worker) meter() *agent.Meter {
	if !w.config.Alone {
		return nil
	}
	m, err := agent.NewMeter(agent.MeterConfig{PID: os.Getpid(), Facts: w.facts})
	if err != nil {
		w.config.Log.Warn().Err(err).Msg("memory of syntheses is not measured")
		return nil
	}
	return m
}

// offer lays out the circuits' segments, for what the worker says of itself.
func (w *worker) offer() error {
	ids := w.config.Synth.Circuits
	if len(ids) == 0 {
		for _, c := range catalog.Circuits() {
			ids = append(ids, c.ID())
		}
	}
	kind := w.host.Spill.Kinds()[0]
	for _, id := range ids {
		c, err := catalog.Find(id)
		if err != nil {
			return err
		}
		l, err := w.synth.Layout(c)
		if err != nil {
			return err
		}
		w.known = append(w.known, c)
		w.offers = append(w.offers, wire.SynthCircuit{
			Circuit: id, SegmentBytes: w.host.Spill.FileBytes(kind, w.synth.BodyBytes(l)),
			ScratchBytes: w.config.Synth.ScratchBytes,
		})
	}
	return nil
}

// describe completes a beat.
func (w *worker) describe(b *wire.Beat) {
	b.Slots, b.CPUs, b.Synth = w.config.Synth.Slots, w.cpus, w.offers
}

// gateSpill is the gate's reason while the spill folders have no room.
const gateSpill = "spill"

// watchSpill closes the gate while no segment of any circuit would fit even if all of ours were gone: others have the
// space then, and nothing of theirs is touched (B82).
func (w *worker) watchSpill(ctx context.Context) {
	ticker := time.NewTicker(w.config.Worker.Heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			w.host.Gate.Set(gateSpill, w.spillTrouble())
		}
	}
}

func (w *worker) spillTrouble() string {
	var texts []string
	for _, c := range w.known {
		l, err := w.synth.Layout(c)
		if err == nil {
			err = w.host.Spill.Check("", w.synth.BodyBytes(l))
		}
		var short *handoff.Shortage
		if !errors.As(err, &short) || short.HasBytes+short.Usage.SegmentBytes >= short.NeedBytes {
			return ""
		}
		texts = append(texts, c.ID()+": "+short.Error())
	}
	return strings.Join(texts[:min(1, len(texts))], "")
}
