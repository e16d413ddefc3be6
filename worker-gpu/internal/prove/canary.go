package prove

import (
	"context"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/wire"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
)

// canaryMax bounds a known answer that a coordinator ordered, with the wait for an engine and for proofs that run.
const canaryMax = time.Minute

// Canary has the device prove a known answer, alone, and keeps what came of it for the beats. The same order again does
// nothing.
func (d *Device) Canary(id string) {
	d.mu.Lock()
	again := d.asked == id
	d.asked = id
	d.mu.Unlock()
	if again {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), canaryMax)
	defer cancel()
	outcome := &wire.Canary{ID: id, OK: true}
	if err := d.known(ctx); err != nil {
		outcome.OK, outcome.Reason = false, firstLine(err.Error())
	}
	d.config.Log.Info().Str("device", string(d.config.Device)).Bool("ok", outcome.OK).Str("reason", outcome.Reason).
		Msg("a known answer was proved as ordered")
	d.change(func() { d.canary = outcome })
}

// known proves a known answer in the device's engine.
func (d *Device) known(ctx context.Context) error {
	if err := d.lane.enter(ctx, true); err != nil {
		return err
	}
	defer d.lane.leave()
	defer d.lane.pass()
	for {
		e, err := d.anyEngine(ctx)
		if err != nil {
			return err
		}
		if !d.activate(e) {
			continue // it is being replaced
		}
		err = e.Canary(ctx)
		d.deactivate()
		if err != nil {
			return d.judge(err)
		}
		return nil
	}
}

// anyEngine waits for an engine that serves.
func (d *Device) anyEngine(ctx context.Context) (*engine.Engine, error) {
	for {
		d.mu.Lock()
		e, changed, reason := d.engine, d.changed, d.reason
		down := e == nil && d.faults >= d.config.FaultsMax // no new engine has proved a known answer
		if e != nil && (d.recycle != "" || gone(e)) {
			e = nil
		}
		d.mu.Unlock()
		if e != nil {
			return e, nil
		}
		if down {
			return nil, fault.New(fault.Device, "device %s is unhealthy: %s", d.config.Device, reason)
		}
		select {
		case <-ctx.Done():
			return nil, fault.New(fault.Device, "device %s has no engine: %s", d.config.Device, reason)
		case <-changed:
		}
	}
}
