package metrics

import (
	"context"
	"fmt"
	"math"
	"os"
	"syscall"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// OfFlight shows the buffers of the process and those below it.
func OfFlight(reports func() []flight.Report) Source {
	return func(_ context.Context, e *Emitter) error {
		for _, r := range reports() {
			r.Process = PlainProcess(r.Process)
			e.Put(FlightProofs, float64(r.Pending), r.Process, "pending")
			e.Put(FlightProofs, float64(r.Waiting), r.Process, "waiting")
			e.Put(FlightRSS, float64(r.RSSBytes), r.Process)
			e.Put(FlightBeyond, float64(r.BeyondBytes), r.Process)
			e.Put(FlightDefects, float64(r.Defects), r.Process)
			for i := range r.Classes {
				e.class(r.Process, &r.Classes[i])
			}
		}
		return nil
	}
}

// PlainProcess is a process's name in reports, as a label.
func PlainProcess(name string) string {
	if name == "" {
		return "unknown"
	}
	return name
}

func (e *Emitter) class(process string, c *flight.ClassReport) {
	class := string(c.Class)
	live := map[flight.Stage]flight.StageCount{}
	for _, n := range c.Live {
		live[n.Stage] = n
	}
	for stage := flight.Allocated; stage < flight.Gone; stage++ {
		e.Put(FlightPieces, float64(live[stage].Pieces), process, class, stage.String())
		e.Put(FlightBytes, float64(live[stage].Bytes), process, class, stage.String())
	}
	e.Put(FlightHigh, float64(c.HighBytes), process, class)
	e.Put(FlightGone, float64(c.GoneBytes), process, class)
	if len(c.Lag) == 0 {
		return
	}
	var bounds []float64
	for _, bound := range flight.LagBounds() {
		bounds = append(bounds, bound.Seconds())
	}
	if len(c.Lag) == len(bounds)+1 {
		e.PutHistogram(FlightLag, Buckets{Bounds: bounds, Counts: c.Lag, Sum: math.NaN()}, process, class)
	}
}

// OfHealth shows what the checks of a process say.
func OfHealth(health *service.Health) Source {
	return func(ctx context.Context, e *Emitter) error {
		for _, a := range health.Readiness(ctx).Checks {
			e.Flag(Ready, a.OK, a.Name)
		}
		return nil
	}
}

// OfBus shows the connection to NATS; get, or what it gives, is nil until there is one.
func OfBus(get func() bus.Bus) Source {
	return func(_ context.Context, e *Emitter) error {
		var b bus.Bus
		if get != nil {
			b = get()
		}
		e.Flag(BusConnected, b != nil && b.Connected())
		dropped := 0.0
		if b != nil {
			dropped = float64(b.Dropped())
		}
		e.Put(BusDropped, dropped)
		return nil
	}
}

// OfTraces shows what became of spans.
func OfTraces(tracer *telemetry.Tracer) Source {
	return func(_ context.Context, e *Emitter) error {
		s := tracer.Stats()
		e.Put(TraceSpans, float64(s.Sent), "sent")
		e.Put(TraceSpans, float64(s.Dropped), "dropped")
		e.Put(TraceFailures, float64(s.Failures))
		return nil
	}
}

// OfCPU shows the processor time of the process, and of the processes below it: those that ended and those given.
func OfCPU(below func() []int) Source {
	host := inventory.NewHost()
	return func(_ context.Context, e *Emitter) error {
		var self, ended syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &self); err != nil {
			return fmt.Errorf("ask for processor time of process %d: %w", os.Getpid(), err)
		}
		e.Put(CPUSeconds, seconds(&self), "self")
		if below == nil {
			return nil
		}
		pids := below() // first: one that ends now is not counted twice, at the price of once not at all
		sum := 0.0
		for _, pid := range pids {
			if p, err := host.CPUTime(pid); err == nil { // it may have ended
				sum += p.Seconds()
			}
		}
		if err := syscall.Getrusage(syscall.RUSAGE_CHILDREN, &ended); err != nil {
			return fmt.Errorf("ask for processor time of ended processes: %w", err)
		}
		e.Put(CPUSeconds, sum+seconds(&ended), "engines")
		return nil
	}
}

func seconds(u *syscall.Rusage) float64 {
	return float64(u.Utime.Sec+u.Stime.Sec) + float64(u.Utime.Usec+u.Stime.Usec)/1e6
}
