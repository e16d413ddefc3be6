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

// manyWait is how many partitions wait on a busy rack.
const manyWait = 100_000

// busyRack is a world of 64 nodes with 8 devices each, 5 circuits and waiting partitions in jobs of ten, in the steady
// state: with much memory all devices have their work ahead, with little the bytes are taken.
func busyRack(t fataler, ram float64, waiting int) (*world, []job.Attempt) {
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
	for i := range waiting / 10 {
		w.now = w.now.Add(time.Millisecond)
		w.addJob(job.ID(fmt.Sprintf("job%05d", i)), fmt.Sprint("c", i%5), 10, i%3)
	}
	for w.core.Stats().Waiting < waiting {
		w.addJob(job.ID(fmt.Sprintf("more%05d", len(w.records))), "c0", 10, 0)
	}
	w.log = nil
	return w, running
}

// timed measures each decision, outcomes of decisions included as the events that they are.
type timed struct {
	*world
	took []time.Duration
	kind map[string][]time.Duration // the same by kind of event
}

func (w *timed) feed(e scheduler.Event) {
	w.events = append(w.events[:0], e)
	for len(w.events) > 0 {
		e := w.events[0]
		w.events = w.events[1:]
		start := time.Now()
		out := w.core.Apply(w.now, e)
		took, kind := time.Since(start), fmt.Sprintf("%T", e)
		w.took, w.kind[kind] = append(w.took, took), append(w.kind[kind], took)
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
		b.Run(fmt.Sprintf("waiting=100k/nodes=64/ram=%.0fGiB", ram), func(b *testing.B) { decide(b, ram, manyWait, b.N) })
	}
}

// decide runs rounds of events and reports how long the decisions took. It gives the median of each kind of event that
// there were many of.
func decide(b interface {
	fataler
	ResetTimer()
	StopTimer()
	ReportMetric(float64, string)
}, ram float64, waiting, rounds int) map[string]time.Duration {
	world, running := busyRack(b, ram, waiting)
	w := &timed{world: world, kind: map[string][]time.Duration{}}
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
	b.ReportMetric(float64(w.core.Stats().Waiting), "waiting")
	b.ReportMetric(float64(len(w.took))/float64(rounds), "decisions/op")
	slices.Sort(w.took)
	b.ReportMetric(float64(w.took[len(w.took)*99/100].Microseconds()), "p99-µs")
	b.ReportMetric(float64(w.took[len(w.took)-1].Microseconds()), "max-µs")
	return w.medians(rounds / 5)
}

// medians are of each kind of event that there were many of.
func (w *timed) medians(many int) map[string]time.Duration {
	medians := map[string]time.Duration{}
	for kind, took := range w.kind {
		if len(took) >= many {
			slices.Sort(took)
			medians[kind] = took[len(took)/2]
		}
	}
	return medians
}

// TestDecisionsDoNotLookAtAllThatWaits: where twenty times as many partitions wait, decisions do not take much longer.
// (That 99 of 100 take less than a millisecond is measured by make bench: a busy machine interrupts some.)
func TestDecisionsDoNotLookAtAllThatWaits(t *testing.T) {
	for _, ram := range []float64{256, 24} {
		m := &metrics{T: t, values: map[string]float64{}}
		few := decide(m, ram, manyWait/20, 1000)
		many := decide(m, ram, manyWait, 1000)
		t.Logf("ram %.0f GiB: medians %v with few, %v with many, %v", ram, few, many, m.values)
		if m.values["waiting"] < 0.9*manyWait {
			t.Fatalf("only %.0f are waiting", m.values["waiting"])
		}
		for kind, took := range many {
			if before := max(few[kind], 20*time.Microsecond); took > 5*before {
				t.Errorf("%s takes %s, where a twentieth waits %s", kind, took, few[kind])
			}
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
