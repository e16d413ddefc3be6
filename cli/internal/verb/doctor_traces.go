package verb

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/proofrack/proofrack/shared/telemetry"
)

// doctorTraces are doctor's flags for the collector of traces.
type doctorTraces struct{ endpoint, protocol, query string }

func (d *doctorTraces) register(f *pflag.FlagSet) {
	f.StringVar(&d.endpoint, "traces", "", "collector of traces, http://host:port (OTEL_EXPORTER_OTLP_ENDPOINT)")
	f.StringVar(&d.protocol, "traces-protocol", "", "its protocol: http/protobuf or grpc (OTEL_EXPORTER_OTLP_PROTOCOL)")
	f.StringVar(&d.query, "traces-query", "", "where Jaeger is asked for the test span, http://host:16686")
}

// tracesWithin is how long the collector may take, and how long its store may.
const tracesWithin = 5 * time.Second

// traces sends a test span, and looks whether it is found (B95).
func (r *doctorResult) traces(ctx context.Context, flags *doctorTraces) {
	const name = "traces"
	config := telemetry.DefaultTraceConfig()
	config.Endpoint, config.Protocol, config.FlushWithin = flags.endpoint, flags.protocol, tracesWithin
	if err := config.Validate(); err != nil {
		r.broken(verdictFix, name, err, "write http://host:port")
		return
	}
	endpoint, trace, err := telemetry.Probe(ctx, config, telemetry.Program{Name: "proofrack-doctor", Build: buildOf()})
	switch {
	case err != nil:
		r.broken(verdictFix, name, err, "start the collector, or name its address and protocol")
	case endpoint == "":
		r.add(verdictInfo, name, "", "not looked at: no collector is named")
	case flags.query == "":
		r.add(verdictOK, name, "", "%s has accepted a test span, trace %s", endpoint, trace)
	case r.finds(ctx, strings.TrimRight(flags.query, "/")+"/api/traces/"+trace):
		r.add(verdictOK, name, "", "%s has accepted a test span, and it is found: trace %s", endpoint, trace)
	default:
		r.add(verdictFix, name, "look at the collector's own exporters, and whether both addresses are of one store",
			"%s has accepted a test span, but it is not found at %s: trace %s", endpoint, flags.query, trace)
	}
}

// finds asks until a trace is there, for a while.
func (r *doctorResult) finds(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, tracesWithin)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return true
			}
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(connectPause):
		}
	}
}
