package prove

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/attempt/host"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/wire"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
)

// Device is one device with its engine. Its methods may be called from several goroutines.
type Device struct {
	config Config
	host   *host.Host
	lane   *lane
	line   *flight.Timeline // of its engines
	jobs   atomic.Int64     // started on the device, ever
	ticks  atomic.Uint64    // progress of the supervisor

	mu       sync.Mutex
	changed  chan struct{} // closed and renewed at each change
	engine   *engine.Engine
	base     uint64 // progress of engines that are gone
	faults   int    // in a row
	reason   string // the last fault
	drift    string // of the device's memory
	started  bool   // an engine has been ready
	circuits map[string]*circuitState
	shares   map[string]*share
	renewed  map[string]bool // circuits whose file was replaced since what is shared of them was loaded
	free     bytesize.Bytes  // of the device's memory when its engine was new
	gauge    *gauge          // of the engine
	recycle  string          // why the engine is to be replaced when it is idle
	active   int             // proofs started and not ended
	canary   *wire.Canary    // the last known answer that was ordered, once it is known what came of it
	asked    string          // the id of the last one that was ordered
}

// circuitState is what is known of one circuit on this device.
type circuitState struct {
	loaded *engine.Loaded // nil while it is not ready
	key    *groth16.PreparedKey
	err    error
	file   fileState // of the parameter file that it is about
}

// New makes a device; Run drives it.
func New(config Config, h *host.Host) *Device {
	return &Device{
		config: config, host: h, lane: newLane(), changed: make(chan struct{}), circuits: map[string]*circuitState{},
		shares: map[string]*share{}, renewed: map[string]bool{}, line: flight.NewTimeline(flight.PointsDefault),
	}
}

// change runs a change of the state and wakes whoever waits for one.
func (d *Device) change(do func()) {
	d.mu.Lock()
	do()
	close(d.changed)
	d.changed = make(chan struct{})
	d.mu.Unlock()
	d.host.Poke()
}

// Run keeps an engine running until ctx ends.
func (d *Device) Run(ctx context.Context) error {
	pause := d.config.PauseMin
	for ctx.Err() == nil {
		d.ticks.Add(1)
		fault := d.serve(ctx)
		if ctx.Err() != nil {
			break
		}
		if fault == nil { // recycled
			pause = d.config.PauseMin
			continue
		}
		d.note(fault)
		if d.faultsInRow() <= 1 {
			pause = d.config.PauseMin
		}
		level := zerolog.WarnLevel
		if d.faultsInRow() > d.config.FaultsMax { // said often enough
			level = zerolog.DebugLevel
		}
		d.config.Log.WithLevel(level).Err(fault).Str("device", string(d.config.Device)).Dur("pause", pause).
			Msg("engine is replaced")
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, d.config.PauseMax)
	}
	return nil
}

// note counts a fault.
func (d *Device) note(err error) {
	d.change(func() {
		d.faults++
		d.reason = firstLine(err.Error())
	})
}

func (d *Device) faultsInRow() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.faults
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// serve runs one engine to its end. The error says what was wrong with it; nil means that it was replaced on purpose.
func (d *Device) serve(ctx context.Context) error {
	e, err := engine.Spawn(ctx, d.engineConfig())
	if err != nil {
		return err
	}
	defer e.Close()
	measured := d.newGauge(e)
	if d.faultsInRow() > 0 {
		if err := e.Canary(ctx); err != nil {
			return err
		}
	}
	d.forgetReplaced()
	d.change(func() {
		d.engine, d.started, d.recycle = e, true, ""
		d.free, d.gauge = e.Progress().Free, measured
	})
	d.config.Meters.started(d)
	d.config.Log.Info().Str("device", string(d.config.Device)).Int("pid", e.PID()).Msg("engine is ready")
	loading, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { d.keepLoaded(loading, e) })
	err = d.attend(ctx, e)
	stop()
	wg.Wait()
	d.change(func() {
		d.base += e.Progress().Count()
		d.engine = nil
	})
	return err
}

func (d *Device) engineConfig() engine.Config {
	c := d.config.Engine
	c.Timeline = d.line
	if d.config.Simulate != nil {
		simulate := *d.config.Simulate
		simulate.JobsBefore = int(d.jobs.Load())
		c.Setup.Simulate = &simulate
	}
	return c
}

// attend watches an engine that serves, to its end or until it is to be replaced.
func (d *Device) attend(ctx context.Context, e *engine.Engine) error {
	alive := time.NewTicker(d.config.TickEvery)
	defer alive.Stop()
	for {
		d.mu.Lock()
		changed, recycle := d.changed, d.recycle
		now := recycle != "" && d.active == 0
		if now {
			d.engine = nil // no proof can be started on it any more
		}
		d.mu.Unlock()
		if now {
			return d.replaced(recycle)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-e.Gone():
			return e.Crash()
		case <-changed:
		case <-alive.C:
			d.ticks.Add(1)
		}
	}
}

// replaced tells why an engine is replaced on purpose: a fault of the device is one, memory drift and another parameter
// file are none.
func (d *Device) replaced(why string) error {
	switch why {
	case recycleParams:
		return nil // it was said
	case recycleDrift:
		d.config.Log.Warn().Str("device", string(d.config.Device)).Msg("engine is recycled: device memory drifts")
		return nil
	}
	return fault.New(fault.Device, "%s", why)
}

// serving waits for an engine that can prove a circuit. Errors: kind Exhausted when there can be none now (the
// attempt is handed back), the context's.
func (d *Device) serving(ctx context.Context, id string) (*engine.Engine, *circuitState, error) {
	for {
		d.mu.Lock()
		e, s, changed := d.engine, d.circuits[id], d.changed
		if e != nil && (d.recycle != "" || gone(e)) {
			e = nil // the supervisor is about to replace it
		}
		err := d.refusal(e, s, id)
		d.mu.Unlock()
		if err != nil || e != nil && s != nil {
			return e, s, err
		}
		select {
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		case <-changed:
		}
	}
}

func gone(e *engine.Engine) bool {
	select {
	case <-e.Gone():
		return true
	default:
		return false
	}
}

// refusal is why a circuit cannot be proved for some time, nil when it can or soon will be.
func (d *Device) refusal(e *engine.Engine, s *circuitState, id string) error {
	switch {
	case e != nil && !slices.ContainsFunc(d.config.Circuits, func(c circuit.Circuit) bool { return c.ID() == id }):
		return fault.New(fault.Exhausted, "device %s does not prove circuit %s", d.config.Device, id)
	case e != nil && s != nil && s.loaded == nil:
		return fault.As(fault.Exhausted,
			fmt.Errorf("device %s is not ready for circuit %s: %w", d.config.Device, id, s.err))
	case e == nil && d.faults >= d.config.FaultsMax:
		return fault.New(fault.Exhausted, "device %s is unhealthy: %s", d.config.Device, d.reason)
	}
	return nil
}

// activate counts a proof that is about to be started, unless the engine is not, or soon no more, the device's.
// deactivate must follow.
func (d *Device) activate(e *engine.Engine) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.engine != e || d.recycle != "" || gone(e) {
		return false
	}
	d.active++
	return true
}

// deactivate counts the end of a proof.
func (d *Device) deactivate() { d.change(func() { d.active-- }) }

// company tells that more than one proof is started.
func (d *Device) company() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.active > 1
}

// blame has the engine replaced after a fault of the device: when it is idle, or at once when it is gone.
func (d *Device) blame(err error) {
	var crash *engine.Crash
	if errors.As(err, &crash) {
		return // the supervisor has seen it
	}
	d.change(func() { d.recycle = firstLine(err.Error()) })
}

// praise ends a row of faults.
func (d *Device) praise() {
	d.mu.Lock()
	clear := d.faults > 0 && d.recycle == ""
	d.mu.Unlock()
	if clear {
		d.change(func() { d.faults, d.reason = 0, "" })
	}
}

// measure looks at the device's memory after a proof, when no other is on it (B11).
func (d *Device) measure(e *engine.Engine, need bytesize.Bytes) {
	p := e.Progress()
	if p.Total == 0 || d.company() {
		return
	}
	d.mu.Lock()
	lost := max(0, d.free-p.Free)
	d.mu.Unlock()
	if lost == 0 {
		return
	}
	d.change(func() {
		d.drift = fmt.Sprintf("device memory drift: %s of %s are not given back", lost, p.Total)
		if p.Free < need+lost/2 && d.recycle == "" {
			d.recycle = recycleDrift
		}
	})
	d.config.Log.Warn().Str("device", string(d.config.Device)).Stringer("drift", lost).Stringer("free", p.Free).
		Msg("device memory drifts")
}

// progress rises while the device works or its supervisor repairs it.
func (d *Device) progress() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.base + d.ticks.Load()
	if d.engine != nil {
		n += d.engine.Progress().Count()
	}
	return n
}
