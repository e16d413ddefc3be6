package otlptest

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Span is one that was received.
type Span struct {
	Service, Name     string
	Trace, ID, Parent string // hex, "" for none
	Kind              string // internal, server, client, producer, consumer
	Start, End        time.Time
	Facts             map[string]string
	Links             []string // ids of spans
	Failed            bool
	Status            string
	Calls             int // the call that brought it, counted from 1
}

// Receiver is a running collector.
type Receiver struct {
	// URL is where it takes OTLP by HTTP, GRPC the host:port by gRPC.
	URL, GRPC string

	collector.UnimplementedTraceServiceServer

	mu      sync.Mutex
	spans   []Span
	calls   int
	changed chan struct{}
	refuse  error
	silent  chan struct{} // calls wait for it, nil for none
}

// Start runs a collector on loopback until the test ends.
func Start(t testing.TB) *Receiver {
	t.Helper()
	r := &Receiver{changed: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/traces", r.serveHTTP)
	web := &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	forHTTP, forGRPC := listen(t), listen(t)
	r.URL, r.GRPC = "http://"+forHTTP.Addr().String(), forGRPC.Addr().String()
	remote := grpc.NewServer(grpc.MaxRecvMsgSize(64 << 20))
	collector.RegisterTraceServiceServer(remote, r)
	var running sync.WaitGroup
	running.Go(func() { _ = web.Serve(forHTTP) })
	running.Go(func() { _ = remote.Serve(forGRPC) })
	t.Cleanup(func() {
		r.Speak()
		_ = web.Close()
		remote.Stop()
		running.Wait()
	})
	return r
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Refuse has all calls fail with an error; nil has them succeed.
func (r *Receiver) Refuse(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = err
}

// Silence has calls wait for an answer that does not come until Speak (R12).
func (r *Receiver) Silence() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.silent = make(chan struct{})
}

// Speak ends a silence.
func (r *Receiver) Speak() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.silent != nil {
		close(r.silent)
		r.silent = nil
	}
}

// Export implements the gRPC service.
func (r *Receiver) Export(
	ctx context.Context, q *collector.ExportTraceServiceRequest,
) (*collector.ExportTraceServiceResponse, error) {
	if err := r.take(ctx, q); err != nil {
		return nil, err
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

func (r *Receiver) serveHTTP(w http.ResponseWriter, h *http.Request) {
	data, err := io.ReadAll(h.Body)
	q := &collector.ExportTraceServiceRequest{}
	if err == nil {
		err = proto.Unmarshal(data, q)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := r.take(h.Context(), q); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (r *Receiver) take(ctx context.Context, q *collector.ExportTraceServiceRequest) error {
	r.mu.Lock()
	r.calls++
	call, refuse, silent := r.calls, r.refuse, r.silent
	close(r.changed)
	r.changed = make(chan struct{})
	r.mu.Unlock()
	if silent != nil {
		select {
		case <-silent:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if refuse != nil {
		return refuse
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rs := range q.GetResourceSpans() {
		service := facts(rs.GetResource().GetAttributes())["service.name"]
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				r.spans = append(r.spans, spanOf(service, call, s))
			}
		}
	}
	close(r.changed)
	r.changed = make(chan struct{})
	return nil
}

func spanOf(service string, call int, s *tracepb.Span) Span {
	kinds := map[tracepb.Span_SpanKind]string{
		tracepb.Span_SPAN_KIND_INTERNAL: "internal", tracepb.Span_SPAN_KIND_SERVER: "server",
		tracepb.Span_SPAN_KIND_CLIENT: "client", tracepb.Span_SPAN_KIND_PRODUCER: "producer",
		tracepb.Span_SPAN_KIND_CONSUMER: "consumer",
	}
	out := Span{
		Service: service, Name: s.GetName(), Trace: hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()),
		Parent: hex.EncodeToString(s.GetParentSpanId()), Kind: kinds[s.GetKind()],
		Start: time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano())),
		Facts: facts(s.GetAttributes()), Failed: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR,
		Status: s.GetStatus().GetMessage(), Calls: call,
	}
	for _, l := range s.GetLinks() {
		out.Links = append(out.Links, hex.EncodeToString(l.GetSpanId()))
	}
	return out
}

func facts(all []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range all {
		switch v := kv.GetValue().GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[kv.GetKey()] = v.StringValue
		case *common.AnyValue_IntValue:
			out[kv.GetKey()] = fmt.Sprint(v.IntValue)
		case *common.AnyValue_DoubleValue:
			out[kv.GetKey()] = fmt.Sprint(v.DoubleValue)
		case *common.AnyValue_BoolValue:
			out[kv.GetKey()] = fmt.Sprint(v.BoolValue)
		}
	}
	return out
}

// Spans are those received so far, in the order of their coming.
func (r *Receiver) Spans() []Span {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spans)
}

// Calls counts calls, those that failed too.
func (r *Receiver) Calls() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls
}

// patience is how long Until waits.
const patience = time.Minute

// Until waits until a condition of the spans and calls holds.
func (r *Receiver) Until(t testing.TB, what string, holds func(spans []Span, calls int) bool) []Span {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		r.mu.Lock()
		spans, calls, changed := slices.Clone(r.spans), r.calls, r.changed
		r.mu.Unlock()
		if holds(spans, calls) {
			return spans
		}
		select {
		case <-changed:
		case <-timer.C:
			t.Fatalf("not within %s: %s; %d spans in %d calls", patience, what, len(spans), calls)
		}
	}
}
