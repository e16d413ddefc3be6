package telemetry_test

import (
	"bytes"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/telemetry/otlptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines is a log that may be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func open(t *testing.T, edit func(*telemetry.TraceConfig)) (*telemetry.Tracer, *lines) {
	t.Helper()
	c, log := telemetry.DefaultTraceConfig(), &lines{}
	edit(&c)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	tracer, err := telemetry.OpenTracer(t.Context(), c,
		telemetry.Program{Name: "sample", Build: "b", Instance: "i"}, zerolog.New(log))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tracer.Close)
	return tracer, log
}

func attempt() job.Attempt {
	return job.Attempt{Job: "0198c0de-0000-7000-8000-000000000001", Partition: 3, Fence: 7}
}

func TestSpansArriveByBothProtocols(t *testing.T) {
	t.Parallel()
	for _, protocol := range []string{telemetry.ProtocolHTTP, telemetry.ProtocolGRPC} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			r := otlptest.Start(t)
			tracer, _ := open(t, func(c *telemetry.TraceConfig) {
				c.Protocol, c.Endpoint = protocol, r.URL
				if protocol == telemetry.ProtocolGRPC {
					c.Endpoint = r.GRPC
				}
			})
			start := time.Unix(1000, 5)
			root := tracer.Open(&telemetry.Span{Name: "accept job", Kind: telemetry.Server, Start: start})
			former := root.Context().With(telemetry.AttemptSpan(attempt()))
			child := tracer.Record(&telemetry.Span{
				Name: "prove partition", Parent: root.Context(), Start: start.Add(time.Second), End: start,
				Links: []telemetry.TraceContext{former}, Facts: telemetry.AttemptFacts(attempt()), Err: errors.New("broken"),
			})
			root.End(start.Add(2*time.Second), nil)
			tracer.Close()
			got := map[string]otlptest.Span{}
			for _, s := range r.Spans() {
				s.Calls = 0
				got[s.Name] = s
			}
			hex := func(c telemetry.TraceContext) (trace, span string) {
				parts := strings.Split(c.String(), "-")
				return parts[1], parts[2]
			}
			trace, id := hex(root.Context())
			_, childID := hex(child)
			_, formerID := hex(former)
			want := map[string]otlptest.Span{
				"accept job": {
					Service: "sample", Name: "accept job", Trace: trace, ID: id, Kind: "server", Start: start,
					End: start.Add(2 * time.Second), Facts: map[string]string{},
				},
				"prove partition": {
					Service: "sample", Name: "prove partition", Trace: trace, ID: childID, Parent: id, Kind: "internal",
					Start: start.Add(time.Second), End: start.Add(time.Second), Links: []string{formerID}, Failed: true,
					Status: "broken", Facts: map[string]string{
						"c2.job.id": string(attempt().Job), "c2.partition.index": "3", "c2.fence": "7",
						"c2.fault.kind": "internal",
					},
				},
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
			if s := tracer.Stats(); s.Sent != 2 || s.Dropped != 0 || s.Waiting != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// The default batcher of the library lost most of such a burst and said nothing.
func TestNothingOfABurstIsDroppedSilently(t *testing.T) {
	t.Parallel()
	r := otlptest.Start(t)
	tracer, log := open(t, func(c *telemetry.TraceConfig) {
		c.Endpoint, c.QueueMax, c.FlushWithin = r.URL, 1000, time.Minute
	})
	r.Silence()
	const made = 5000
	for range made {
		tracer.Record(&telemetry.Span{Name: "s", Start: time.Now(), End: time.Now()})
	}
	s := tracer.Stats()
	if s.Waiting > 1000 || s.Dropped != made-uint64(s.Waiting) || s.Sent != 0 {
		t.Errorf("a full queue: %+v", s)
	}
	r.Speak()
	tracer.Close()
	s = tracer.Stats()
	if got := len(r.Spans()); uint64(got) != s.Sent || s.Sent+s.Dropped != made || s.Sent < 1000 {
		t.Errorf("%d spans came, %+v", got, s)
	}
	if !strings.Contains(log.String(), `"lost":`) {
		t.Errorf("nobody was told:\n%s", log.String())
	}
}

func TestB94CollectorThatIsAwayHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	silent := otlptest.Start(t)
	silent.Silence()
	for name, endpoint := range map[string]string{
		"a closed port": "http://" + address, "accepts and never answers": silent.URL,
		"a name that does not resolve": "http://no-such-host.invalid:4318",
	} {
		for _, protocol := range []string{telemetry.ProtocolHTTP, telemetry.ProtocolGRPC} {
			if protocol == telemetry.ProtocolGRPC && endpoint == silent.URL {
				endpoint = silent.GRPC
			}
			t.Run(name+" "+protocol, func(t *testing.T) {
				t.Parallel()
				tracer, log := open(t, func(c *telemetry.TraceConfig) {
					c.Endpoint, c.Protocol, c.QueueMax, c.FlushWithin = endpoint, protocol, 64, 100*time.Millisecond
				})
				for range 1000 {
					tracer.Record(&telemetry.Span{Name: "s", Start: time.Now(), End: time.Now(), Urgent: true})
				}
				if s := tracer.Stats(); s.Waiting > 64 || s.Dropped < 1000-64 {
					t.Errorf("the queue has no bound: %+v", s)
				}
				tracer.Close() // the test's time-out is the bound of a hang
				if s := tracer.Stats(); s.Sent != 0 || s.Dropped != 1000 || s.Waiting != 0 {
					t.Errorf("%+v", s)
				}
				// One while it is away, one at the end.
				if n := strings.Count(log.String(), `"level":"warn"`); n < 1 || n > 2 {
					t.Errorf("%d warnings:\n%s", n, log.String())
				}
			})
		}
	}
}

func TestB96MixedUpProtocolIsNamed(t *testing.T) {
	t.Parallel()
	type receiver = *otlptest.Receiver
	const byHTTP, byGRPC = telemetry.ProtocolHTTP, telemetry.ProtocolGRPC
	for name, c := range map[string]struct {
		protocol string
		endpoint func(receiver) string
		want     string // part of the message, "" when spans arrive
	}{
		"HTTP to HTTP":           {byHTTP, func(r receiver) string { return r.URL }, ""},
		"HTTP without scheme":    {byHTTP, func(r receiver) string { return r.URL[7:] }, ""},
		"HTTP with a slash":      {byHTTP, func(r receiver) string { return r.URL + "/" }, ""},
		"HTTP with the path":     {byHTTP, func(r receiver) string { return r.URL + "/v1/traces" }, ""},
		"HTTP with another path": {byHTTP, func(r receiver) string { return r.URL + "/otlp" }, "/otlp/v1/traces"},
		"gRPC to gRPC":           {byGRPC, func(r receiver) string { return r.GRPC }, ""},
		"gRPC with a scheme":     {byGRPC, func(r receiver) string { return "http://" + r.GRPC + "/" }, ""},
		"HTTP to gRPC":           {byHTTP, func(r receiver) string { return r.GRPC }, "speaks gRPC"},
		"gRPC to HTTP":           {byGRPC, func(r receiver) string { return r.URL }, "speaks HTTP"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := otlptest.Start(t)
			tracer, log := open(t, func(config *telemetry.TraceConfig) {
				config.Protocol, config.Endpoint, config.FlushWithin = c.protocol, c.endpoint(r), time.Minute
			})
			tracer.Record(&telemetry.Span{Name: "s", Start: time.Now(), End: time.Now()})
			tracer.Close()
			switch text := log.String(); {
			case c.want == "" && len(r.Spans()) != 1:
				t.Errorf("%d spans came:\n%s", len(r.Spans()), text)
			case c.want != "" && !strings.Contains(text, c.want):
				t.Errorf("want %q:\n%s", c.want, text)
			}
		})
	}
}

func TestSpansComeOnceTheCollectorIsBack(t *testing.T) {
	t.Parallel()
	r := otlptest.Start(t)
	r.Refuse(errors.New("not now"))
	tracer, log := open(t, func(c *telemetry.TraceConfig) { c.Endpoint = r.URL })
	tracer.Record(&telemetry.Span{Name: "s", Start: time.Now(), End: time.Now(), Urgent: true})
	r.Until(t, "it was tried twice", func(_ []otlptest.Span, calls int) bool { return calls >= 2 })
	r.Refuse(nil)
	r.Until(t, "the span is there", func(spans []otlptest.Span, _ int) bool { return len(spans) == 1 })
	tracer.Close()
	if s := tracer.Stats(); s.Sent != 1 || s.Dropped != 0 || s.Failures < 2 {
		t.Errorf("%+v\n%s", s, log.String())
	}
}

func TestNothingIsMadeWithoutACollector(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	tracer, _ := open(t, func(*telemetry.TraceConfig) {})
	if tracer != nil {
		t.Fatal("a tracer without a collector")
	}
	parent, err := telemetry.ParseTrace(known)
	if err != nil {
		t.Fatal(err)
	}
	span := tracer.Open(&telemetry.Span{Name: "s", Parent: parent})
	if c := span.Context(); c.TraceID != parent.TraceID || c.SpanID == parent.SpanID {
		t.Errorf("the context is lost: %s", c)
	}
	if c := tracer.Open(&telemetry.Span{Name: "s"}).Context(); !c.Valid() {
		t.Error("a root has no context")
	}
	path := tracer.Path(parent, time.Now())
	path.Enter("a")
	path.About(telemetry.Int("n", 1))
	path.Wait("b")
	path.End(nil)
	span.End(time.Now(), nil)
	tracer.Close()
	if path != nil || tracer.Stats() != (telemetry.TraceStats{}) {
		t.Error("something is made")
	}
}

func TestStandardVariablesAreObeyed(t *testing.T) {
	r := otlptest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	t.Setenv("OTEL_SERVICE_NAME", "mine")
	send := func() {
		tracer, _ := open(t, func(*telemetry.TraceConfig) {})
		tracer.Record(&telemetry.Span{Name: "s", Start: time.Now(), End: time.Now()})
		tracer.Close()
	}
	send()
	if got := r.Spans(); len(got) != 1 || got[0].Service != "mine" {
		t.Errorf("%+v", got)
	}
	for name, value := range map[string]string{
		"OTEL_SDK_DISABLED": "true", "OTEL_TRACES_EXPORTER": "none", "OTEL_TRACES_SAMPLER": "always_off",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			send()
			if got := r.Spans(); len(got) != 1 {
				t.Errorf("%s=%s: %d spans", name, value, len(got))
			}
		})
	}
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+r.GRPC)
	send()
	if got := r.Spans(); len(got) != 2 {
		t.Errorf("grpc: %d spans", len(got))
	}
}

func TestTraceConfigRefusesWhatCannotBe(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*telemetry.TraceConfig){
		"endpoint":     func(c *telemetry.TraceConfig) { c.Endpoint = "ftp://x" },
		"password":     func(c *telemetry.TraceConfig) { c.Endpoint = "http://me:secret@x:1" },
		"protocol":     func(c *telemetry.TraceConfig) { c.Protocol = "thrift" },
		"queue_max":    func(c *telemetry.TraceConfig) { c.QueueMax = 1 },
		"flush_within": func(c *telemetry.TraceConfig) { c.FlushWithin = time.Hour },
	} {
		c := telemetry.DefaultTraceConfig()
		edit(&c)
		err := c.Validate()
		if fault.KindOf(err) != fault.Invalid || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c := telemetry.DefaultTraceConfig()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}
