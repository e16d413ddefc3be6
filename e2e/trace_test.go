package e2e_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/telemetry/otlptest"
)

// collector is where a test's traces go: the small one of package otlptest, or Jaeger (make e2e-jaeger).
type collector interface {
	// settings are those of a program that sends its traces there.
	settings() []string
	// spans gives all spans of a trace that came so far.
	spans(t *testing.T, trace string) []otlptest.Span
	// find gives the traces that have a span with a fact.
	find(t *testing.T, key, value string) []string
}

// received is a collector of package otlptest.
type received struct{ *otlptest.Receiver }

func (c received) settings() []string { return []string{"traces.endpoint=" + c.URL} }

func (c received) spans(_ *testing.T, trace string) (of []otlptest.Span) {
	for _, s := range c.Spans() {
		if s.Trace == trace {
			of = append(of, s)
		}
	}
	return of
}

func (c received) find(_ *testing.T, key, value string) (traces []string) {
	for _, s := range c.Spans() {
		if s.Facts[key] == value {
			traces = append(traces, s.Trace)
		}
	}
	slices.Sort(traces)
	return slices.Compact(traces)
}

// spansMax bounds the spans of an attempt.
const spansMax = 64

// A job of 13 partitions, and a synthesis worker that is killed at work: one trace has all of it, the lost attempt is
// seen and linked, and what happened is told for all the time from acceptance to the end but 3 %.
func TestTraceOfAJobWhoseWorkerIsKilled(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	r := newRack(t)
	coordinator := r.startCoordinator(append(c.settings(), "times.lease="+(2*lease).String())...)
	n := r.addNode("n1")
	gpu := n.startGPU(append(simulated(150*time.Millisecond, 30*time.Millisecond), c.settings()...)...)
	victim := n.startSynth(append(r.hooked("pause@synth.mid-write#4"), c.settings()...)...)
	r.ready()
	var seeds []uint64
	for seed := range uint64(13) {
		seeds = append(seeds, seed)
	}
	j := r.submit(seeds...)
	r.reached("synth.mid-write#4")
	trace := traceID(t, r.record(j).TraceParent)
	until(t, "the worker has shown that it began four times", func() bool {
		began := 0
		for _, s := range c.spans(t, trace) {
			if s.Name == telemetry.SpanWork && s.Service == "proofrack-worker-synth" {
				began++
			}
		}
		return began >= 4
	})
	victim.kill()
	until(t, "its attempt is lost", func() bool {
		return slices.ContainsFunc(r.record(j).Partitions, func(p job.Partition) bool { return lost(&p) > 0 })
	})
	synth := n.startSynth(c.settings()...)
	r.waitDone()
	record := r.record(j)
	r.checkQuiet()
	until(t, "the end is told", func() bool {
		return slices.ContainsFunc(c.spans(t, trace), func(s otlptest.Span) bool { return s.Name == telemetry.SpanEnded })
	})
	for _, p := range []*process{synth, gpu, coordinator} {
		p.stops() // sends what it has
	}
	got := &trail{t: t, record: record, spans: c.spans(t, trace)}
	got.index()
	got.checkTree()
	got.checkPartitions()
	got.checkLost()
	got.checkCoverage()
	for key, value := range map[string]string{
		telemetry.KeyJobID: string(j.id), telemetry.KeySectorNumber: fmt.Sprint(record.SectorNumber),
		telemetry.KeyMinerID: record.Miner, telemetry.KeyNodeID: "n1", telemetry.KeyDevice: "cpu",
	} {
		if traces := c.find(t, key, value); !slices.Equal(traces, []string{trace}) {
			t.Errorf("traces with %s=%s: %v, want %s", key, value, traces, trace)
		}
	}
	if !strings.Contains(coordinator.log.String(), `"trace_id":"`+trace+`"`) {
		t.Error("the coordinator's log does not name the trace")
	}
}

func traceID(t *testing.T, parent string) string {
	t.Helper()
	parts := strings.Split(parent, "-")
	if len(parts) != 4 {
		t.Fatalf("the record has no trace: %q", parent)
	}
	return parts[1]
}

// trail is a job's trace with the job's record.
type trail struct {
	t      *testing.T
	record *job.Record
	spans  []otlptest.Span
	byID   map[string]otlptest.Span
	above  map[string]bool // spans that have some below
}

func (g *trail) index() {
	slices.SortFunc(g.spans, func(a, b otlptest.Span) int {
		return cmp.Or(a.Start.Compare(b.Start), a.End.Compare(b.End))
	})
	g.byID, g.above = map[string]otlptest.Span{}, map[string]bool{}
	for _, s := range g.spans {
		g.byID[s.ID], g.above[s.Parent] = s, true
	}
	g.t.Cleanup(func() {
		if g.t.Failed() {
			g.t.Log("trace:\n" + g.picture())
		}
	})
}

// picture is the trace in lines.
func (g *trail) picture() string {
	var b strings.Builder
	for _, s := range g.spans {
		began := s.Start.Sub(g.record.SubmittedAt).Round(time.Microsecond)
		fmt.Fprintf(&b, "%12s %12s  p%-2s f%-2s %s %s\n", began, s.End.Sub(s.Start).Round(time.Microsecond),
			s.Facts[telemetry.KeyPartition], s.Facts[telemetry.KeyFence], s.Name, s.Status)
	}
	return b.String()
}

// checkTree wants one root and no span below one that is not there.
func (g *trail) checkTree() {
	g.t.Helper()
	var roots []string
	for _, s := range g.spans {
		if s.Parent == "" {
			roots = append(roots, s.Name)
		} else if _, ok := g.byID[s.Parent]; !ok {
			g.t.Errorf("%s of partition %s is below %s, which is not there", s.Name, s.Facts[telemetry.KeyPartition], s.Parent)
		}
		if s.Facts[telemetry.KeyJobID] != string(g.record.ID) && s.Facts[telemetry.KeyJobID] != "" {
			g.t.Errorf("%s is of job %s", s.Name, s.Facts[telemetry.KeyJobID])
		}
	}
	if !slices.Equal(roots, []string{telemetry.SpanAccept}) {
		g.t.Errorf("roots: %v", roots)
	}
	if len(g.byID) != len(g.spans) {
		g.t.Errorf("%d spans have %d ids", len(g.spans), len(g.byID))
	}
}

// checkPartitions wants every stage of every partition's last attempt, and no more spans than there may be.
func (g *trail) checkPartitions() {
	g.t.Helper()
	cut := 0
	for i := range g.record.Partitions {
		a := g.record.Attempt(i)
		have, count := map[string]int{}, 0
		for _, s := range g.spans {
			if s.Facts[telemetry.KeyPartition] == fmt.Sprint(i) && s.Facts[telemetry.KeyFence] == fmt.Sprint(a.Fence) {
				have[s.Name]++
				count++
			}
		}
		for _, name := range []string{
			telemetry.SpanReserve, telemetry.SpanAttempt, "send c2.synth.{node}", telemetry.SpanWaitSynth, telemetry.SpanWork,
			telemetry.SpanFetch, telemetry.SpanBook, telemetry.SpanSegment, telemetry.SpanSynthesize, telemetry.SpanSeal,
			telemetry.SpanHandOver, "send c2.prove.{node}.{device}", telemetry.SpanWaitDevice, telemetry.SpanOpen,
			telemetry.SpanPrepare, telemetry.SpanWaitTurn, telemetry.SpanProve, telemetry.SpanVerify,
			"send c2.result.{node}", telemetry.SpanWaitLeader, telemetry.SpanRecord, "process c2.synth.{node}",
			"process c2.prove.{node}.{device}",
		} {
			if have[name] == 0 && have["process c2.synth.{node}"] > 0 {
				g.t.Errorf("partition %d has no span %q", i, name)
			}
		}
		if have["process c2.synth.{node}"] == 0 {
			cut++ // on a crowded machine the worker is past its pause when it is killed, with spans that it has not sent
		}
		if count > spansMax {
			g.t.Errorf("attempt %s has %d spans", a, count)
		}
	}
	if cut > 1 {
		g.t.Errorf("%d partitions lack their synthesis, one worker was killed", cut)
	}
	for _, s := range g.spans {
		switch s.Name {
		case telemetry.SpanSynthesize:
			if s.Facts[telemetry.KeyFieldShare] == "" || s.Facts[telemetry.KeyBitShare] == "" ||
				s.Facts[telemetry.KeyHandoff] == "" {
				g.t.Errorf("a synthesis without shares or handoff: %v", s.Facts)
			}
		case telemetry.SpanProve:
			parts := map[string]bool{}
			for _, below := range g.spans {
				if below.Parent == s.ID {
					parts[below.Name] = true
				}
			}
			if !parts[telemetry.SpanTransform] || !parts["msm h"] || !parts["msm b_g2"] {
				g.t.Errorf("a proof with the parts %v", parts)
			}
		}
	}
}

// checkLost wants the attempt that was lost with its worker to be seen, and its successor linked to it.
func (g *trail) checkLost() {
	g.t.Helper()
	lostOnes := 0
	for i := range g.record.Partitions {
		attempts := g.record.Partitions[i].Attempts
		for k, a := range attempts {
			if a.Outcome != job.OutcomeLost {
				continue
			}
			lostOnes++
			of := func(fence uint64, name string) *otlptest.Span {
				for n, s := range g.spans {
					if s.Name == name && s.Facts[telemetry.KeyPartition] == fmt.Sprint(i) &&
						s.Facts[telemetry.KeyFence] == fmt.Sprint(fence) {
						return &g.spans[n]
					}
				}
				g.t.Fatalf("partition %d with fence %d has no span %q", i, fence, name)
				return nil
			}
			if a.TraceID != traceID(g.t, g.record.TraceParent) {
				g.t.Errorf("the lost attempt's history names trace %q (B50)", a.TraceID)
			}
			began := of(a.Fence, telemetry.SpanAttempt)
			of(a.Fence, telemetry.SpanWork)
			if gone := of(a.Fence, telemetry.SpanLost); !gone.Failed || gone.Parent != began.ID || gone.Status == "" {
				g.t.Errorf("lost attempt: %+v", gone)
			}
			if next := of(attempts[k+1].Fence, telemetry.SpanAttempt); !slices.Contains(next.Links, began.ID) {
				g.t.Errorf("the attempt after the lost one is linked to %v, not to %s", next.Links, began.ID)
			}
		}
	}
	if lostOnes == 0 {
		g.t.Error("no attempt was lost")
	}
}

// leaf tells whether a span is a stage or a wait: not one that only encloses others.
func (g *trail) leaf(s otlptest.Span) bool {
	return !g.above[s.ID] && (s.Kind == "internal" || s.Kind == "producer")
}

// coverageMin is how much of a job's time its leaves must tell of.
const coverageMin = 0.97

func (g *trail) checkCoverage() {
	g.t.Helper()
	var accepted, ended time.Time
	for _, s := range g.spans {
		switch s.Name {
		case telemetry.SpanAccept:
			accepted = s.End
		case telemetry.SpanEnded:
			ended = s.Start
		}
	}
	if accepted.IsZero() || !ended.After(accepted) {
		g.t.Fatalf("accepted at %s, ended at %s", accepted, ended)
	}
	covered, at := time.Duration(0), accepted
	var gaps []string
	for _, s := range g.spans {
		if !g.leaf(s) || !s.End.After(at) {
			continue
		}
		start, end := s.Start, s.End
		if start.After(ended) {
			break
		}
		if end.After(ended) {
			end = ended
		}
		if start.After(at) {
			gaps = append(gaps,
				fmt.Sprintf("%s before %s of partition %s", start.Sub(at), s.Name, s.Facts[telemetry.KeyPartition]))
			at = start
		}
		covered += end.Sub(at)
		at = end
	}
	share := covered.Seconds() / ended.Sub(accepted).Seconds()
	took := ended.Sub(accepted).Round(time.Millisecond)
	g.t.Logf("%d spans; leaves tell of %.2f %% of %s", len(g.spans), 100*share, took)
	if share < coverageMin {
		g.t.Errorf("leaves tell of %.2f %%, gaps: %v", 100*share, gaps)
	}
}
