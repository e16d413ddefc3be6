package api

import (
	"context"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// headerKey finds the header of a request.
type headerKey struct{}

// traced has an endpoint's function see the header of a request, for the trace that it belongs to.
func (i *Instance) traced(e bus.Endpoint) bus.Endpoint {
	handle := e.Handle
	e.Handle = func(ctx context.Context, m bus.Message) (bus.Message, error) {
		return handle(context.WithValue(ctx, headerKey{}, m.Header), m)
	}
	return e
}

// accepting is the span of a submission: the root of the rack's part of the job's trace.
type accepting struct {
	tracer *telemetry.Tracer
	span   *telemetry.OpenSpan
	path   *telemetry.Path
}

// trace begins it, below the client's span if there is one, and has the request name it: so does the job's record then.
// A record has a trace also where nothing is sent, for logs and for those who do send theirs.
func (i *Instance) trace(ctx context.Context, tenant job.Tenant, q *wire.Submit) *accepting {
	header, _ := ctx.Value(headerKey{}).(map[string]string)
	var parent telemetry.TraceContext
	if i.Carrier != nil {
		parent = i.Carrier.Find(header, q.TraceParent)
	}
	now := time.Now()
	a := &accepting{tracer: i.Tracer, span: i.Tracer.Open(&telemetry.Span{
		Name: telemetry.SpanAccept, Kind: telemetry.Server, Parent: parent, Start: now,
	})}
	a.span.About(telemetry.String(telemetry.KeyTenant, tenant), telemetry.String(telemetry.KeyMinerID, q.Miner))
	q.TraceParent = a.span.Context().String()
	a.path = i.Tracer.Path(a.span.Context(), now, telemetry.String(telemetry.KeyTenant, tenant))
	return a
}

// end ends it with the answer.
func (a *accepting) end(reply *wire.SubmitReply) {
	err := reply.Err()
	if reply.Job != "" { // which may be another one than was made ready: one of the same key
		a.path.About(telemetry.String(telemetry.KeyJobID, reply.Job), telemetry.String(telemetry.KeyState, reply.State))
	}
	a.path.End(err)
	a.span.About(a.path.Facts()...)
	a.span.End(time.Now(), err)
}
