package telemetry

import (
	"errors"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
)

// Protocols of a collector.
const (
	ProtocolHTTP = "http/protobuf"
	ProtocolGRPC = "grpc"
)

// TraceConfig says where spans go. What it leaves empty is taken from the standard OTEL_* variables, which also say how
// traces are sampled (OTEL_TRACES_SAMPLER), what is sent along (OTEL_EXPORTER_OTLP_HEADERS) and how certificates are
// checked.
type TraceConfig struct {
	Endpoint    string        `doc:"OTLP collector, http://host:port; empty takes OTEL_EXPORTER_OTLP_ENDPOINT, else none."`
	Protocol    string        `doc:"http/protobuf or grpc; empty takes OTEL_EXPORTER_OTLP_PROTOCOL, else http/protobuf."`
	QueueMax    int           `doc:"Spans that may wait for the collector; further ones are dropped, counted and told."`
	FlushWithin time.Duration `doc:"How long the end of the program waits for the collector."`
}

// Bounds of TraceConfig.
const (
	queueMin, queueMax = 64, 1 << 20
	flushMax           = time.Minute
)

// DefaultTraceConfig has no traces unless the environment names a collector.
func DefaultTraceConfig() TraceConfig {
	return TraceConfig{QueueMax: 8192, FlushWithin: 2 * time.Second}
}

// Validate reports all problems at once.
func (c *TraceConfig) Validate() error {
	var errs []error
	if c.Endpoint != "" {
		if _, err := parseEndpoint(c.Endpoint); err != nil {
			errs = append(errs, fault.New(fault.Invalid, "endpoint: %w", err))
		}
	}
	switch c.Protocol {
	case "", ProtocolHTTP, ProtocolGRPC:
	default:
		errs = append(errs, fault.New(fault.Invalid, "protocol: %q is neither %s nor %s", c.Protocol, ProtocolHTTP,
			ProtocolGRPC))
	}
	if c.QueueMax < queueMin || c.QueueMax > queueMax {
		errs = append(errs, fault.New(fault.Invalid, "queue_max: must be %d to %d, is %d", queueMin, queueMax, c.QueueMax))
	}
	if c.FlushWithin < 0 || c.FlushWithin > flushMax {
		errs = append(errs, fault.New(fault.Invalid, "flush_within: must be 0s to %s, is %s", flushMax, c.FlushWithin))
	}
	return errors.Join(errs...)
}

// parseEndpoint reads a collector's address: host:port, or a URL of scheme http or https.
func parseEndpoint(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	at, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, fault.As(fault.Invalid, err)
	case at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "":
		return nil, fault.New(fault.Invalid, "%q is not http://host:port", text)
	case at.User != nil || at.RawQuery != "" || at.Fragment != "":
		return nil, fault.New(fault.Invalid, "%q has more than host, port and path", at.Redacted())
	}
	return at, nil
}

// target is a collector.
type target struct {
	url      *url.URL // with the path, for HTTP
	protocol string
}

// tracesPath is where collectors take spans by HTTP.
const tracesPath = "/v1/traces"

// target resolves configuration and environment; nil means that there are no traces.
func (c *TraceConfig) target() (*target, error) {
	t := &target{protocol: first(c.Protocol, env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), env("OTEL_EXPORTER_OTLP_PROTOCOL"),
		ProtocolHTTP)}
	exact := env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
	text := first(c.Endpoint, exact, env("OTEL_EXPORTER_OTLP_ENDPOINT"))
	if text == "" || strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") || env("OTEL_TRACES_EXPORTER") == "none" {
		return nil, nil
	}
	if t.protocol != ProtocolHTTP && t.protocol != ProtocolGRPC {
		return nil, fault.New(fault.Invalid, "OTLP protocol %q is neither %s nor %s", t.protocol, ProtocolHTTP, ProtocolGRPC)
	}
	at, err := parseEndpoint(text)
	if err != nil {
		return nil, err
	}
	path := strings.TrimRight(at.Path, "/")
	if !strings.HasSuffix(path, tracesPath) && (c.Endpoint != "" || exact == "" || path == "") {
		path += tracesPath
	}
	if at.Path = path; t.protocol == ProtocolGRPC {
		at.Path = ""
	}
	t.url = at
	return t, nil
}

func env(name string) string { return strings.TrimSpace(os.Getenv(name)) }

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
