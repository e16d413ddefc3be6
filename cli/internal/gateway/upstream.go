package gateway

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// upstreamPrefix stands before the ids of jobs that are the upstream's.
const upstreamPrefix = "upstream-"

// Pauses between tries to connect to the upstream. WinningPoSt has one try: it must not miss an upstream that is back.
const (
	reconnectMin = 100 * time.Millisecond
	reconnectMax = time.Second
)

// upstream is another server of the protocol, for what the rack does not prove.
type upstream struct {
	config *ForwardConfig
	log    zerolog.Logger
	conn   *grpc.ClientConn

	mu  sync.Mutex
	err error // what the last check said
}

// openUpstream prepares the connection; it is made when it is needed.
func openUpstream(config *ForwardConfig, log zerolog.Logger) (*upstream, error) {
	target := config.To
	if network, address := endpoint(target); network == "tcp" {
		target = "passthrough:///" + address
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MessageBytesMax), grpc.MaxCallSendMsgSize(MessageBytesMax)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: reconnectMin, Multiplier: 2, Jitter: 0.2, MaxDelay: reconnectMax},
			MinConnectTimeout: config.CheckMax,
		}))
	if err != nil {
		return nil, fault.As(fault.Invalid, fmt.Errorf("forward.to: %w", err))
	}
	return &upstream{config: config, log: log, conn: conn, err: errors.New("not asked yet")}, nil
}

// healthy is nil when the upstream answered the last time that it was asked.
func (u *upstream) healthy() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

// watch asks the upstream again and again whether it lives, until ctx ends. Each change is one line.
func (u *upstream) watch(ctx context.Context) {
	for first := true; ; first = false {
		_, err := u.status(ctx)
		if ctx.Err() != nil {
			return
		}
		u.mu.Lock()
		was := u.err
		u.err = err
		u.mu.Unlock()
		switch {
		case err != nil && (first || was == nil):
			u.log.Warn().Err(err).Str("upstream", u.config.To).
				Msg("upstream does not answer: SnapDeals, WindowPoSt and WinningPoSt fail until it does")
		case err == nil && was != nil:
			u.log.Info().Str("upstream", u.config.To).Msg("upstream answers")
		}
		timer := time.NewTimer(u.config.CheckEvery)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return
		}
	}
}

// status asks for the upstream's state, which is also how its health is checked.
func (u *upstream) status(ctx context.Context) (*cuzkv1.GetStatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, u.config.CheckMax)
	defer cancel()
	return cuzkv1.NewProvingEngineClient(u.conn).GetStatus(ctx, &cuzkv1.GetStatusRequest{})
}

// ready waits a bounded time for the connection.
func (u *upstream) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, u.config.ConnectWait)
	defer cancel()
	for {
		state := u.conn.GetState()
		switch state {
		case connectivity.Ready:
			return nil
		case connectivity.Idle:
			u.conn.Connect()
		case connectivity.Connecting, connectivity.TransientFailure, connectivity.Shutdown:
		}
		if !u.conn.WaitForStateChange(ctx, state) {
			return status.Errorf(codes.Unavailable, "upstream %s is not there: %v", u.config.To, context.Cause(ctx))
		}
	}
}

// forward passes one call on and gives its answer. The turn ends when the request is on its way: how long the upstream
// works on it holds up no other request.
func forward[T proto.Message](
	ctx context.Context, u *upstream, t *turn, method string, request proto.Message, answer T,
) (none T, err error) {
	defer t.end()
	span := callOf(ctx).begin(method[1:], telemetry.Client, rpcFacts(method[1:])...)
	defer func() { span.answered(err) }()
	if err := u.ready(ctx); err != nil {
		return none, err
	}
	ctx, cancel := context.WithCancel(span.outgoing(ctx))
	defer cancel()
	stream, err := u.conn.NewStream(ctx, &grpc.StreamDesc{}, method)
	if err != nil {
		return none, err
	}
	// An error of sending is only that the stream has ended; why is what receiving says.
	if err := stream.SendMsg(request); err == nil {
		err = stream.CloseSend()
		if err != nil {
			return none, err
		}
	}
	t.end()
	if err := stream.RecvMsg(answer); err != nil {
		return none, err
	}
	return answer, nil
}

// awaitUpstream waits for a job of the upstream.
func (e *engine) awaitUpstream(ctx context.Context, name string, ms uint64) (*cuzkv1.AwaitProofResponse, error) {
	ctx, stop := e.untilLeaving(ctx)
	defer stop()
	out, err := forward(ctx, e.upstream, nil, cuzkv1.ProvingEngine_AwaitProof_FullMethodName,
		&cuzkv1.AwaitProofRequest{JobId: name, TimeoutMs: ms}, &cuzkv1.AwaitProofResponse{})
	if err != nil {
		return nil, err
	}
	out.JobId = upstreamPrefix + out.GetJobId()
	return out, nil
}
