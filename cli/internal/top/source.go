package top

import (
	"context"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// JobsMax is how many jobs are shown at most.
const JobsMax = 200

// Source is the rack that is shown. Every call ends with its context; errors can be classified by fault.KindOf.
type Source interface {
	// Nodes are all nodes, as the leader sees them.
	Nodes(ctx context.Context) (*wire.NodesReply, error)
	// Jobs are the newest jobs of all tenants, JobsMax at most.
	Jobs(ctx context.Context) (*wire.JobsReply, error)
	// Flight is the large buffers of all nodes.
	Flight(ctx context.Context) (*wire.FlightReply, error)
	// Status is a job's record.
	Status(ctx context.Context, tenant job.Tenant, id job.ID) (*wire.StatusReply, error)
	// Why tells why a job waits.
	Why(ctx context.Context, tenant job.Tenant, id job.ID) (*wire.WhyReply, error)
	// Cancel ends a job.
	Cancel(ctx context.Context, tenant job.Tenant, id job.ID) error
	// Drain has a node take no new work, or takes that back.
	Drain(ctx context.Context, node job.Node, undo bool) error
}

// askPause is between tries to reach a rack that doesn't answer.
const askPause = 250 * time.Millisecond

// cancelReason is what the record of a job says that was cancelled here.
const cancelReason = "cancelled by an operator in proofrack top"

// Rack is a source that asks a real rack.
type Rack struct{ bus bus.Bus }

// NewRack makes a source of a connection, which stays the caller's. It must be allowed to ask as an operator, and as a
// tenant for those jobs that are opened or cancelled.
func NewRack(b bus.Bus) *Rack { return &Rack{b} }

// Nodes implements Source.
func (r *Rack) Nodes(ctx context.Context) (*wire.NodesReply, error) {
	return client.Nodes(ctx, r.bus, askPause)
}

// Jobs implements Source.
func (r *Rack) Jobs(ctx context.Context) (*wire.JobsReply, error) {
	var reply wire.JobsReply
	request := &wire.JobsRequest{Limit: JobsMax}
	return &reply, client.Ask(ctx, r.bus, wire.AdminSubject(wire.AdminJobs), request, &reply, askPause)
}

// Flight implements Source.
func (r *Rack) Flight(ctx context.Context) (*wire.FlightReply, error) {
	var reply wire.FlightReply
	return &reply, client.Ask(ctx, r.bus, wire.AdminSubject(wire.AdminFlight), &wire.FlightRequest{}, &reply, askPause)
}

// Status implements Source.
func (r *Rack) Status(ctx context.Context, tenant job.Tenant, id job.ID) (*wire.StatusReply, error) {
	return client.New(r.bus, tenant).Status(ctx, id)
}

// Why implements Source.
func (r *Rack) Why(ctx context.Context, tenant job.Tenant, id job.ID) (*wire.WhyReply, error) {
	return client.New(r.bus, tenant).Why(ctx, id)
}

// Cancel implements Source.
func (r *Rack) Cancel(ctx context.Context, tenant job.Tenant, id job.ID) error {
	return client.New(r.bus, tenant).Cancel(ctx, id, cancelReason)
}

// Drain implements Source.
func (r *Rack) Drain(ctx context.Context, node job.Node, undo bool) error {
	request := &wire.DrainRequest{Node: node, Undo: undo}
	return client.Ask(ctx, r.bus, wire.AdminSubject(wire.AdminDrain), request, &wire.DrainReply{}, askPause)
}
