package gateway

import (
	"context"
	"net/http"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// Keys of spans of calls, as OpenTelemetry's semantic conventions have them (v1.43, of status Development).
const (
	keyRPCSystem = "rpc.system.name"
	keyRPCMethod = "rpc.method"
	keyRPCStatus = "rpc.response.status_code"
)

// Names of spans that are the gateway's own, beside those of calls.
const (
	spanWaitUnread = "wait for turn" // until the request is read
	spanUnknown    = "unknown call"
)

// traces makes the spans of calls: at most five for each, whatever it does. A client's traceparent is gone on from.
type traces struct {
	tracer  *telemetry.Tracer // nil: contexts are passed on, no spans are made
	carrier *telemetry.Carrier
	methods map[string]bool
}

// brokenEvery is the least time between two lines about broken contexts of clients.
const brokenEvery = time.Minute

func newTraces(config *Config) *traces {
	t := &traces{
		tracer: config.Tracer, carrier: telemetry.NewCarrier(config.Log, brokenEvery), methods: map[string]bool{},
	}
	for _, m := range cuzkv1.ProvingEngine_ServiceDesc.Methods {
		t.methods["/"+cuzkv1.ProvingEngine_ServiceDesc.ServiceName+"/"+m.MethodName] = true
	}
	return t
}

// tracedCall is a span that stands for a call, or for a part of it.
type tracedCall struct {
	traces *traces
	span   *telemetry.OpenSpan
	parent telemetry.TraceContext // that goes on from here: the span's, or without spans what the client sent
}

type callKey struct{}

// open begins the span of a call that has come in.
func (t *traces) open(r *http.Request) (context.Context, *tracedCall) {
	header := map[string]string{}
	if text := r.Header.Get(telemetry.TraceHeader); text != "" {
		header[telemetry.TraceHeader] = text
	}
	from := t.carrier.Find(header, "")
	name := spanUnknown
	if t.methods[r.URL.Path] {
		name = r.URL.Path[1:]
	}
	c := t.part(&telemetry.Span{
		Name: name, Kind: telemetry.Server, Parent: from, Start: time.Now(), Facts: rpcFacts(name),
	})
	return context.WithValue(r.Context(), callKey{}, c), c
}

func rpcFacts(method string) []telemetry.Fact {
	return []telemetry.Fact{telemetry.String(keyRPCSystem, "grpc"), telemetry.String(keyRPCMethod, method)}
}

func (t *traces) part(s *telemetry.Span) *tracedCall {
	c := &tracedCall{traces: t, parent: s.Parent}
	if t.tracer == nil {
		return c
	}
	c.span = t.tracer.Open(s)
	c.span.About(s.Facts...)
	c.parent = c.span.Context()
	return c
}

// callOf is the call that a context is of; nil outside of one.
func callOf(ctx context.Context) *tracedCall {
	c, _ := ctx.Value(callKey{}).(*tracedCall) //nolint:errcheck // nil then
	return c
}

// begin begins a part of a call.
func (c *tracedCall) begin(name string, kind telemetry.Kind, facts ...telemetry.Fact) *tracedCall {
	if c == nil {
		return nil
	}
	return c.traces.part(&telemetry.Span{Name: name, Kind: kind, Parent: c.parent, Start: time.Now(), Facts: facts})
}

// context names the span for what goes on from it; "" for none.
func (c *tracedCall) context() string {
	if c == nil {
		return ""
	}
	return c.parent.String()
}

func (c *tracedCall) about(facts ...telemetry.Fact) {
	if c != nil {
		c.span.About(facts...)
	}
}

// link adds another span that it belongs to: of a job whose trace began elsewhere.
func (c *tracedCall) link(to string) {
	if c == nil {
		return
	}
	if other, err := telemetry.ParseTrace(to); err == nil && other.TraceID != c.parent.TraceID {
		c.span.Link(other)
	}
}

// end ends it; a second call does nothing.
func (c *tracedCall) end(err error) {
	if c != nil {
		c.span.End(time.Now(), err)
	}
}

// answering ends the span of a call with how that ended.
func answering(
	ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler,
) (answer any, err error) {
	answer, err = handle(ctx, request)
	callOf(ctx).answered(err)
	return answer, err
}

// answered ends it. What a client did wrong, or that it went away, is no error of the gateway's.
func (c *tracedCall) answered(err error) {
	code := status.Code(err)
	c.about(telemetry.String(keyRPCStatus, code.String()))
	switch code {
	case codes.Unknown, codes.Internal, codes.Unavailable, codes.Unimplemented, codes.DataLoss, codes.DeadlineExceeded,
		codes.ResourceExhausted:
	default:
		err = nil
	}
	c.end(err)
}

// outgoing passes a part's context on to another server.
func (c *tracedCall) outgoing(ctx context.Context) context.Context {
	if text := c.context(); text != "" {
		return metadata.AppendToOutgoingContext(ctx, telemetry.TraceHeader, text)
	}
	return ctx
}
