//go:build long

package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/job"
)

// figuresEnv names a file that measured figures are added to, one a line: name, value, what is asked for, verdict.
const figuresEnv = "FIGURES_FILE"

// figure notes a measured value, and fails the test when it is beyond its limit.
func figure(t *testing.T, name string, value float64, unit, asked string, ok bool) {
	t.Helper()
	verdict := "ok"
	if !ok {
		verdict = "SHORT"
		t.Errorf("%s: %.4g %s, asked for is %s", name, value, unit, asked)
	}
	line := fmt.Sprintf("%s\t%.4g %s\t%s\t%s\n", name, value, unit, asked, verdict)
	t.Log("figure ", line)
	path := os.Getenv(figuresEnv)
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(line); err != nil {
		t.Fatal(err)
	}
}

// quantile of durations, which it sorts: the smallest that at least that share is not above.
func quantile(of []time.Duration, share float64) time.Duration {
	slices.Sort(of)
	return of[max(0, int(math.Ceil(share*float64(len(of))))-1)]
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }

// startShipped starts a coordinator with the timers that programs have by default.
func (r *rack) startShipped(settings ...string) *process {
	r.t.Helper()
	name := fmt.Sprintf("coordinator %d", len(r.coordinators)+1)
	p := start(r.t, name, append([]string{built.coordinator}, flags(quietly(), []string{
		"nats.urls=" + r.nats.url(), "ledger.address=" + r.redis.listen, "params.dir=" + r.params,
		"params.digest_cache=" + filepath.Join(r.hooks, "digests.json"),
	}, settings)...)...)
	r.coordinators = append(r.coordinators, p)
	return p
}

// quietly are settings of all programs that are measured.
func quietly() []string { return []string{"http.listen=", "logs.format=json"} }

// workShipped starts both workers of a node with the default timers; the device takes a fixed time per partition.
func (n *node) workShipped(simulate string, synth, gpu []string) {
	r := n.rack
	r.t.Helper()
	n.synth = start(r.t, "synth "+string(n.name), append([]string{built.synth}, flags(quietly(), n.common(),
		[]string{"synth.circuits=" + r.circuits, "synth.slots=1", "synth.scratch_bytes=1MiB"}, synth)...)...)
	n.gpu = start(r.t, "gpu "+string(n.name), append([]string{built.gpu}, flags(quietly(), n.common(), []string{
		"prove.devices=cpu", "prove.circuits=" + r.circuits, "prove.params=" + r.params, "prove.cache=" + r.hooks,
		"simulate={cpu='" + simulate + "'}",
	}, gpu)...)...)
}

// deviceSecond is a simulated device that takes a second for a partition.
const deviceSecond = `{"start_time_ns":1000000000,"finish_time_ns":200000000}`

// submitMany submits jobs of ten partitions, as 32 GiB sectors have.
func (r *rack) submitMany(jobs int) {
	r.t.Helper()
	for range jobs {
		seeds := make([]uint64, 10)
		for i := range seeds {
			seeds[i] = uint64(10*len(r.jobs) + i + 1)
		}
		r.submit(seeds...)
	}
}

// ended waits until all jobs have ended.
func (r *rack) ended(within time.Duration) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), within)
	defer cancel()
	for _, j := range r.jobs {
		if _, err := r.client.Wait(ctx, j.id, nil); err != nil {
			r.t.Fatal(err)
		}
	}
	r.waitDone()
}

// deviceGaps are how long the device had nothing to do before each partition but its first, by the engine's own clock.
func (r *rack) deviceGaps() []time.Duration {
	r.t.Helper()
	type start struct {
		at  time.Time
		gap time.Duration
	}
	var starts []start
	for _, j := range r.jobs {
		record := r.record(j)
		for i := range record.Partitions {
			last := record.Partitions[i].Last()
			if last == nil || last.Outcome != job.OutcomeOK {
				r.t.Fatalf("partition %d of job %s: %+v", i, j.id, last)
			}
			idle, ok := last.Seconds["device_idle"]
			if !ok {
				r.t.Fatalf("partition %d of job %s says nothing of its device: %v", i, j.id, last.Seconds)
			}
			starts = append(starts, start{record.Partitions[i].StageAt, time.Duration(idle * float64(time.Second))})
		}
	}
	slices.SortFunc(starts, func(a, b start) int { return a.at.Compare(b.at) })
	var gaps []time.Duration
	for _, s := range starts[1:] {
		if gaps = append(gaps, s.gap); s.gap > 100*time.Millisecond {
			r.t.Logf("gap of %s before the partition that was verified at %s", s.gap, s.at.Format("15:04:05.000"))
		}
	}
	return gaps
}

// showSeconds logs how long the steps of all partitions took.
func (r *rack) showSeconds() {
	r.t.Helper()
	of := map[string][]time.Duration{}
	for _, j := range r.jobs {
		record := r.record(j)
		for i := range record.Partitions {
			for name, s := range record.Partitions[i].Last().Seconds {
				of[name] = append(of[name], time.Duration(s*float64(time.Second)))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of)) {
		r.t.Logf("%-12s median %-12s p99 %s", name, quantile(of[name], 0.5), quantile(of[name], 0.99))
	}
}

// checkQuietLater is checkQuiet with the shipped sweep interval: free segments stay half a minute.
func (r *rack) checkQuietLater() {
	for _, n := range r.nodes {
		r.gone(string(n.name)+" holds no attempt in the ledger (invariant 2)", func() string { return r.booked(n) })
		r.gone(string(n.name)+" has no segment", func() string { return namesIn(n, "seg") })
	}
}
