package coordinator

import (
	"context"
	"sync/atomic"

	"github.com/proofrack/proofrack/coordinator/internal/dispatch"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/metrics"
)

// shown is what metrics read while the coordinator runs; nil as long as it is not there.
type shown struct {
	bus    atomic.Pointer[bus.Bus]
	leader atomic.Pointer[dispatch.Leader]
}

// meters makes the registry, if none was given, and has it show the coordinator.
func (c *coordinator) meters(reports func() []flight.Report) *metrics.Registry {
	r := c.config.Registry
	if r == nil {
		r = metrics.New(c.config.Metrics, metrics.Options{Role: "coordinator", Build: c.config.Build, Log: c.log})
	}
	if !r.Shared() {
		r.Add("cpu", metrics.OfCPU(nil))
	}
	c.meter = dispatch.NewMeter(r)
	r.Add("flight", metrics.OfFlight(reports))
	r.Add("traces", metrics.OfTraces(c.config.Tracer))
	r.Add("health", metrics.OfHealth(c.health))
	r.Add("nats", metrics.OfBus(func() bus.Bus {
		if b := c.shown.bus.Load(); b != nil {
			return *b
		}
		return nil
	}))
	r.Add("rack", func(ctx context.Context, e *metrics.Emitter) error {
		leader := c.shown.leader.Load()
		e.Flag(metrics.Leader, leader != nil)
		if leader == nil {
			return nil // whoever leads shows it
		}
		return leader.Show(ctx, e)
	})
	return r
}
