package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/metrics"
	"github.com/proofrack/proofrack/shared/service"
)

func registry(t *testing.T, change func(*metrics.Config)) *metrics.Registry {
	t.Helper()
	c := metrics.DefaultConfig()
	if change != nil {
		change(&c)
	}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	return metrics.New(c, metrics.Options{Role: "gpu", Node: "n1", Build: "b", Log: zerolog.Nop()})
}

// page is what a scrape gives.
func page(t *testing.T, registries ...*metrics.Registry) string {
	t.Helper()
	w := httptest.NewRecorder()
	metrics.Handler(registries...).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK {
		t.Fatalf("%d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func wants(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !slices.Contains(strings.Split(text, "\n"), line) {
			t.Errorf("page lacks %s", line)
		}
	}
}

func TestNumbersAreReadWhenTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	r := registry(t, nil)
	pending := 1.0
	r.Add("a", func(_ context.Context, e *metrics.Emitter) error {
		e.Put(metrics.WorkerRunning, pending, "proving")
		e.Flag(metrics.BusConnected, true)
		e.PutHistogram(metrics.FlightLag, metrics.Buckets{
			Bounds: []float64{1, 2}, Counts: []uint64{3, 4, 5}, Sum: math.NaN(),
		}, "gpu", "srs")
		return nil
	})
	wants(t, page(t, r),
		`c2_worker_attempts{node="n1",role="gpu",stage="proving"} 1`, `c2_nats_connected{node="n1",role="gpu"} 1`,
		`c2_build_info{build="b",node="n1",role="gpu"} 1`,
		`c2_flight_lag_seconds_bucket{class="srs",node="n1",process="gpu",role="gpu",le="2"} 7`,
		`c2_flight_lag_seconds_count{class="srs",node="n1",process="gpu",role="gpu"} 12`,
		`c2_metrics_source_up{node="n1",role="gpu",source="a"} 1`,
	)
	pending = 2
	wants(t, page(t, r), `c2_worker_attempts{node="n1",role="gpu",stage="proving"} 2`)
}

// A part that fails, or hangs, costs nothing but itself.
func TestAPartThatHangsIsLeftOut(t *testing.T) {
	t.Parallel()
	r := registry(t, func(c *metrics.Config) { c.Within = 50 * time.Millisecond })
	release := make(chan struct{})
	late := make(chan struct{})
	r.Add("good", func(_ context.Context, e *metrics.Emitter) error { e.Put(metrics.WorkerUnsent, 7); return nil })
	r.Add("bad", func(_ context.Context, e *metrics.Emitter) error {
		e.Flag(metrics.BusConnected, true)
		return errors.New("away")
	})
	r.Add("hangs", func(_ context.Context, e *metrics.Emitter) error {
		<-release
		e.Put(metrics.WorkerRunning, 1, "proving")
		close(late)
		return nil
	})
	text := page(t, r)
	wants(t, text, `c2_worker_results_unsent{node="n1",role="gpu"} 7`, `c2_nats_connected{node="n1",role="gpu"} 1`,
		`c2_metrics_source_up{node="n1",role="gpu",source="good"} 1`,
		`c2_metrics_source_up{node="n1",role="gpu",source="bad"} 0`,
		`c2_metrics_source_up{node="n1",role="gpu",source="hangs"} 0`)
	close(release)
	<-late
	if strings.Contains(text, "c2_worker_attempts{") {
		t.Error("the part that hung is shown")
	}
}

// B98: the number of series is bounded, whatever comes.
func TestB98SeriesAreBounded(t *testing.T) {
	t.Parallel()
	r := registry(t, func(c *metrics.Config) { c.SeriesMax = 10 })
	loads := r.Tally(metrics.AssetLoads)
	times := r.Times(metrics.AssetLoadTime)
	r.Add("many", func(_ context.Context, e *metrics.Emitter) error {
		for i := range 100 {
			e.Put(metrics.WorkerRunning, 1, fmt.Sprint("stage", i))
			e.Put(metrics.WorkerRunning, 1, "stage0") // twice is once
		}
		return nil
	})
	for i := range 100 {
		loads.Inc("gpu0", fmt.Sprint("circuit", i), "ok")
		times.Observe(1.5, "gpu0", fmt.Sprint("circuit", i))
	}
	text := page(t, r)
	for metric, want := range map[string]int{"c2_worker_attempts": 10, "c2_asset_loads_total": 10,
		"c2_asset_load_seconds_count": 10} {
		if got := strings.Count(text, "\n"+metric+"{"); got != want {
			t.Errorf("%d series of %s", got, metric)
		}
	}
	wants(t, text, `c2_metrics_left_out{node="n1",role="gpu"} 190`,
		`c2_asset_loads_total{circuit="other",device="other",node="n1",outcome="other",role="gpu"} 91`,
		`c2_asset_load_seconds_bucket{circuit="other",device="other",node="n1",role="gpu",le="1"} 0`,
		`c2_asset_load_seconds_bucket{circuit="other",device="other",node="n1",role="gpu",le="2"} 91`,
		`c2_asset_load_seconds_sum{circuit="other",device="other",node="n1",role="gpu"} 136.5`)
}

func TestTalliesCountWhatCanBe(t *testing.T) {
	t.Parallel()
	r := registry(t, nil)
	tally := r.Tally(metrics.EngineStarts, []string{"cpu"})
	wants(t, page(t, r), `c2_engine_starts_total{device="cpu",node="n1",role="gpu"} 0`)
	for _, value := range []float64{1, 2, -5, math.NaN(), math.Inf(1)} {
		tally.Add(value, "cpu")
	}
	tally.Inc("a\xffb" + strings.Repeat("x", 1000))
	text := page(t, r)
	wants(t, text, `c2_engine_starts_total{device="cpu",node="n1",role="gpu"} 3`,
		`c2_engine_starts_total{device="ab`+strings.Repeat("x", 125)+`",node="n1",role="gpu"} 1`)
	var none *metrics.Tally
	none.Inc("cpu")
	var never *metrics.Times
	never.Observe(1, "cpu")
}

func TestWhatIsInNoListPanics(t *testing.T) {
	t.Parallel()
	r := registry(t, nil)
	for name, call := range map[string]func(){
		"unknown counter":  func() { r.Tally("c2_x") },
		"gauge as counter": func() { r.Tally(metrics.Leader) },
		"counter as times": func() { r.Times(metrics.EngineStarts) },
		"number of labels": func() { r.Tally(metrics.EngineStarts).Inc("cpu", "x") },
		"labels of a time": func() { r.Times(metrics.AssetLoadTime).Observe(1, "cpu") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}

// Two roles of one process are told apart, and what is the process's own is there once.
func TestRolesOfOneProcess(t *testing.T) {
	t.Parallel()
	gpu := registry(t, nil)
	other := metrics.New(metrics.DefaultConfig(), metrics.Options{
		Role: "coordinator", Build: "b", Shared: true, Log: zerolog.Nop(),
	})
	text := page(t, gpu, other)
	wants(t, text, `c2_build_info{build="b",node="n1",role="gpu"} 1`, `c2_build_info{build="b",role="coordinator"} 1`)
	if got := strings.Count(text, "\nprocess_cpu_seconds_total"); got != 1 {
		t.Errorf("processor time is there %d times", got)
	}
}

func TestBuffersAreShown(t *testing.T) {
	t.Parallel()
	r := registry(t, nil)
	recorder, err := flight.New(flight.Config{Process: "gpu", Proofs: func() (int, int) { return 2, 3 }})
	if err != nil {
		t.Fatal(err)
	}
	recorder.Allocate(ledger.ClassAssignment, 100, flight.Anonymous, "a").Seal()
	gone := recorder.Allocate(ledger.ClassAssignment, 50, flight.Anonymous, "b")
	gone.Release()
	gone.Gone()
	r.Add("flight", metrics.OfFlight(func() []flight.Report { return []flight.Report{recorder.Report()} }))
	wants(t, page(t, r),
		`c2_flight_bytes{class="assignment",node="n1",process="gpu",role="gpu",stage="sealed"} 100`,
		`c2_flight_bytes{class="assignment",node="n1",process="gpu",role="gpu",stage="released"} 0`,
		`c2_flight_pieces{class="assignment",node="n1",process="gpu",role="gpu",stage="sealed"} 1`,
		`c2_flight_high_bytes{class="assignment",node="n1",process="gpu",role="gpu"} 150`,
		`c2_flight_gone_bytes_total{class="assignment",node="n1",process="gpu",role="gpu"} 50`,
		`c2_flight_lag_seconds_count{class="assignment",node="n1",process="gpu",role="gpu"} 1`,
		`c2_flight_proofs{node="n1",process="gpu",role="gpu",state="waiting"} 3`,
	)
}

func TestReadinessIsShown(t *testing.T) {
	t.Parallel()
	r := registry(t, nil)
	health := service.NewHealth()
	health.Set("params", nil)
	health.Ready("nats", func(context.Context) error { return errors.New("away") })
	r.Add("health", metrics.OfHealth(health))
	r.Add("bus", metrics.OfBus(nil))
	r.Add("cpu", metrics.OfCPU(func() []int { return []int{1 << 30} }))
	text := page(t, r)
	wants(t, text, `c2_ready{check="nats",node="n1",role="gpu"} 0`, `c2_ready{check="params",node="n1",role="gpu"} 1`,
		`c2_nats_connected{node="n1",role="gpu"} 0`, `c2_nats_dropped_total{node="n1",role="gpu"} 0`)
	for _, of := range []string{"self", "engines"} {
		if !strings.Contains(text, `c2_cpu_seconds_total{node="n1",of="`+of+`",role="gpu"} `) {
			t.Errorf("no processor time of %s", of)
		}
	}
}

// House style of metric names: unit last, counters end in _total, and a label is never a job, a trace or a process id.
func TestNamesOfMetrics(t *testing.T) {
	t.Parallel()
	seen := map[metrics.Name]bool{}
	name := regexp.MustCompile(`^c2_[a-z0-9]+(_[a-z0-9]+)*$`)
	for _, f := range metrics.Families() {
		if seen[f.Name] || !name.MatchString(string(f.Name)) || f.Help == "" {
			t.Errorf("%s: twice, not a name, or without help", f.Name)
		}
		seen[f.Name] = true
		if strings.HasSuffix(string(f.Name), "_total") != (f.Type == metrics.Counter) {
			t.Errorf("%s is a %s", f.Name, f.Type)
		}
		for _, l := range f.Labels {
			if slices.Contains([]string{"job", "attempt", "trace", "path", "pid", "partition", "sector", "le", "role"}, l) {
				t.Errorf("%s has label %s", f.Name, l)
			}
			if l == "node" && f.Of != metrics.OfNodes {
				t.Errorf("%s has the node twice", f.Name)
			}
		}
	}
}

func TestConfigRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*metrics.Config){
		"listen": func(c *metrics.Config) { c.Listen = "here" }, "series": func(c *metrics.Config) { c.SeriesMax = 0 },
		"many": func(c *metrics.Config) { c.SeriesMax = 1 << 30 }, "within": func(c *metrics.Config) { c.Within = 0 },
		"long": func(c *metrics.Config) { c.Within = time.Hour },
	} {
		c := metrics.DefaultConfig()
		change(&c)
		if c.Validate() == nil {
			t.Errorf("%s passes", name)
		}
	}
	for _, listen := range []string{"", "off", "127.0.0.1:0"} {
		c := metrics.DefaultConfig()
		c.Listen = listen
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestListenSaysWhereTheyAreShown(t *testing.T) {
	t.Parallel()
	for listen, want := range map[string]int{"": 200, "off": 404, "127.0.0.1:0": 404} {
		r := registry(t, func(c *metrics.Config) { c.Listen = listen })
		mux := http.NewServeMux()
		r.Mount(mux)
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if w.Code != want {
			t.Errorf("%q: %d", listen, w.Code)
		}
	}
}
