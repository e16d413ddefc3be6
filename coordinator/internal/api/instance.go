package api

import (
	"context"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/intake"
	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// Version is of the services, as the micro protocol wants it.
const Version = "1.0.0"

// PointAsked is the test hook at which an instance has a request for a job's status in its hands.
const PointAsked = "coordinator.asked"

// Instance is what every coordinator serves.
type Instance struct {
	Store  *store.Store
	Nodes  *rack.Registry
	Intake *intake.Intake
	// RequestsMax is how many requests of a kind are in hand at a time; 0 is bus.ConcurrentMaxDefault.
	RequestsMax int
	Hooks       *hook.Points // nil: none
	// Tracer makes spans, Carrier takes trace contexts out of requests; nil makes and takes none.
	Tracer  *telemetry.Tracer
	Carrier *telemetry.Carrier
}

// Service gives the endpoints.
func (i *Instance) Service() bus.Service {
	return bus.Service{
		Name: "c2", Version: Version, Description: "submit jobs and ask about them",
		ConcurrentMax: max(i.RequestsMax, bus.ConcurrentMaxDefault),
		Endpoints: []bus.Endpoint{
			i.traced(endpoint("submit", "c2."+wire.VerbSubmit+".*", i.submit)),
			endpoint("status", "c2."+wire.VerbStatus+".*", i.status),
			endpoint("jobs", "c2."+wire.VerbJobs+".*", i.jobs),
			endpoint("admin-jobs", wire.AdminSubject(wire.AdminJobs), i.allJobs),
			endpoint("admin-audit", wire.AdminSubject(wire.AdminAudit), i.audit),
		},
	}
}

func (i *Instance) submit(ctx context.Context, subject string, q *wire.Submit) (*wire.SubmitReply, error) {
	tenant, err := tenantOf(subject)
	if err != nil {
		return nil, err
	}
	accept := i.trace(ctx, tenant, q)
	reply := i.Intake.Submit(telemetry.WithPath(ctx, accept.path), tenant, q)
	accept.end(reply)
	return reply, nil
}

func (i *Instance) status(ctx context.Context, subject string, q *wire.JobRequest) (*wire.StatusReply, error) {
	i.Hooks.Hit(ctx, PointAsked)
	tenant, err := tenantOf(subject)
	if err != nil {
		return nil, err
	}
	j, err := find(ctx, i.Store, tenant, q.Job)
	if err != nil {
		return nil, err
	}
	reply := &wire.StatusReply{Record: j.Record}
	for p := range j.Record.Partitions {
		if !j.Record.Partitions[p].Stage.Running() {
			continue
		}
		if live, ok := i.Nodes.Live(j.Record.Partitions[p].Node, j.Record.Attempt(p)); ok {
			reply.Live = append(reply.Live, wire.Live{Partition: p, BeatAt: live.MovedAt, Progress: live.Progress})
		}
	}
	return reply, nil
}

func (i *Instance) jobs(_ context.Context, subject string, q *wire.JobsRequest) (*wire.JobsReply, error) {
	tenant, err := tenantOf(subject)
	if err != nil {
		return nil, err
	}
	return i.list(tenant, q), nil
}

func (i *Instance) allJobs(_ context.Context, _ string, q *wire.JobsRequest) (*wire.JobsReply, error) {
	return i.list("", q), nil
}

// jobsPageDefault is the length of a page when none is asked for.
const jobsPageDefault = 100

// pageBytesMax keeps a page well below what a message carries.
const pageBytesMax = wire.BodyBytesMax / 2

func (i *Instance) list(tenant job.Tenant, q *wire.JobsRequest) *wire.JobsReply {
	limit := q.Limit
	if limit == 0 {
		limit = jobsPageDefault
	}
	jobs, more := i.Store.List(store.Query{Tenant: tenant, State: q.State, Before: q.Before, Limit: limit})
	reply := &wire.JobsReply{Jobs: []wire.JobSummary{}, More: more}
	bytes := 0
	for k, j := range jobs {
		s := summary(j.Record)
		if bytes += size(s); bytes > pageBytesMax && k > 0 {
			reply.More = true
			break
		}
		reply.Jobs = append(reply.Jobs, s)
	}
	return reply
}

func summary(r *job.Record) wire.JobSummary {
	waiting := 0
	for i := range r.Partitions {
		if r.Partitions[i].Stage == job.Waiting {
			waiting++
		}
	}
	return wire.JobSummary{
		ID: r.ID, Tenant: r.Tenant, Key: r.Key, Circuit: r.Circuit, Miner: r.Miner, SectorNumber: r.SectorNumber,
		State: r.State, Verified: r.VerifiedCount(), Partitions: len(r.Partitions), Waiting: waiting,
		Priority: r.Priority, SubmittedAt: r.SubmittedAt, EndedAt: r.EndedAt, Fault: r.Fault,
	}
}

func (i *Instance) audit(ctx context.Context, _ string, q *wire.AuditRequest) (*wire.AuditReply, error) {
	limit, since := q.Limit, time.Time{}
	if limit == 0 {
		limit = jobsPageDefault
	}
	if q.Since != nil {
		since = *q.Since
	}
	records, next, err := i.Store.Audits(ctx, q.After, since, limit)
	if err != nil {
		return nil, err
	}
	reply := &wire.AuditReply{Records: []wire.Audit{}, More: next != "", Next: next}
	bytes := 0
	for k, a := range records {
		if bytes += size(a); bytes > pageBytesMax && k > 0 {
			reply.More, reply.Next = true, records[k-1].Job
			break
		}
		reply.Records = append(reply.Records, a)
	}
	return reply, nil
}
