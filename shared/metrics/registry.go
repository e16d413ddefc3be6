package metrics

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/service"
)

// Options are what a program, not its settings, says about its metrics.
type Options struct {
	// Role and Node are labels of all its metrics; a coordinator has no node.
	Role, Node string
	// Build names the program's build.
	Build string
	// Shared tells that another registry of the process shows what is the process's own: its CPU time and the runtime.
	Shared bool
	Log    zerolog.Logger
}

// Source puts numbers into an Emitter, as they are now. It must return when the context ends; an error leaves what it
// has put by then.
type Source func(ctx context.Context, e *Emitter) error

// Registry is one role's metrics. Its methods may be called from several goroutines.
type Registry struct {
	config   Config
	shared   bool
	log      zerolog.Logger
	inner    *prometheus.Registry
	families map[Name]*family

	mu      sync.Mutex
	sources []named
	tallies []emitting
}

type named struct {
	name string
	from Source
}

// emitting is what has counted and can show it.
type emitting interface{ emit(e *Emitter) }

// family is one of Families with its description.
type family struct {
	Family

	desc *prometheus.Desc
}

// New makes a registry with the metrics of the process itself. The configuration must be valid.
func New(config Config, o Options) *Registry {
	r := &Registry{
		config: config, shared: o.Shared, log: o.Log, inner: prometheus.NewRegistry(), families: map[Name]*family{},
	}
	always := prometheus.Labels{"role": o.Role}
	if o.Node != "" {
		always["node"] = o.Node
	}
	for _, f := range Families() {
		labels := always
		if f.Of == OfNodes {
			labels = prometheus.Labels{"role": o.Role} // its nodes are those it speaks of
		}
		r.families[f.Name] = &family{f, prometheus.NewDesc(string(f.Name), f.Help, f.Labels, labels)}
	}
	r.inner.MustRegister(collector{r})
	if !o.Shared {
		wrapped := prometheus.WrapRegistererWith(always, r.inner)
		wrapped.MustRegister(
			collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
			collectors.NewGoCollector(),
		)
	}
	r.Add("build", func(_ context.Context, e *Emitter) error {
		e.Put(Build, 1, o.Build)
		return nil
	})
	return r
}

// Shared tells that another registry of the process shows what is the process's own.
func (r *Registry) Shared() bool { return r.shared }

// Add has a source asked at every scrape. The name is for logs and for SourceUp.
func (r *Registry) Add(name string, from Source) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sources = append(r.sources, named{name, from})
}

// collector asks a registry's sources. It describes nothing in advance: what is there decides.
type collector struct{ registry *Registry }

// Describe implements prometheus.Collector.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	r := c.registry
	r.mu.Lock()
	sources, tallies := r.sources, r.tallies
	r.mu.Unlock()
	e := &Emitter{registry: r, counts: map[Name]int{}, seen: map[string]bool{}}
	ctx, cancel := context.WithTimeout(context.Background(), r.config.Within)
	defer cancel()
	for _, s := range sources {
		part := &Emitter{registry: r, counts: map[Name]int{}, seen: map[string]bool{}}
		err := r.ask(ctx, s, part)
		up := 1.0
		if err != nil {
			up = 0
			r.log.Debug().Err(err).Str("source", s.name).Msg("metrics are not complete")
		}
		e.take(part)
		e.Put(SourceUp, up, s.name)
	}
	for _, t := range tallies {
		t.emit(e)
	}
	e.Put(LeftOut, float64(e.leftOut))
	for _, m := range e.metrics {
		out <- m
	}
}

// ask asks a source. One that does not return with the context is left behind with its emitter.
func (r *Registry) ask(ctx context.Context, s named, e *Emitter) error {
	done := make(chan error, 1)
	go func() { done <- s.from(ctx, e) }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		e.close()
		return ctx.Err()
	}
}

// Text is the page of a registry, "" when it cannot be made.
func (r *Registry) Text() string {
	families, err := r.inner.Gather()
	if err != nil && len(families) == 0 {
		r.log.Debug().Err(err).Msg("metrics are not to be had")
		return ""
	}
	var b strings.Builder
	e := expfmt.NewEncoder(&b, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := e.Encode(f); err != nil {
			r.log.Debug().Err(err).Msg("a metric is not to be shown")
		}
	}
	return b.String()
}

// requestsMax bounds the scrapes of one process at a time.
const requestsMax = 4

// Handler shows the metrics of registries of one process.
func Handler(registries ...*Registry) http.Handler {
	all := make(prometheus.Gatherers, 0, len(registries))
	var within time.Duration
	for _, r := range registries {
		all = append(all, r.inner)
		within = max(within, r.config.Within)
	}
	return promhttp.HandlerFor(all, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, MaxRequestsInFlight: requestsMax, Timeout: 2*within + time.Second,
	})
}

// Mount adds GET /metrics to the health checks' service when the settings want it there.
func (r *Registry) Mount(mux *http.ServeMux) {
	if r.config.Listen == "" {
		mux.Handle("GET /metrics", Handler(r))
	}
}

// Service shows the metrics on an address of their own when the settings name one.
func (r *Registry) Service() service.Service {
	listen := r.config.Listen
	if listen == Off {
		listen = ""
	}
	return Serve(listen, r.log, r)
}

// Serve is a service that shows registries on an address; with "" it does nothing.
func Serve(listen string, log zerolog.Logger, registries ...*Registry) service.Service {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", Handler(registries...))
	s := service.HTTP(service.HTTPConfig{Listen: listen}, mux, func(a net.Addr) {
		log.Info().Stringer("address", a).Msg("metrics are served")
	})
	s.Name = "metrics"
	return s
}
