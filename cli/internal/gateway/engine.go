package gateway

import (
	"context"
	"math"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// engine answers the calls of the protocol.
type engine struct {
	cuzkv1.UnimplementedProvingEngineServer

	config      *Config
	rack        *rack
	submissions *submissions
	upstream    *upstream // nil when nothing is forwarded
	lanes       *lanes
	meters      *meters
	traces      *traces
	begun       time.Time
	leaving     context.Context //nolint:containedctx // it ends when calls are not to wait any longer
}

// route says who proves a kind: the rack (true), or the upstream.
func (e *engine) route(kind cuzkv1.ProofKind) (ours bool, err error) {
	switch {
	case kind == cuzkv1.ProofKind_PROOF_KIND_UNSPECIFIED:
		return false, status.Error(codes.InvalidArgument, "proof_kind: is not given")
	case kind == cuzkv1.ProofKind_POREP_SEAL_COMMIT:
		return true, nil
	case e.upstream == nil:
		return false, status.Errorf(codes.Unimplemented,
			"proof_kind: this gateway proves POREP_SEAL_COMMIT; it has no upstream for %s (forward.to)", kind)
	}
	return false, nil
}

// SubmitProof has the rack, or the upstream, accept a job. It returns when the job is safe there.
func (e *engine) SubmitProof(
	ctx context.Context, r *cuzkv1.SubmitProofRequest,
) (*cuzkv1.SubmitProofResponse, error) {
	e.meters.asked(r.GetProofKind())
	t := takeTurn(ctx)
	ours, err := e.route(r.GetProofKind())
	if err != nil {
		t.end()
		return nil, err
	}
	if !ours {
		out, err := forward(ctx, e.upstream, t, cuzkv1.ProvingEngine_SubmitProof_FullMethodName, r,
			&cuzkv1.SubmitProofResponse{})
		if err != nil {
			return nil, err
		}
		out.JobId = upstreamPrefix + out.GetJobId()
		return out, nil
	}
	id, err := e.submissions.submit(ctx, r, t)
	if err != nil {
		return nil, e.answer(ctx, err)
	}
	return &cuzkv1.SubmitProofResponse{JobId: string(id), QueuePosition: e.position(ctx)}, nil
}

// answer is an error for a client: why its own call ended comes first.
func (e *engine) answer(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return rpcError(err)
}

// position is how many of the tenant's jobs wait, the new one among them; 0 when the rack does not say.
func (e *engine) position(ctx context.Context) uint32 {
	ctx, cancel := context.WithTimeout(ctx, min(time.Second, e.config.Gateway.AnswerMax))
	defer cancel()
	c, err := e.rack.now()
	if err != nil {
		return 0
	}
	pending, _, err := queue(ctx, c)
	if err != nil {
		return 0
	}
	return pending
}

// AwaitProof waits for the end of a job.
func (e *engine) AwaitProof(ctx context.Context, r *cuzkv1.AwaitProofRequest) (*cuzkv1.AwaitProofResponse, error) {
	if name, ok := strings.CutPrefix(r.GetJobId(), upstreamPrefix); ok && e.upstream != nil {
		return e.awaitUpstream(ctx, name, r.GetTimeoutMs())
	}
	id, err := job.ParseID(r.GetJobId())
	if err != nil {
		return nil, badJobID(r.GetJobId())
	}
	callOf(ctx).about(telemetry.String(telemetry.KeyJobID, id))
	var within time.Duration
	if ms := r.GetTimeoutMs(); ms > 0 {
		within = time.Duration(min(ms, uint64(math.MaxInt64/time.Millisecond))) * time.Millisecond
	}
	out, err := e.await(ctx, id, within)
	if err != nil {
		return nil, e.answer(ctx, err)
	}
	return out, nil
}

// Prove submits and waits. A client that gives up ends neither.
func (e *engine) Prove(ctx context.Context, r *cuzkv1.ProveRequest) (*cuzkv1.ProveResponse, error) {
	submit := r.GetSubmit()
	r.Submit = nil // while waiting the input is not to be kept
	e.meters.asked(submit.GetProofKind())
	t := takeTurn(ctx)
	ours, err := e.route(submit.GetProofKind())
	if err != nil {
		t.end()
		return nil, err
	}
	if !ours {
		out, err := forward(ctx, e.upstream, t, cuzkv1.ProvingEngine_Prove_FullMethodName,
			&cuzkv1.ProveRequest{Submit: submit}, &cuzkv1.ProveResponse{})
		if err == nil && out.GetResult() != nil {
			out.Result.JobId = upstreamPrefix + out.Result.GetJobId()
		}
		return out, err
	}
	id, err := e.submissions.submit(ctx, submit, t)
	if err != nil {
		return nil, e.answer(ctx, err)
	}
	result, err := e.await(ctx, id, 0)
	if status.Code(err) == codes.NotFound { // accepted by a rack that has lost everything since
		err = status.Errorf(codes.Unavailable, "job %s is lost: send the request again", id)
	}
	if err != nil {
		return nil, e.answer(ctx, err)
	}
	return &cuzkv1.ProveResponse{Result: result}, nil
}

// CancelProof ends a job.
func (e *engine) CancelProof(ctx context.Context, r *cuzkv1.CancelProofRequest) (*cuzkv1.CancelProofResponse, error) {
	if name, ok := strings.CutPrefix(r.GetJobId(), upstreamPrefix); ok && e.upstream != nil {
		return forward(ctx, e.upstream, nil, cuzkv1.ProvingEngine_CancelProof_FullMethodName,
			&cuzkv1.CancelProofRequest{JobId: name}, &cuzkv1.CancelProofResponse{})
	}
	id, err := job.ParseID(r.GetJobId())
	if err != nil {
		return nil, badJobID(r.GetJobId())
	}
	callOf(ctx).about(telemetry.String(telemetry.KeyJobID, id))
	was, err := e.cancel(ctx, id)
	if err != nil {
		return nil, e.answer(ctx, err)
	}
	return &cuzkv1.CancelProofResponse{WasRunning: was}, nil
}

// GetMetrics gives the gateway's own metrics.
func (e *engine) GetMetrics(ctx context.Context, _ *cuzkv1.GetMetricsRequest) (*cuzkv1.GetMetricsResponse, error) {
	text, err := e.meters.text(ctx)
	if err != nil {
		return nil, e.answer(ctx, err)
	}
	return &cuzkv1.GetMetricsResponse{PrometheusText: text}, nil
}
