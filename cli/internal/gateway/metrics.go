package gateway

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/metrics"
)

// meters are what the gateway counts and shows.
type meters struct {
	registry           *metrics.Registry
	requests, accepted *metrics.Tally
}

func newMeters(config *Config) *meters {
	r := metrics.New(config.Metrics, metrics.Options{Role: "gateway", Build: config.Build, Log: config.Log})
	var kinds [][]string
	for _, name := range cuzkv1.ProofKind_name {
		kinds = append(kinds, []string{name})
	}
	return &meters{
		registry: r, requests: r.Tally(metrics.GatewayRequests, kinds...),
		accepted: r.Tally(metrics.GatewayAccepted, []string{"false"}, []string{"true"}),
	}
}

// asked counts a request. Kinds without a name are counted as one.
func (m *meters) asked(kind cuzkv1.ProofKind) {
	name, ok := cuzkv1.ProofKind_name[int32(kind)]
	if !ok {
		name = metrics.Other
	}
	m.requests.Inc(name)
}

// sources shows what can be read when it is asked for.
func (g *gateway) sources(m *meters) {
	m.registry.Add("health", metrics.OfHealth(g.health))
	m.registry.Add("traces", metrics.OfTraces(g.config.Tracer))
	m.registry.Add("bus", metrics.OfBus(func() bus.Bus {
		if _, err := g.rack.now(); err != nil {
			return nil
		}
		return g.rack.bus
	}))
	m.registry.Add("gateway", func(_ context.Context, e *metrics.Emitter) error {
		for kind, lane := range g.engine.lanes.byKind {
			e.Put(metrics.GatewayUnread, float64(lane.waiting.Load()), kind.String())
		}
		e.Put(metrics.GatewaySubmitting, float64(g.engine.submissions.count()))
		e.Put(metrics.GatewayEnded, float64(g.rack.completed.Load()), "done")
		e.Put(metrics.GatewayEnded, float64(g.rack.failed.Load()), "failed")
		if u := g.engine.upstream; u != nil {
			e.Flag(metrics.GatewayUpstream, u.healthy() == nil)
		}
		return nil
	})
}

// page is an answer to a scrape that is kept.
type page struct {
	bytes.Buffer

	header http.Header
	status int
}

func (p *page) Header() http.Header    { return p.header }
func (p *page) WriteHeader(status int) { p.status = status }

// text is all metrics as Prometheus reads them.
func (m *meters) text(ctx context.Context) (string, error) {
	p := &page{header: http.Header{}, status: http.StatusOK}
	request := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: "/metrics"}, Header: http.Header{}}
	metrics.Handler(m.registry).ServeHTTP(p, request.WithContext(ctx))
	if p.status != http.StatusOK {
		return "", fault.New(fault.Transient, "metrics cannot be read now: %s", strconv.Quote(p.String()))
	}
	return p.String(), nil
}
