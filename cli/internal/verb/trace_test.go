package verb

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/telemetry/otlptest"
)

// closedPort is an address that nobody listens on.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// B93: a command that ends at once has sent its span: after an error, and after an interrupt.
func TestB93ShortCommandsLoseNoSpan(t *testing.T) {
	r := otlptest.Start(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", r.URL)
	missing, input := filepath.Join(t.TempDir(), "missing.json"), "doc.go"
	const times = 20
	for i := range times {
		ctx, cancel := context.WithCancel(t.Context())
		args := []string{"submit", missing, "--miner", "1000", "--sector-number", "1"}
		switch i % 3 {
		case 1: // nobody is there
			args[1] = input
			args = append(args, "--server", "nats://"+closedPort(t), "--timeout", "10ms")
		case 2: // interrupted
			args[1] = input
			args = append(args, "--server", "nats://"+closedPort(t), "--timeout", "1h")
			cancel()
		}
		var out, errs bytes.Buffer
		if code := Run(ctx, args, Streams{In: strings.NewReader(""), Out: &out, Err: &errs}); code == 0 {
			t.Errorf("%v succeeds: %s", args, out.String())
		}
		cancel()
		if got := len(r.Spans()); got != i+1 {
			t.Fatalf("%d spans after %d commands: %s", got, i+1, errs.String())
		}
	}
	for _, s := range r.Spans() {
		if s.Name != telemetry.SpanSubmit || s.Kind != "client" || s.Parent != "" || !s.Failed {
			t.Errorf("%+v", s)
		}
	}
}

// B93: a collector that is away changes neither output nor exit code.
func TestB93CollectorThatIsAwayChangesNoCommand(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing.json")
	run := func() (code int, out, errs string) {
		var o, e bytes.Buffer
		code = Run(t.Context(), []string{"submit", missing, "--miner", "1000"},
			Streams{In: strings.NewReader(""), Out: &o, Err: &e})
		return code, o.String(), e.String()
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	code, out, _ := run()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+closedPort(t))
	gotCode, gotOut, errs := run()
	if gotCode != code || gotOut != out || strings.Count(errs, "spans were lost") != 1 {
		t.Errorf("code %d, want %d; %q, want %q; %s", gotCode, code, gotOut, out, errs)
	}
}

// B95: doctor says whether the collector is reached, refuses, or takes spans that are not found.
func TestB95DoctorSendsATestSpan(t *testing.T) {
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "")
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if !strings.HasPrefix(q.URL.Path, "/api/traces/") || len(q.URL.Path) != len("/api/traces/")+32 {
			http.NotFound(w, q)
		}
	}))
	defer store.Close()
	empty := httptest.NewServer(http.NotFoundHandler())
	defer empty.Close()
	collector := otlptest.Start(t)
	for name, c := range map[string]struct {
		flags   doctorTraces
		verdict verdict
		text    string
	}{
		"none":      {doctorTraces{}, verdictInfo, "no collector is named"},
		"reachable": {doctorTraces{endpoint: collector.URL}, verdictOK, "has accepted a test span"},
		"grpc":      {doctorTraces{endpoint: collector.GRPC, protocol: telemetry.ProtocolGRPC}, verdictOK, "has accepted"},
		"found":     {doctorTraces{endpoint: collector.URL, query: store.URL + "/"}, verdictOK, "it is found"},
		"not found": {doctorTraces{endpoint: collector.URL, query: empty.URL}, verdictFix, "it is not found"},
		"refused":   {doctorTraces{endpoint: closedPort(t)}, verdictFix, "refused"},
		"mixed up":  {doctorTraces{endpoint: collector.GRPC}, verdictFix, "speaks gRPC"},
		"nonsense":  {doctorTraces{endpoint: "ftp://x"}, verdictFix, "is not http"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &doctorResult{}
			r.traces(t.Context(), &c.flags)
			if len(r.Checks) != 1 || r.Checks[0].Verdict != c.verdict || !strings.Contains(r.Checks[0].Text, c.text) {
				t.Errorf("%+v", r.Checks)
			}
		})
	}
	if len(collector.Spans()) != 4 {
		t.Errorf("%d spans came", len(collector.Spans()))
	}
}
