package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/telemetry/otlptest"
)

// jaegerVariable names the program of Jaeger; make e2e-jaeger builds it and sets this.
const jaegerVariable = "E2E_JAEGER"

func startCollector(t *testing.T) collector {
	t.Helper()
	if program := os.Getenv(jaegerVariable); program != "" {
		return startJaeger(t, program)
	}
	return received{otlptest.Start(t)}
}

// jaeger is a real one, on loopback ports only, with its traces in memory.
type jaeger struct{ otlp, query string }

const jaegerConfig = `service:
  extensions: [jaeger_storage, jaeger_query]
  pipelines:
    traces: {receivers: [otlp], exporters: [jaeger_storage_exporter]}
  telemetry:
    metrics: {level: none}
extensions:
  jaeger_storage:
    backends:
      memory:
        memory: {max_traces: 1000}
  jaeger_query:
    storage: {traces: memory}
    http: {endpoint: %q}
    grpc: {endpoint: %q}
receivers:
  otlp:
    protocols:
      grpc: {endpoint: %q}
exporters:
  jaeger_storage_exporter: {trace_storage: memory}
`

func startJaeger(t *testing.T, program string) *jaeger {
	t.Helper()
	j := &jaeger{otlp: freePort(t), query: freePort(t)}
	file := filepath.Join(t.TempDir(), "jaeger.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, jaegerConfig, j.query, freePort(t), j.otlp), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "jaeger", program, "--config", file)
	p.await(t, j.query)
	p.await(t, j.otlp)
	return j
}

func (j *jaeger) settings() []string {
	return []string{"traces.endpoint=http://" + j.otlp, "traces.protocol=" + telemetry.ProtocolGRPC}
}

// jaegerTraces is an answer of the query API.
type jaegerTraces struct {
	Data []struct {
		TraceID   string                   `json:"traceID"`
		Spans     []jaegerSpan             `json:"spans"`
		Processes map[string]jaegerProcess `json:"processes"`
	} `json:"data"`
}

type jaegerProcess struct {
	ServiceName string `json:"serviceName"`
}

type jaegerSpan struct {
	SpanID        string `json:"spanID"`
	OperationName string `json:"operationName"`
	References    []struct {
		RefType string `json:"refType"`
		SpanID  string `json:"spanID"`
	} `json:"references"`
	StartTime int64 `json:"startTime"` // microseconds
	Duration  int64 `json:"duration"`
	Tags      []struct {
		Key   string `json:"key"`
		Value any    `json:"value"`
	} `json:"tags"`
	ProcessID string `json:"processID"`
}

// ask asks the query API; nothing is found as long as it says so.
func (j *jaeger) ask(t *testing.T, path string) (answer jaegerTraces) {
	t.Helper()
	response, err := http.Get("http://" + j.query + path)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotFound {
		return answer
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("jaeger answers %s to %s", response.Status, path)
	}
	decoder := json.NewDecoder(response.Body)
	decoder.UseNumber()
	if err := decoder.Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func (j *jaeger) spans(t *testing.T, trace string) (all []otlptest.Span) {
	t.Helper()
	for _, d := range j.ask(t, "/api/traces/"+trace).Data {
		for _, s := range d.Spans {
			out := otlptest.Span{
				Service: d.Processes[s.ProcessID].ServiceName, Name: s.OperationName, Trace: d.TraceID, ID: s.SpanID,
				Kind: "internal", Start: time.UnixMicro(s.StartTime), End: time.UnixMicro(s.StartTime + s.Duration),
				Facts: map[string]string{},
			}
			for _, tag := range s.Tags {
				out.Facts[tag.Key] = fmt.Sprint(tag.Value)
			}
			if kind := out.Facts["span.kind"]; kind != "" {
				out.Kind = kind
			}
			out.Failed, out.Status = out.Facts["error"] == "true", out.Facts["otel.status_description"]
			for _, ref := range s.References {
				if ref.RefType == "CHILD_OF" && out.Parent == "" {
					out.Parent = ref.SpanID
				} else {
					out.Links = append(out.Links, ref.SpanID)
				}
			}
			all = append(all, out)
		}
	}
	return all
}

func (j *jaeger) find(t *testing.T, key, value string) (traces []string) {
	t.Helper()
	tags, err := json.Marshal(map[string]string{key: value})
	if err != nil {
		t.Fatal(err)
	}
	for _, service := range []string{"proofrack-coordinator", "proofrack-worker-synth", "proofrack-worker-gpu"} {
		query := url.Values{"service": {service}, "tags": {string(tags)}, "limit": {"100"}, "lookback": {"1h"}}
		for _, d := range j.ask(t, "/api/traces?"+query.Encode()).Data {
			traces = append(traces, d.TraceID)
		}
	}
	slices.Sort(traces)
	return slices.Compact(traces)
}
