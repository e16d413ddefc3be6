package scheduler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/job"
)

// busyRack is a world of 64 nodes with 8 devices each, 5 circuits and 100,000 waiting partitions in 10,000 jobs, in the
// steady state: with much memory all devices have their work ahead, with little the bytes are taken.
func busyRack(t fataler, ram float64) (*world, []job.Attempt) {
	w := newWorld(t, scheduler.DefaultConfig())
	circuits := map[string]scheduler.CircuitView{}
	for i := range 5 {
		name := fmt.Sprint("c", i)
		circuits[name] = ready(kind(1+float64(i), 0.5, 4, name), kind(1+float64(i), 0, 4, name))
	}
	var running []job.Attempt
	w.onAdmit = func(d *scheduler.Admit) { running = append(running, d.Attempt) }
	for i := range 64 {
		w.addNode(nodeView(fmt.Sprintf("node%02d", i), ram, 32, circuits,
			"gpu0", "gpu1", "gpu2", "gpu3", "gpu4", "gpu5", "gpu6", "gpu7"))
	}
	for i := range 10_000 {
		w.now = w.now.Add(time.Millisecond)
		w.addJob(job.ID(fmt.Sprintf("job%05d", i)), fmt.Sprint("c", i%5), 10, i%3)
	}
	for w.core.Stats().Waiting < 100_000 {
		w.addJob(job.ID(fmt.Sprintf("more%05d", len(w.records))), "c0", 10, 0)
	}
	w.log = nil
	return w, running
}

// timed measures each decision, outcomes of decisions included as the events that they are.
type timed struct {
	*world
	took []time.Duration
}

func (w *timed) feed(e scheduler.Event) {
	w.events = append(w.events[:0], e)
	for len(w.events) > 0 {
		e := w.events[0]
		w.events = w.events[1:]
		start := time.Now()
		out := w.core.Apply(w.now, e)
		w.took = append(w.took, time.Since(start))
		for _, d := range out {
			if d, ok := d.(*scheduler.Admit); ok {
				w.onAdmit(d)
				r := w.records[d.Attempt.Job]
				if _, err := r.Claim(d.Attempt.Partition, d.Place.Node, d.Place.Device, w.now); err != nil {
					w.t.Fatal(err)
				}
				w.events = append(w.events, scheduler.Granted{Attempt: d.Attempt}, scheduler.JobSeen{Job: scheduler.ViewOf(r)})
			}
		}
	}
}

// BenchmarkDecision reports the 99th percentile and the longest of all decisions on a busy rack: partitions advance,
// end and are freed, fail and come back, jobs come, nodes beat, time passes.
func BenchmarkDecision(b *testing.B) {
	for _, ram := range []float64{256, 24} {
		b.Run(fmt.Sprintf("waiting=100k/nodes=64/ram=%.0fGiB", ram), func(b *testing.B) { decide(b, ram, b.N) })
	}
}

// decide runs rounds of events and reports how long the decisions took.
func decide(b interface {
	fataler
	ResetTimer()
	StopTimer()
	ReportMetric(float64, string)
}, ram float64, rounds int) {
	world, running := busyRack(b, ram)
	w := &timed{world: world}
	w.onAdmit = func(d *scheduler.Admit) { running = append(running, d.Attempt) }
	random := rand.New(rand.NewPCG(1, 2))
	b.ResetTimer()
	for i := range rounds {
		w.now = w.now.Add(7 * time.Millisecond)
		pick := random.IntN(len(running))
		a := running[pick]
		running[pick] = running[len(running)-1]
		running = running[:len(running)-1]
		r := w.records[a.Job]
		node := r.Partitions[a.Partition].Node
		for _, stage := range []job.Stage{job.Synthesizing, job.Sealed, job.Proving} {
			w.feed(scheduler.Progress{Attempt: a, Stage: stage})
		}
		if i%50 == 49 {
			policy := job.Policy{LostMax: 100, BackoffMin: time.Second, BackoffMax: time.Second}
			if err := r.Lose(a, "gone", policy, w.now); err != nil {
				b.Fatal(err)
			}
			w.feed(scheduler.Ended{Attempt: a, Outcome: job.OutcomeLost})
		} else {
			if err := r.Accept(a, []byte{1}, w.now); err != nil {
				b.Fatal(err)
			}
			w.feed(scheduler.Ended{
				Attempt: a, Outcome: job.OutcomeOK, Synth: time.Second,
				Device: time.Duration(1000+random.IntN(9000)) * time.Millisecond,
			})
		}
		w.feed(scheduler.JobSeen{Job: scheduler.ViewOf(r)})
		w.feed(scheduler.Freed{Attempt: a, Node: node})
		if i%4 == 0 {
			v := w.nodes[node].view
			w.feed(scheduler.NodeSeen{Node: v})
		}
		if i%10 == 0 {
			id := job.ID(fmt.Sprintf("new%07d", i))
			r := &job.Record{ID: id, Circuit: fmt.Sprint("c", i%5), Priority: i % 4, SubmittedAt: w.now, State: job.Active}
			r.Partitions = make([]job.Partition, 10)
			for i := range r.Partitions {
				r.Partitions[i] = job.Partition{Stage: job.Waiting, StageAt: w.now}
			}
			w.records[id] = r
			w.feed(scheduler.JobSeen{Job: scheduler.ViewOf(r)})
		}
		if i%100 == 0 {
			w.feed(scheduler.Tick{})
		}
	}
	b.StopTimer()
	slices.Sort(w.took)
	b.ReportMetric(float64(w.took[len(w.took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(w.took[len(w.took)-1].Microseconds()), "max-µs")
	b.ReportMetric(float64(len(w.took))/float64(rounds), "decisions/op")
	b.ReportMetric(float64(w.core.Stats().Waiting), "waiting")
}

// TestDecisionTime keeps the promise of one millisecond at the 99th percentile. A machine that is busy with other
// things has three tries.
func TestDecisionTime(t *testing.T) {
	for _, ram := range []float64{256, 24} {
		var p99 float64
		for try := 0; try == 0 || p99 > 1000 && try < 3; try++ {
			m := &metrics{T: t, values: map[string]float64{}}
			decide(m, ram, 1000)
			t.Logf("ram %.0f GiB: %v", ram, m.values)
			if p99 = m.values["p99-µs"]; m.values["waiting"] < 90_000 {
				t.Fatalf("only %.0f are waiting", m.values["waiting"])
			}
		}
		if p99 > 1000 {
			t.Errorf("99th percentile of decisions: %.0f µs", p99)
		}
	}
}

// metrics is a benchmark within a test.
type metrics struct {
	*testing.T
	values map[string]float64
}

func (m *metrics) ResetTimer()                             {}
func (m *metrics) StopTimer()                              {}
func (m *metrics) ReportMetric(value float64, unit string) { m.values[unit] = value }
