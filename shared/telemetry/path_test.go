package telemetry_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/telemetry/otlptest"
)

func TestSpansOfAPathFollowEachOtherWithoutGaps(t *testing.T) {
	t.Parallel()
	r := otlptest.Start(t)
	tracer, _ := open(t, func(c *telemetry.TraceConfig) { c.Endpoint = r.URL })
	parent, err := telemetry.ParseTrace(known)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now().Add(-time.Minute)
	path := tracer.Path(parent, began, telemetry.String("who", "me"))
	path.Wait("wait for ram")
	path.Enter("first")
	path.Note(telemetry.Int("n", 1))
	path.About(telemetry.Float("share", 0.5))
	path.Enter("second")
	path.Send(telemetry.TemplateResult, "c2.result.n1", "id", 3)
	path.End(context.Canceled)
	path.End(nil) // nothing goes on
	tracer.Close()
	spans := r.Spans()
	slices.SortFunc(spans, func(a, b otlptest.Span) int { return a.Start.Compare(b.Start) })
	var names []string
	for i, s := range spans {
		names = append(names, s.Name)
		if i > 0 && !s.Start.Equal(spans[i-1].End) {
			t.Errorf("a gap of %s before %s", s.Start.Sub(spans[i-1].End), s.Name)
		}
		if s.Parent != known[36:52] || s.Facts["who"] != "me" {
			t.Errorf("%s is below %s: %v", s.Name, s.Parent, s.Facts)
		}
	}
	if diff := cmp.Diff([]string{"wait for ram", "first", "second", "send c2.result.{node}"}, names); diff != "" {
		t.Fatal(diff)
	}
	if !spans[0].Start.Equal(began.Round(0)) || !spans[3].Failed || spans[3].Kind != "producer" || spans[2].Failed {
		t.Errorf("%+v", spans)
	}
	if spans[1].Facts["n"] != "1" || spans[2].Facts["n"] != "" || spans[2].Facts["share"] != "0.5" {
		t.Errorf("facts: %v, %v", spans[1].Facts, spans[2].Facts)
	}
}

func TestPartsAreLaidBeforeTheirEnd(t *testing.T) {
	t.Parallel()
	r := otlptest.Start(t)
	tracer, _ := open(t, func(c *telemetry.TraceConfig) { c.Endpoint = r.URL })
	parent, err := telemetry.ParseTrace(known)
	if err != nil {
		t.Fatal(err)
	}
	path := tracer.Path(parent, time.Now())
	path.Enter("prove partition")
	start := time.Unix(1000, 0)
	part := func(name string, seconds int) telemetry.Part {
		return telemetry.Part{Name: name, Took: time.Duration(seconds) * time.Second}
	}
	path.Parts(start, start.Add(10*time.Second), "rest", part("fft", 3), part("none", 0), part("msm", 4))
	path.Parts(start.Add(20*time.Second), start.Add(30*time.Second), "rest", part("too long", 40), part("b", 4))
	path.End(nil)
	path.Parts(start, start.Add(time.Second), "rest") // below nothing
	tracer.Close()
	type laid struct{ From, To int }
	got, whole := map[string]laid{}, ""
	for _, s := range r.Spans() {
		if s.Name == "prove partition" {
			whole = s.ID
			continue
		}
		got[s.Name] = laid{int(s.Start.Sub(start).Seconds()), int(s.End.Sub(start).Seconds())}
	}
	want := map[string]laid{"rest": {0, 3}, "fft": {3, 6}, "msm": {6, 10}, "too long": {20, 26}, "b": {26, 30}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, s := range r.Spans() {
		if s.ID != whole && s.Parent != whole {
			t.Errorf("%s is below %s, not below %s", s.Name, s.Parent, whole)
		}
	}
}

func TestUnsampledTracesAreNotRecorded(t *testing.T) {
	t.Parallel()
	r := otlptest.Start(t)
	tracer, _ := open(t, func(c *telemetry.TraceConfig) { c.Endpoint = r.URL })
	parent, err := telemetry.ParseTrace(other)
	if err != nil {
		t.Fatal(err)
	}
	if path := tracer.Path(parent, time.Now()); path != nil {
		t.Error("a path")
	}
	o := tracer.Open(&telemetry.Span{Name: "s", Parent: parent, Start: time.Now()})
	if c := o.Context(); c.TraceID != parent.TraceID || c.Sampled() {
		t.Errorf("context %s of %s", c, parent)
	}
	o.End(time.Now(), nil)
	tracer.Record(&telemetry.Span{Name: "s", Parent: parent})
	tracer.Close()
	if got := r.Spans(); len(got) != 0 {
		t.Errorf("%d spans", len(got))
	}
}

func TestSpansOfAnAttemptCanBeNamedByEverybody(t *testing.T) {
	t.Parallel()
	a, b := attempt(), attempt()
	b.Fence++
	ids := map[[8]byte]bool{
		telemetry.AttemptSpan(a): true, telemetry.AttemptSpan(b): true, telemetry.WorkSpan(a, "reserved"): true,
		telemetry.WorkSpan(a, "sealed"): true, {}: true,
	}
	if len(ids) != 5 || telemetry.AttemptSpan(a) != telemetry.AttemptSpan(attempt()) {
		t.Errorf("%v", ids)
	}
}

func TestMessagesTellWhenTheyWereSent(t *testing.T) {
	t.Parallel()
	parent, err := telemetry.ParseTrace(known)
	if err != nil {
		t.Fatal(err)
	}
	before, header := time.Now(), parent.Header()
	now := time.Now().Add(time.Second)
	if at := telemetry.SentAt(header, now); at.Before(before.Add(-time.Millisecond)) || at.After(now) {
		t.Errorf("sent at %s, now is %s", at, now)
	}
	if header[telemetry.TraceHeader] != known {
		t.Errorf("%v", header)
	}
	for name, text := range map[string]string{
		"nothing": "", "no number": "x", "later than now": "9000000000000000000", "in another age": "1",
	} {
		if at := telemetry.SentAt(map[string]string{telemetry.SentHeader: text}, now); !at.Equal(now) {
			t.Errorf("%s: %s", name, at)
		}
	}
	if (telemetry.TraceContext{}).Header() != nil {
		t.Error("a header outside of a trace")
	}
}

func TestLogsCarryTraceAndSpan(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	log := zerolog.New(&out)
	log.Info().EmbedObject(telemetry.InTrace(known)).Msg("x")
	log.Info().EmbedObject(telemetry.InTrace("garbage")).Msg("y")
	want := `{"level":"info","trace_id":"0af7651916cd43dd8448eb211c80319c","span_id":"b7ad6b7169203331",` +
		`"message":"x"}` + "\n" +
		`{"level":"info","message":"y"}` + "\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestWaitsAreNamedByPool(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]string{
		"ram": "wait for ram", "vram:gpu0": "wait for vram", "quota": "wait for quota", "": "wait for scheduler",
	} {
		if got := telemetry.SpanWait(what); got != want {
			t.Errorf("%q: %q, want %q", what, got, want)
		}
	}
}
