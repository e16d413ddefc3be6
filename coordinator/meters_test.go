package coordinator_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/metrics"
	"github.com/proofrack/proofrack/shared/wire"
)

// metered gives a coordinator a registry that the test can read.
func metered() (*metrics.Registry, func(*coordinator.Config)) {
	r := metrics.New(metrics.DefaultConfig(), metrics.Options{
		Role: "coordinator", Build: "test", Shared: true, Log: zerolog.Nop(),
	})
	return r, func(c *coordinator.Config) { c.Registry = r }
}

// series are a page's values by what stands before them; the label that all have is left out.
func series(t testing.TB, r *metrics.Registry) map[string]float64 {
	t.Helper()
	answer := httptest.NewRecorder()
	metrics.Handler(r).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if answer.Code != http.StatusOK {
		t.Fatalf("metrics: %d %s", answer.Code, answer.Body)
	}
	all := map[string]float64{}
	for line := range strings.Lines(answer.Body.String()) {
		line = strings.TrimSpace(line)
		cut := strings.LastIndexByte(line, ' ')
		if cut < 0 || line[0] == '#' {
			continue
		}
		value, err := strconv.ParseFloat(line[cut+1:], 64)
		if err != nil {
			t.Fatalf("metrics: %q", line)
		}
		name := line[:cut]
		for _, common := range []string{`,role="coordinator"`, `role="coordinator",`, `{role="coordinator"}`} {
			name = strings.Replace(name, common, "", 1)
		}
		all[name] = value
	}
	return all
}

// shows waits until the page has all these values.
func (w *world) shows(r *metrics.Registry, want map[string]float64) {
	w.t.Helper()
	var got map[string]float64
	wrong := func() (names []string) {
		for name, value := range want {
			if has, ok := got[name]; !ok || has != value {
				names = append(names, fmt.Sprintf("%s is %v (there: %v), not %v", name, has, ok, value))
			}
		}
		slices.Sort(names)
		return names
	}
	defer func() {
		if w.t.Failed() {
			w.t.Log(strings.Join(wrong(), "\n"))
		}
	}()
	w.until("metrics", func() bool {
		got = series(w.t, r)
		return len(wrong()) == 0
	})
}

// The page of the leader says what runs, what waits and for what, who holds which bytes, and what came to an end.
func TestTheRackIsShownInMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r, edit := metered()
	w.start(edit)
	w.shows(r, map[string]float64{`c2_leader`: 1, `c2_rack_ready`: 0, `c2_ledger_up`: 1})
	recorder, err := flight.New(flight.Config{Process: "synth"})
	w.check(err)
	recorder.Allocate(ledger.ClassInput, 1000, flight.Anonymous, "x").Seal()
	release := make(chan struct{})
	w.node("n1", 1, func(ctx context.Context, n *node, task *wire.SynthTask) {
		n.stage(ctx, task.Attempt, job.Sealed)
		n.stage(ctx, task.Attempt, job.Proving)
		select {
		case <-release:
		case <-ctx.Done():
			return
		}
		n.publish(ctx, &wire.Result{
			Attempt: task.Attempt, Outcome: job.OutcomeOK, Proof: n.w.made.proofs[task.Slice.SHA256], ParamsDigest: "abcd",
			Handoff: wire.HandoffSHM, Seconds: map[string]float64{"synthesis": 4, "start": 0.5},
		})
		n.free(ctx, task.Attempt)
	}, func(n *node) { n.flight = []flight.Report{recorder.Report()} })
	id := w.submit(2)
	const mib = float64(bytesize.MiB)
	w.shows(r, map[string]float64{
		`c2_rack_ready`:                                                                1,
		`c2_rack_halted`:                                                               0,
		`c2_intake_paused`:                                                             0,
		`c2_jobs{state="active"}`:                                                      1,
		`c2_jobs{state="failed"}`:                                                      0,
		`c2_partitions{stage="proving"}`:                                               1,
		`c2_partitions{stage="waiting"}`:                                               1,
		`c2_partitions{stage="verified"}`:                                              0,
		`c2_partitions_waiting{pool="ram",reason="memory"}`:                            1,
		`c2_partitions_waiting{pool="",reason="quota"}`:                                0,
		`c2_waiting_bytes{pool="ram",reason="memory"}`:                                 80 * mib,
		`c2_waiting_bytes{pool="shm",reason="memory"}`:                                 64 * mib,
		`c2_missing_bytes{pool="ram"}`:                                                 79.5 * mib,
		`c2_pool_capacity_bytes{node="n1",pool="ram"}`:                                 81 * mib,
		`c2_pool_booked_bytes{class="assignment",node="n1",pool="shm",state="live"}`:   64 * mib,
		`c2_pool_booked_bytes{class="assignment",node="n1",pool="ram",state="live"}`:   64 * mib,
		`c2_pool_booked_bytes{class="scratch",node="n1",pool="ram",state="live"}`:      16 * mib,
		`c2_pool_booked_bytes{class="srs",node="n1",pool="ram",state="asset"}`:         mib / 2,
		`c2_pool_declared_bytes{class="assignment",node="n1",pool="shm",state="live"}`: 64 * mib,
		`c2_class_measured_bytes{class="input",node="n1",process="synth"}`:             1000,
		`c2_node_present{node="n1"}`:                                                   1,
		`c2_node_ready{node="n1"}`:                                                     1,
		`c2_node_book_open{node="n1"}`:                                                 1,
		`c2_node_drained{node="n1"}`:                                                   0,
		`c2_node_leaks{node="n1"}`:                                                     0,
		`c2_node_device_usable{device="cpu",node="n1"}`:                                1,
		`c2_node_device_quarantined{device="cpu",node="n1"}`:                           0,
		`c2_node_asset_users{asset="srs:` + w.record(id).Circuit + `",node="n1"}`:      1,
		`c2_attempts_total{outcome="ok"}`:                                              0,
		`c2_jobs_ended_total{state="done"}`:                                            0,
		`c2_results_late_total`:                                                        0,
		`c2_ready{check="redis"}`:                                                      1,
		`c2_ready{check="nats"}`:                                                       1,
		`c2_nats_connected`:                                                            1,
		`c2_metrics_source_up{source="rack"}`:                                          1,
	})
	for name, most := range map[string]float64{
		`c2_node_clock_offset_seconds{node="n1"}`:             10,
		`c2_queue_oldest_seconds`:                             60,
		`c2_ledger_answer_seconds`:                            10,
		`c2_node_beat_age_seconds{node="n1",process="synth"}`: 60,
	} {
		if got, ok := series(t, r)[name]; !ok || got > most || got < -most {
			t.Errorf("%s is %v, %v", name, got, ok)
		}
	}
	close(release)
	circuit := w.ends(id, job.Done).Circuit
	w.settles("n1")
	w.shows(r, map[string]float64{
		`c2_jobs{state="done"}`:                                                     1,
		`c2_jobs_ended_total{state="done"}`:                                         1,
		`c2_attempts_total{outcome="ok"}`:                                           2,
		`c2_retries_total{cause="failed"}`:                                          0,
		`c2_stage_seconds_count{circuit="` + circuit + `",stage="synthesis"}`:       2,
		`c2_stage_seconds_sum{circuit="` + circuit + `",stage="synthesis"}`:         8,
		`c2_stage_seconds_bucket{circuit="` + circuit + `",stage="start",le="0.3"}`: 0,
		`c2_stage_seconds_bucket{circuit="` + circuit + `",stage="start",le="1"}`:   2,
		`c2_job_seconds_count{circuit="` + circuit + `"}`:                           1,
		`c2_queue_oldest_seconds`:                                                   0,
		`c2_node_asset_users{asset="srs:` + circuit + `",node="n1"}`:                0,
	})
	if _, there := series(t, r)[`c2_pool_booked_bytes{class="assignment",node="n1",pool="shm",state="live"}`]; there {
		t.Error("the page still has bytes of attempts")
	}
}

// What goes wrong is counted: proofs that do not verify by their device, lost attempts, retries, late results, jobs
// that fail; and a node that is gone is told from one that never was.
func TestTroubleIsShownInMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *coordinator.Config) { c.Attempts.FailedMax = 2 })
	r, edit := metered()
	w.start(edit)
	n := w.node("n1", 2, func(ctx context.Context, n *node, task *wire.SynthTask) {
		proof := slices.Clone(n.w.made.proofs[task.Slice.SHA256])
		slices.Reverse(proof)
		result := &wire.Result{Attempt: task.Attempt, Outcome: job.OutcomeOK, Proof: proof, ParamsDigest: "abcd"}
		n.publish(ctx, result)
		n.free(ctx, task.Attempt)
		if late := *result; late.Attempt.Fence > 1 {
			late.Attempt.Fence-- // of an attempt that is no more
			n.publish(ctx, &late)
		}
	})
	w.ends(w.submit(1), job.Failed)
	w.shows(r, map[string]float64{
		`c2_verification_failures_total{device="cpu",node="n1"}`: 2,
		`c2_device_faults_total{device="cpu",node="n1"}`:         2,
		`c2_attempts_total{outcome="failed"}`:                    2,
		`c2_retries_total{cause="failed"}`:                       1,
		`c2_jobs_ended_total{state="failed"}`:                    1,
		`c2_jobs{state="failed"}`:                                1,
		`c2_jobs_ended_total{state="done"}`:                      0,
		`c2_results_late_total`:                                  1,
		`c2_fences_refused_total`:                                1,
	})
	n.crash()
	w.shows(r, map[string]float64{`c2_node_present{node="n1"}`: 0, `c2_rack_ready`: 0})
	if _, there := series(t, r)[`c2_node_ready{node="n1"}`]; there {
		t.Error("a node that is gone is still shown as if it beat")
	}
}

// B98: jobs and restarts of workers, however many, leave as many series as one job does. No name has a job, an attempt
// or a process in it.
func TestB98SeriesStayTheSame(t *testing.T) {
	t.Parallel()
	seriesStayTheSame(t, 5, 10)
}

func seriesStayTheSame(t *testing.T, restarts, jobsEach int) {
	t.Helper()
	w := newWorld(t)
	r, edit := metered()
	w.start(edit)
	n := w.node("n1", 4, nil)
	count := func() []string {
		w.settles("n1")
		w.shows(r, map[string]float64{`c2_partitions{stage="waiting"}`: 0, `c2_node_ready{node="n1"}`: 1})
		var names []string
		for name := range series(t, r) {
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	w.ends(w.submit(2), job.Done)
	before := count()
	ids := []job.ID{}
	for range restarts {
		for range jobsEach {
			ids = append(ids, w.submit(1))
		}
		began := len(n.attempts())
		w.until("work goes on", func() bool { return len(n.attempts()) > began })
		n.stop()
		n.start()
	}
	for _, id := range ids {
		w.ends(id, job.Done)
	}
	after := count()
	known := map[string]bool{}
	for _, name := range before {
		known[name] = true
	}
	for _, f := range metrics.Families() { // those that come and go with what is booked or measured
		known[string(f.Name)] = known[string(f.Name)] || f.Sometimes != ""
	}
	id := regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}|/|\.[0-9]+\.[0-9]+"`)
	for _, name := range after {
		family, _, _ := strings.Cut(name, "{")
		if !known[name] && !known[family] {
			t.Errorf("new: %s", name)
		}
		if id.MatchString(name) {
			t.Errorf("a name that is one of many: %s", name)
		}
	}
	if len(after) > len(before)+10 {
		t.Errorf("%d series, before %d", len(after), len(before))
	}
}

// A coordinator that does not lead shows nothing of the rack, so that sums over all of them are right.
func TestOnlyTheLeaderShowsTheRack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, editFirst := metered()
	second, editSecond := metered()
	p := w.start(editFirst)
	w.shows(first, map[string]float64{`c2_leader`: 1})
	w.start(editSecond)
	w.shows(second, map[string]float64{`c2_leader`: 0, `c2_ready{check="nats"}`: 1})
	for name := range series(t, second) {
		if strings.HasPrefix(name, "c2_jobs{") || strings.HasPrefix(name, "c2_rack_") {
			t.Errorf("it shows %s", name)
		}
	}
	p.kill()
	w.shows(second, map[string]float64{`c2_leader`: 1, `c2_jobs{state="active"}`: 0})
}
