package host

import (
	"context"
	"net/http"
	"sync/atomic"

	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/metrics"
	"github.com/proofrack/proofrack/shared/service"
)

// Meters are the metrics that both workers have.
type Meters struct {
	*metrics.Registry

	outcomes, fences *metrics.Tally
	host             atomic.Pointer[Host] // nil until it is open
}

// NewMeters makes them, and adds their page to the health checks' service when the settings want it there. below gives
// the processes whose processor time counts as the worker's, nil for none.
func NewMeters(
	c *Config, mux *http.ServeMux, health *service.Health, reports func() []flight.Report, below func() []int,
) *Meters {
	r := c.Registry
	if r == nil {
		r = metrics.New(c.Metrics, metrics.Options{Role: c.Role, Node: c.Node, Build: c.Build, Log: c.Log})
	}
	if !r.Shared() {
		r.Add("cpu", metrics.OfCPU(below))
	}
	r.Mount(mux)
	var outcomes [][]string
	for _, outcome := range []job.Outcome{
		job.OutcomeOK, job.OutcomeFailed, job.OutcomeLost, job.OutcomeHandedBack, attempt.OutcomeStale,
	} {
		outcomes = append(outcomes, []string{string(outcome)})
	}
	m := &Meters{
		Registry: r, outcomes: r.Tally(metrics.WorkerOutcomes, outcomes...), fences: r.Tally(metrics.FencesRefused),
	}
	r.Add("flight", metrics.OfFlight(reports))
	r.Add("traces", metrics.OfTraces(c.Tracer))
	r.Add("health", metrics.OfHealth(health))
	r.Add("nats", metrics.OfBus(func() bus.Bus {
		if h := m.host.Load(); h != nil {
			return h.Bus
		}
		return nil
	}))
	r.Add("work", m.work)
	return m
}

// Show has the metrics show a host that is open.
func (m *Meters) Show(h *Host) {
	h.Ended = func(outcome string) {
		m.outcomes.Inc(outcome)
		if outcome == attempt.OutcomeStale {
			m.fences.Inc()
		}
	}
	h.page = m.Text
	m.host.Store(h)
}

func (m *Meters) work(_ context.Context, e *metrics.Emitter) error {
	counts, unsent := map[job.Stage]int{}, 0
	if h := m.host.Load(); h != nil {
		for _, r := range h.Board.Running() {
			counts[r.Stage]++
		}
		unsent = h.Outbox.Unsent()
	}
	for _, stage := range []job.Stage{job.Reserved, job.Synthesizing, job.Sealed, job.Proving, job.Proved} {
		e.Put(metrics.WorkerRunning, float64(counts[stage]), string(stage))
	}
	e.Put(metrics.WorkerUnsent, float64(unsent))
	return nil
}
