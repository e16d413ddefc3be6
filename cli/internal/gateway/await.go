package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// errTimeUp ends a wait that its client bounded.
var errTimeUp = fault.New(fault.Transient, "the time of the wait is up")

// await waits until a job of the rack has ended, for some time or (0) as long as ctx. It survives everything that the
// rack survives.
func (e *engine) await(ctx context.Context, id job.ID, within time.Duration) (*cuzkv1.AwaitProofResponse, error) {
	ctx, stop := e.untilLeaving(ctx)
	defer stop()
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, within, errTimeUp)
		defer cancel()
	}
	record, err := e.follow(ctx, id)
	if err == nil {
		callOf(ctx).link(record.TraceParent)
		return e.ended(ctx, record)
	}
	cause := context.Cause(ctx)
	switch {
	case errors.Is(cause, errTimeUp):
		return &cuzkv1.AwaitProofResponse{
			JobId: string(id), Status: cuzkv1.AwaitProofResponse_TIMEOUT,
			ErrorMessage: fmt.Sprintf("the job has not ended within %s; it goes on", within),
		}, nil
	case cause != nil:
		return nil, rpcError(cause)
	}
	return nil, rpcError(err)
}

// follow waits for a job's end and asks again while the rack is away.
func (e *engine) follow(ctx context.Context, id job.ID) (*job.Record, error) {
	c, err := e.rack.wait(ctx)
	if err != nil {
		return nil, err
	}
	for {
		record, err := c.Wait(ctx, id, nil)
		if err == nil || fault.KindOf(err) != fault.Transient || ctx.Err() != nil {
			return record, err
		}
		timer := time.NewTimer(askPause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, err
		}
	}
}

// untilLeaving gives a context that also ends when the program hands back what it has.
func (e *engine) untilLeaving(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(e.leaving, func() { cancel(errLeaving()) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// ended is the answer about a job that has ended.
func (e *engine) ended(ctx context.Context, r *job.Record) (*cuzkv1.AwaitProofResponse, error) {
	out := &cuzkv1.AwaitProofResponse{JobId: string(r.ID), Status: cuzkv1.AwaitProofResponse_FAILED}
	times(out, r)
	if r.Fault != nil {
		out.ErrorMessage = r.Fault.Message
	}
	switch r.State {
	case job.Done:
		proof, err := e.proofOf(ctx, r)
		if err != nil {
			return nil, rpcError(err)
		}
		out.Status, out.Proof, out.ErrorMessage = cuzkv1.AwaitProofResponse_COMPLETED, proof, ""
	case job.Cancelled:
		out.Status = cuzkv1.AwaitProofResponse_CANCELLED
	case job.Failed, job.Active, job.Cancelling:
	}
	return out, nil
}

// proofOf is a finished job's proof: what its record holds, if that is what the result is to be, else the result.
func (e *engine) proofOf(ctx context.Context, r *job.Record) ([]byte, error) {
	var proof []byte
	for i := range r.Partitions {
		proof = append(proof, r.Partitions[i].Proof...)
	}
	if sum := sha256.Sum256(proof); r.Result != nil && hex.EncodeToString(sum[:]) == r.Result.SHA256 &&
		len(proof) == len(r.Partitions)*wire.ProofBytes {
		return proof, nil
	}
	c, err := e.rack.wait(ctx)
	if err != nil {
		return nil, err
	}
	return c.Result(ctx, r)
}

// times tells how long a job took, by what its record has.
func times(out *cuzkv1.AwaitProofResponse, r *job.Record) {
	var first time.Time
	var synthesis, device float64
	for i := range r.Partitions {
		for k := range r.Partitions[i].Attempts {
			a := &r.Partitions[i].Attempts[k]
			if first.IsZero() || a.StartedAt.Before(first) {
				first = a.StartedAt
			}
			if a.Outcome == job.OutcomeOK {
				synthesis += a.Seconds["synthesis"]
				device += a.Seconds["start"]
			}
		}
	}
	if !first.IsZero() {
		out.QueueWaitMs = milliseconds(first.Sub(r.SubmittedAt).Seconds())
	}
	out.SynthesisMs, out.GpuComputeMs = milliseconds(synthesis), milliseconds(device)
	if r.EndedAt != nil {
		out.TotalMs = milliseconds(r.EndedAt.Sub(r.SubmittedAt).Seconds())
	}
}

// milliseconds of a time that clocks of several hosts gave: never below 0.
func milliseconds(seconds float64) uint64 { return uint64(math.Round(max(0, seconds) * 1000)) }

// cancel ends a job of the rack, and tells whether something of it was at work.
func (e *engine) cancel(ctx context.Context, id job.ID) (wasRunning bool, err error) {
	ctx, stop := context.WithTimeout(ctx, e.config.Gateway.AnswerMax)
	defer stop()
	c, err := e.rack.wait(ctx)
	if err != nil {
		return false, err
	}
	before, err := c.Status(ctx, id)
	if err != nil {
		return false, err
	}
	if before.Record.State.Ended() {
		return false, nil
	}
	err = c.Cancel(ctx, id, "cancelled by a client of the gateway")
	if fault.KindOf(err) == fault.Conflict { // it ended meanwhile
		return false, nil
	}
	return before.Record.State == job.Active && atWork(before.Record), err
}

// atWork tells whether any partition was begun.
func atWork(r *job.Record) bool {
	for i := range r.Partitions {
		if r.Partitions[i].Stage != job.Waiting {
			return true
		}
	}
	return false
}

// queue is what the rack has of the tenant's jobs that have not ended: those of which nothing was begun, and others.
func queue(ctx context.Context, c *client.Client) (pending, running uint32, err error) {
	request := wire.JobsRequest{State: job.Active, Limit: wire.JobsPageMax}
	for range queuePagesMax {
		page, err := c.Jobs(ctx, request)
		if err != nil {
			return 0, 0, err
		}
		for i := range page.Jobs {
			if page.Jobs[i].Waiting == page.Jobs[i].Partitions {
				pending++
			} else {
				running++
			}
			request.Before = page.Jobs[i].ID
		}
		if !page.More || len(page.Jobs) == 0 {
			return pending, running, nil
		}
	}
	return 0, 0, fault.New(fault.Exhausted, "the tenant has more than %d jobs", queuePagesMax*wire.JobsPageMax)
}

// queuePagesMax bounds what is counted: more than any tenant may have.
const queuePagesMax = 100

// badJobID answers names that no job has.
func badJobID(id string) error {
	return status.Errorf(codes.NotFound, "job_id: no job is named %.80q", id)
}
