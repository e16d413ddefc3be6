package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/metadata"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/telemetry/otlptest"
)

// traced has a gateway send its spans to a collector.
func traced(t *testing.T) (*otlptest.Receiver, func(*Config)) {
	t.Helper()
	collector := otlptest.Start(t)
	config := telemetry.DefaultTraceConfig()
	config.Endpoint = collector.URL
	tracer, err := telemetry.OpenTracer(t.Context(), config, telemetry.Program{Name: "gateway"}, zerolog.Nop())
	check(t, err)
	t.Cleanup(tracer.Close)
	return collector, func(c *Config) { c.Tracer = tracer }
}

// named are the spans of a name.
func named(spans []otlptest.Span, name string) []otlptest.Span {
	return slices.DeleteFunc(slices.Clone(spans), func(s otlptest.Span) bool { return s.Name != name })
}

const (
	submitMethod = "cuzk.v1.ProvingEngine/SubmitProof"
	proveMethod  = "cuzk.v1.ProvingEngine/Prove"
	awaitMethod  = "cuzk.v1.ProvingEngine/AwaitProof"
)

// A client's traceparent is gone on from: its call, the parts of that, and the job in the rack are one trace.
func TestTraceOfAClientGoesOnThroughTheGatewayIntoTheRack(t *testing.T) {
	t.Parallel()
	collector, config := traced(t)
	g := start(t, config)
	mine := telemetry.NewTrace()
	ctx := metadata.AppendToOutgoingContext(g.ctx(), "traceparent", mine.String())
	out, err := g.client.SubmitProof(ctx, request(t, "a", "2KiB-v1_1"))
	check(t, err)
	var call otlptest.Span
	spans := collector.Until(t, "the call", func(spans []otlptest.Span, _ int) bool {
		calls := named(spans, submitMethod)
		if len(calls) > 0 {
			call = calls[0]
		}
		return len(calls) > 0
	})
	if call.Trace != fmt.Sprintf("%x", mine.TraceID) || call.Parent != fmt.Sprintf("%x", mine.SpanID) ||
		call.Kind != "server" || call.Facts["rpc.response.status_code"] != "OK" || call.Facts["c2.job.id"] != out.JobId {
		t.Errorf("the call is %+v", call)
	}
	submitted := ""
	for _, name := range []string{"wait for turn", "check input", "submit job"} {
		parts := named(spans, name)
		if len(parts) != 1 || parts[0].Parent != call.ID || parts[0].Trace != call.Trace {
			t.Errorf("%s: %+v", name, parts)
			continue
		}
		submitted = parts[0].ID
	}
	g.rack.mu.Lock()
	parent := g.rack.jobs[g.rack.order[0]].TraceParent
	g.rack.mu.Unlock()
	if !strings.Contains(parent, call.Trace) || !strings.Contains(parent, submitted) {
		t.Errorf("the job goes on from %q", parent)
	}
	if len(spans) > 4 {
		t.Errorf("%d spans of one call", len(spans))
	}
}

// A call about a job of another trace is linked to it. Bad requests and unknown calls have a span, too.
func TestCallsAboutAJobAreLinkedToItsTrace(t *testing.T) {
	t.Parallel()
	collector, config := traced(t)
	g := start(t, config)
	out, err := g.client.SubmitProof(g.ctx(), request(t, "a", "2KiB-v1_1"))
	check(t, err)
	g.rack.end(g.rack.accepted(1), job.Done, nil)
	_, err = g.client.AwaitProof(g.ctx(), &cuzkv1.AwaitProofRequest{JobId: out.JobId})
	check(t, err)
	bad := request(t, "b", "2KiB-v1_1")
	bad.SectorSize = 7
	if _, err := g.client.SubmitProof(g.ctx(), bad); err == nil {
		t.Error("a bad request is taken")
	}
	if err := g.conn.Invoke(g.ctx(), "/x/"+strings.Repeat("y", 99), &cuzkv1.GetStatusRequest{},
		&cuzkv1.GetStatusResponse{}); err == nil {
		t.Error("an unknown call is answered")
	}
	spans := collector.Until(t, "all calls", func(spans []otlptest.Span, _ int) bool {
		return len(named(spans, submitMethod)) == 2 && len(named(spans, awaitMethod)) == 1 &&
			len(named(spans, "unknown call")) == 1
	})
	first := named(spans, "submit job")[0]
	if wait := named(spans, awaitMethod)[0]; !slices.Contains(wait.Links, first.ID) || wait.Trace == first.Trace {
		t.Errorf("the wait is not linked to %s: %+v", first.ID, wait)
	}
	refused := named(spans, submitMethod)[1]
	if refused.Facts["rpc.response.status_code"] != "InvalidArgument" || refused.Failed {
		t.Errorf("the refusal is %+v", refused)
	}
}

// What is forwarded carries the trace on.
func TestForwardedCallsCarryTheTrace(t *testing.T) {
	t.Parallel()
	collector, config := traced(t)
	u := newUpstream(t)
	g := start(t, func(c *Config) {
		config(c)
		c.Forward.To = u.address
	})
	_, err := g.client.Prove(g.ctx(), &cuzkv1.ProveRequest{Submit: &cuzkv1.SubmitProofRequest{
		ProofKind: cuzkv1.ProofKind_WINNING_POST, RequestId: "w",
	}})
	check(t, err)
	spans := collector.Until(t, "both sides", func(spans []otlptest.Span, _ int) bool {
		return len(named(spans, proveMethod)) == 2
	})
	both := named(spans, proveMethod)
	slices.SortFunc(both, func(a, b otlptest.Span) int { return strings.Compare(b.Kind, a.Kind) })
	if both[0].Kind != "server" || both[1].Kind != "client" || both[1].Parent != both[0].ID {
		t.Errorf("spans %+v", both)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if want := fmt.Sprintf("00-%s-%s-", both[1].Trace, both[1].ID); !strings.HasPrefix(u.traceParent, want) {
		t.Errorf("the upstream got %q, want %s…", u.traceParent, want)
	}
}

// Without a collector the gateway makes no trace up, and passes on what a client sends; a broken context is logged.
func TestWithoutACollectorAClientsTraceIsPassedOn(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	mine := telemetry.NewTrace()
	for i, parent := range []string{"", mine.String(), "00-nonsense"} {
		ctx := g.ctx()
		if parent != "" {
			ctx = metadata.AppendToOutgoingContext(ctx, "traceparent", parent)
		}
		_, err := g.client.SubmitProof(ctx, request(t, fmt.Sprint(i), "2KiB-v1_1"))
		check(t, err)
	}
	g.rack.mu.Lock()
	defer g.rack.mu.Unlock()
	for i, want := range []string{"", mine.String(), ""} {
		if got := g.rack.jobs[g.rack.order[i]].TraceParent; got != want {
			t.Errorf("job %d goes on from %q, want %q", i, got, want)
		}
	}
	if !strings.Contains(g.log.String(), "broken trace context replaced") {
		t.Error("the broken context is not logged")
	}
}
