package client

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// Client speaks for one tenant.
type Client struct {
	bus    bus.Bus
	tenant job.Tenant
	pause  time.Duration
	poll   time.Duration
}

// Pauses between attempts to be heard, and between looks at a job whose events are silent.
const (
	retryPause = 500 * time.Millisecond
	pollPause  = 2 * time.Second
)

// New makes a client. The bus stays the caller's.
func New(b bus.Bus, tenant job.Tenant) *Client {
	return &Client{bus: b, tenant: tenant, pause: retryPause, poll: pollPause}
}

// Request asks for a job.
type Request struct {
	// Key makes the request idempotent, also over restarts of the client; "" takes a random one, which makes it so
	// within this call.
	Key string
	// Kind of proof; "" is the proof of replication.
	Kind string
	// Miner is an ID address ("f01000") or the bare number.
	Miner string
	// SectorNumber is nil when the input brings it.
	SectorNumber *uint64
	// Priority is −100 … 100, higher first.
	Priority int
	// Deadline is when the job fails if it has not ended; none when nil.
	Deadline *time.Time
	// Output is job.OutputProof ("" too) or job.OutputPartitions.
	Output string
	// WaitForNode has a job wait that no node of the rack could hold now.
	WaitForNode bool
	// SetupWait is how long Submit waits for a rack that nobody answers for, or whose queues are not made yet; it ends
	// with fault.Transient then. 0 is until its context ends. Of one that works on the request it does not end the wait.
	SetupWait time.Duration
	// Input is the whole input. Or Path or URL says where a coordinator reads it, with SHA256.
	Input             io.Reader
	Path, URL, SHA256 string
	// TraceParent is the W3C trace context of whoever asks, which the job's trace goes on from; "" for none.
	TraceParent string
}

// Submitted is an accepted job.
type Submitted struct {
	Job      job.ID
	Existing bool // it was accepted before
	State    job.State
	Warnings []string
}

// Submit has a job accepted. Refusals are fault.Invalid, NotFound, Conflict or Exhausted; while nobody answers it goes
// on asking, until SetupWait is over or ctx ends.
func (c *Client) Submit(ctx context.Context, r Request) (*Submitted, error) {
	if r.Key == "" {
		id, err := uuid.NewRandom()
		if err != nil {
			return nil, fmt.Errorf("make a key: %w", err)
		}
		r.Key = "once-" + id.String()
	}
	body := &wire.Submit{
		Tenant: c.tenant, Key: r.Key, Kind: r.Kind, Miner: r.Miner, SectorNumber: r.SectorNumber, Priority: r.Priority,
		Deadline: r.Deadline, Output: r.Output, WaitForNode: r.WaitForNode, Path: r.Path, URL: r.URL, SHA256: r.SHA256,
		TraceParent: r.TraceParent,
	}
	if r.Input != nil {
		remove, err := c.attach(ctx, body, r.Input, r.SetupWait)
		if err != nil {
			return nil, err
		}
		defer remove()
	}
	var reply wire.SubmitReply
	asking := asking{
		bus: c.bus, subject: wire.ClientSubject(wire.VerbSubmit, c.tenant), pause: c.pause, absence: r.SetupWait,
	}
	if trace, err := telemetry.ParseTrace(r.TraceParent); err == nil {
		asking.header = trace.Header()
	}
	err := asking.ask(ctx, body, &reply)
	switch {
	case err != nil && asking.nobody:
		return nil, notSetUp(err)
	case err != nil:
		return nil, err
	}
	return &Submitted{Job: reply.Job, Existing: reply.Existing, State: reply.State, Warnings: reply.Warnings}, nil
}

// Status is a job's record, with what is known of its running partitions.
func (c *Client) Status(ctx context.Context, id job.ID) (*wire.StatusReply, error) {
	var reply wire.StatusReply
	if err := c.ask(ctx, wire.VerbStatus, &wire.JobRequest{Job: id}, &reply); err != nil {
		return nil, err
	}
	if reply.Record == nil {
		return nil, fault.New(fault.Internal, "status of job %s has no record", id)
	}
	return &reply, nil
}

// Wait waits until a job has ended, and gives its last record. See, if not nil, is called with every status that
// differs from the one before. It fails when ctx ends; a job that failed is no error of Wait.
func (c *Client) Wait(ctx context.Context, id job.ID, see func(*wire.StatusReply)) (*job.Record, error) {
	changed := make(chan struct{}, 1)
	stop, err := c.bus.Subscribe(wire.EventSubject(c.tenant, id, "*"), func(bus.Message) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return nil, fmt.Errorf("watch job %s: %w", id, err)
	}
	defer stop()
	for {
		status, err := c.Status(ctx, id)
		if err != nil {
			return nil, err
		}
		if see != nil {
			see(status)
		}
		if status.Record.State.Ended() {
			return status.Record, nil
		}
		select {
		case <-ctx.Done():
			return status.Record, fmt.Errorf("wait for job %s: %w", id, context.Cause(ctx))
		case <-changed:
		case <-time.After(c.poll):
		}
	}
}

// Cancel ends a job. It returns when nothing of it can change anything any more; its bytes may take a moment to go.
func (c *Client) Cancel(ctx context.Context, id job.ID, reason string) error {
	return c.ask(ctx, wire.VerbCancel, &wire.JobRequest{Job: id, Reason: reason}, &wire.StatusReply{})
}

// Jobs lists the tenant's jobs, newest first.
func (c *Client) Jobs(ctx context.Context, request wire.JobsRequest) (*wire.JobsReply, error) {
	var reply wire.JobsReply
	return &reply, c.ask(ctx, wire.VerbJobs, &request, &reply)
}

// Why tells why a job's partitions wait.
func (c *Client) Why(ctx context.Context, id job.ID) (*wire.WhyReply, error) {
	var reply wire.WhyReply
	return &reply, c.ask(ctx, wire.VerbWhy, &wire.JobRequest{Job: id}, &reply)
}

// proofBytesMax bounds a result: every partition's 192 bytes.
const proofBytesMax = job.PartitionsMax * wire.ProofBytes

// Result fetches the proof of a job that is done.
func (c *Client) Result(ctx context.Context, r *job.Record) ([]byte, error) {
	if r.State != job.Done || r.Result == nil {
		if r.Fault != nil {
			return nil, fmt.Errorf("job %s is %s: %w", r.ID, r.State, r.Fault)
		}
		return nil, fault.New(fault.Conflict, "job %s is %s and has no proof", r.ID, r.State)
	}
	objects, err := c.bus.Objects(ctx, wire.ObjectsProofs(c.tenant))
	if err != nil {
		return nil, fmt.Errorf("fetch proof of job %s: %w", r.ID, err)
	}
	reader, _, err := objects.Get(ctx, r.Result.Name, proofBytesMax)
	if err != nil {
		return nil, fmt.Errorf("fetch proof of job %s: %w", r.ID, err)
	}
	proof, err := io.ReadAll(reader)
	if err := errors.Join(err, reader.Close()); err != nil {
		return nil, fmt.Errorf("fetch proof of job %s: %w", r.ID, err)
	}
	if sum := sha256.Sum256(proof); hex.EncodeToString(sum[:]) != r.Result.SHA256 {
		return nil, fault.New(fault.Corrupt, "proof of job %s is not the one that its record names", r.ID)
	}
	return proof, nil
}
