package e2e_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/telemetry/otlptest"
	"github.com/proofrack/proofrack/shared/wire"
)

// submitWith has a job of one partition accepted by a request as the plain tool makes it, with headers.
func (r *rack) submitWith(header map[string]string, body string) *submitted {
	r.t.Helper()
	number := uint64(len(r.jobs) + 1)
	data, err := wire.Encode(&wire.Submit{
		Kind: "toy", Miner: "f01000", SectorNumber: &number, Inline: toy.Slice(number), Output: job.OutputPartitions,
		TraceParent: body,
	})
	r.check(err)
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	m, err := r.bus.Request(ctx, bus.Message{
		Subject: wire.ClientSubject(wire.VerbSubmit, job.MainTenant), Header: header, Data: data,
	})
	r.check(err)
	var reply wire.SubmitReply
	r.check(wire.Decode(m.Data, &reply))
	r.check(reply.Err())
	return r.accepted(reply.Job, number)
}

// B91, B92: a trace begun by the client goes on through the whole rack, however its header is spelled, and whether it
// comes in the header or in the body; a broken one begins a new trace and is told once. None fails a job.
func TestB91B92TraceGoesOnWhateverItsHeader(t *testing.T) {
	t.Parallel()
	collector := received{otlptest.Start(t)}
	r := newRack(t)
	coordinator := r.startCoordinator(collector.settings()...)
	n := r.addNode("n1")
	gpu, synth := n.startGPU(collector.settings()...), n.startSynth(collector.settings()...)
	r.ready()
	const span = "b7ad6b7169203331"
	trace := func(digit string) string { return strings.Repeat(digit, 32) }
	parent := func(digit string) string { return "00-" + trace(digit) + "-" + span + "-01" }
	cases := []struct {
		header map[string]string
		body   string
		trace  string // "" for a new one
	}{
		{header: map[string]string{"traceparent": parent("1")}, trace: trace("1")},
		{header: map[string]string{"Traceparent": parent("2")}, trace: trace("2")},
		{header: map[string]string{"TRACEPARENT": parent("3")}, trace: trace("3")},
		{header: map[string]string{"Xraceparent": parent("4")}},
		{header: map[string]string{"Xraceparent": parent("5")}, body: parent("6"), trace: trace("6")},
		{header: map[string]string{"traceparent": "garbage"}},
		{header: map[string]string{"traceparent": "more garbage"}},
	}
	var jobs []*submitted
	for _, c := range cases {
		jobs = append(jobs, r.submitWith(c.header, c.body))
	}
	r.waitDone()
	r.checkQuiet()
	records := map[job.ID]*job.Record{}
	for _, j := range jobs {
		records[j.id] = r.record(j)
	}
	for _, p := range []*process{synth, gpu, coordinator} {
		p.stops()
	}
	for i, c := range cases {
		record := records[jobs[i].id]
		of := map[string]bool{}
		for _, s := range collector.Spans() {
			if s.Facts[telemetry.KeyJobID] == string(jobs[i].id) {
				of[s.Trace] = true
			}
		}
		id := traceID(t, record.TraceParent)
		if len(of) != 1 || !of[id] || c.trace != "" && id != c.trace {
			t.Errorf("case %d: spans in traces %v, the record has %s, want %s", i, of, id, c.trace)
		}
		spans := collector.spans(t, id)
		root := slices.IndexFunc(spans, func(s otlptest.Span) bool { return s.Name == telemetry.SpanAccept })
		if want := map[bool]string{true: span, false: ""}[c.trace != ""]; root < 0 || spans[root].Parent != want {
			t.Errorf("case %d: the root is below %v", i, spans)
		}
		if last := record.Partitions[0].Last(); last.TraceID != id {
			t.Errorf("case %d: the attempt's record names trace %q", i, last.TraceID)
		}
	}
	if n := strings.Count(coordinator.log.String(), "broken trace context replaced"); n != 1 {
		t.Errorf("broken headers are told %d times", n)
	}
}

// A job goes on under another leader in the same trace: nothing of it is below a span that is not there, and what the
// attempt waited for under the first leader is told as well as how it ended under the second.
func TestTraceOfAJobGoesOnUnderAnotherLeader(t *testing.T) {
	t.Parallel()
	c := startCollector(t)
	r := newRack(t)
	first := r.startCoordinator(c.settings()...)
	n := r.addNode("n1")
	synth := n.startSynth(c.settings()...)
	gpu := n.startGPU(append(r.hooked("pause@gpu.mid-proof"), c.settings()...)...)
	r.ready()
	j := r.submit(1)
	r.reached("gpu.mid-proof#1")
	trace := traceID(t, r.record(j).TraceParent)
	until(t, "the first leader has told of the attempt", func() bool {
		return slices.ContainsFunc(c.spans(t, trace), func(s otlptest.Span) bool { return s.Name == telemetry.SpanAttempt })
	})
	until(t, "it has told of the acceptance", func() bool {
		return slices.ContainsFunc(c.spans(t, trace), func(s otlptest.Span) bool { return s.Name == telemetry.SpanAccept })
	})
	first.kill()
	second := r.startCoordinator(c.settings()...)
	r.letGo("gpu.mid-proof#1")
	r.waitDone()
	record := r.record(j)
	r.checkQuiet()
	for _, p := range []*process{synth, gpu, second} {
		p.stops()
	}
	got := &trail{t: t, record: record, spans: c.spans(t, trace)}
	got.index()
	got.checkTree()
	for _, name := range []string{
		telemetry.SpanReserve, telemetry.SpanProve, telemetry.SpanWaitLeader, telemetry.SpanRecord, telemetry.SpanWaitOthers,
		telemetry.SpanAssemble, telemetry.SpanStore, telemetry.SpanEnded,
	} {
		if !slices.ContainsFunc(got.spans, func(s otlptest.Span) bool { return s.Name == name }) {
			t.Errorf("no span %q", name)
		}
	}
}

// B94: a collector that takes connections and never answers, and one that is not there, cost jobs nothing, and
// programs end.
func TestB94JobsAreDoneWithoutTheirCollector(t *testing.T) {
	t.Parallel()
	silent := otlptest.Start(t)
	silent.Silence()
	r := newRack(t)
	coordinator := r.startCoordinator("traces.endpoint=http://" + freePort(t))
	n := r.addNode("n1")
	gpu := n.startGPU("traces.endpoint=" + silent.URL)
	synth := n.startSynth("traces.endpoint=http://no-such-host.invalid:4318")
	r.ready()
	for seed := range uint64(3) {
		r.submit(seed, seed+10)
	}
	r.waitDone()
	r.checkQuiet()
	for _, p := range []*process{synth, gpu, coordinator} {
		p.stops()
		if n := strings.Count(p.log.String(), "spans"); n < 1 || n > 3 {
			t.Errorf("%s tells %d times of its collector:\n%s", p.name, n, p.log.String())
		}
	}
}
