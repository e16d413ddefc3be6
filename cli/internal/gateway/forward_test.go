package gateway

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
)

// fakeUpstream is another server of the protocol.
type fakeUpstream struct {
	cuzkv1.UnimplementedProvingEngineServer

	address string
	server  *grpc.Server

	mu      sync.Mutex
	got     []*cuzkv1.SubmitProofRequest
	awaited []*cuzkv1.AwaitProofRequest
	hold    chan struct{} // Prove waits for it, when it is there

	traceParent string // of the last Prove
}

func newUpstream(t *testing.T) *fakeUpstream {
	t.Helper()
	u := &fakeUpstream{address: "unix://" + filepath.Join(socketFolder(t), "up")}
	u.serve(t)
	return u
}

// serve begins to serve, also again.
func (u *fakeUpstream) serve(t *testing.T) {
	t.Helper()
	_, path := endpoint(u.address)
	l, err := net.Listen("unix", path)
	check(t, err)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(MessageBytesMax))
	u.server = server
	cuzkv1.RegisterProvingEngineServer(server, u)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() { server.Stop(); <-done })
}

func (u *fakeUpstream) SubmitProof(
	_ context.Context, r *cuzkv1.SubmitProofRequest,
) (*cuzkv1.SubmitProofResponse, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.got = append(u.got, r)
	return &cuzkv1.SubmitProofResponse{JobId: "j7", QueuePosition: 3, AssignedGpu: "g"}, nil
}

func (u *fakeUpstream) Prove(ctx context.Context, r *cuzkv1.ProveRequest) (*cuzkv1.ProveResponse, error) {
	u.mu.Lock()
	u.got = append(u.got, r.GetSubmit())
	if m, ok := metadata.FromIncomingContext(ctx); ok {
		u.traceParent = strings.Join(m.Get("traceparent"), " ")
	}
	hold := u.hold
	u.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return &cuzkv1.ProveResponse{Result: &cuzkv1.AwaitProofResponse{
		JobId: "j8", Status: cuzkv1.AwaitProofResponse_COMPLETED, Proof: []byte(r.GetSubmit().GetRequestId()),
	}}, nil
}

func (u *fakeUpstream) AwaitProof(
	_ context.Context, r *cuzkv1.AwaitProofRequest,
) (*cuzkv1.AwaitProofResponse, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.awaited = append(u.awaited, r)
	return &cuzkv1.AwaitProofResponse{JobId: r.GetJobId(), Status: cuzkv1.AwaitProofResponse_TIMEOUT}, nil
}

func (u *fakeUpstream) CancelProof(
	_ context.Context, r *cuzkv1.CancelProofRequest,
) (*cuzkv1.CancelProofResponse, error) {
	return &cuzkv1.CancelProofResponse{WasRunning: r.GetJobId() == "j7"}, nil
}

func (u *fakeUpstream) GetStatus(context.Context, *cuzkv1.GetStatusRequest) (*cuzkv1.GetStatusResponse, error) {
	return &cuzkv1.GetStatusResponse{
		Gpus: []*cuzkv1.GPUStatus{{Name: "their GPU"}}, TotalProofsCompleted: 100,
		LoadedSrs: []*cuzkv1.SRSStatus{{CircuitId: "snap-32g"}},
		Queues:    []*cuzkv1.QueueStatus{{ProofKind: "WINNING_POST", Pending: 4}},
	}, nil
}

func (u *fakeUpstream) PreloadSRS(
	_ context.Context, r *cuzkv1.PreloadSrsRequest,
) (*cuzkv1.PreloadSrsResponse, error) {
	return &cuzkv1.PreloadSrsResponse{AlreadyLoaded: r.GetCircuitId() == "snap-32g"}, nil
}

func (u *fakeUpstream) EvictSRS(context.Context, *cuzkv1.EvictSrsRequest) (*cuzkv1.EvictSrsResponse, error) {
	return &cuzkv1.EvictSrsResponse{WasLoaded: true, FreedBytes: 77}, nil
}

// others are requests of the kinds that the rack does not prove, with every field that they use.
func others() []*cuzkv1.SubmitProofRequest {
	return []*cuzkv1.SubmitProofRequest{
		{
			RequestId: "snap-1000-7", ProofKind: cuzkv1.ProofKind_SNAP_DEALS_UPDATE, SectorSize: 32 << 30,
			RegisteredProof: 3, Priority: cuzkv1.Priority_NORMAL, VanillaProofs: [][]byte{{1, 2}, {3}}, SectorNumber: 7,
			MinerId: 1000, CommROld: []byte{4}, CommRNew: []byte{5}, CommDNew: []byte{6},
		},
		{RequestId: "ps-snap-1000-7-12", ProofKind: cuzkv1.ProofKind_SNAP_DEALS_UPDATE, VanillaProofs: [][]byte{{9}}},
		{
			RequestId: "wdpost-1000-2-r", ProofKind: cuzkv1.ProofKind_WINDOW_POST_PARTITION,
			VanillaProofs: [][]byte{{1}}, MinerId: 1000, Randomness: []byte{7}, PartitionIndex: 2,
		},
		{
			RequestId: "winpost-1000-r", ProofKind: cuzkv1.ProofKind_WINNING_POST, Priority: cuzkv1.Priority_CRITICAL,
			VanillaProofs: [][]byte{{1}}, MinerId: 1000, Randomness: []byte{8},
		},
		{RequestId: "of a kind to come", ProofKind: 9},
	}
}

func TestOtherKindsAreForwardedWhole(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	g := start(t, func(c *Config) { c.Forward.To = u.address })
	for i, r := range others() {
		s, err := g.client.SubmitProof(g.ctx(), r)
		check(t, err)
		if s.JobId != upstreamPrefix+"j7" || s.QueuePosition != 3 || s.AssignedGpu != "g" {
			t.Errorf("%v", s)
		}
		p, err := g.client.Prove(g.ctx(), &cuzkv1.ProveRequest{Submit: r})
		check(t, err)
		if p.Result.JobId != upstreamPrefix+"j8" || string(p.Result.Proof) != r.RequestId {
			t.Errorf("%v", p)
		}
		if len(u.got) != 2*i+2 || !proto.Equal(u.got[2*i], r) || !proto.Equal(u.got[2*i+1], r) {
			t.Errorf("%v became %v", r, u.got)
		}
	}
	a, err := g.client.AwaitProof(g.ctx(), &cuzkv1.AwaitProofRequest{JobId: upstreamPrefix + "j7", TimeoutMs: 8})
	check(t, err)
	if a.JobId != upstreamPrefix+"j7" || !proto.Equal(u.awaited[0], &cuzkv1.AwaitProofRequest{JobId: "j7", TimeoutMs: 8}) {
		t.Errorf("%v, %v", a, u.awaited)
	}
	c, err := g.client.CancelProof(g.ctx(), &cuzkv1.CancelProofRequest{JobId: upstreamPrefix + "j7"})
	if err != nil || !c.WasRunning {
		t.Errorf("%v, %v", c, err)
	}
	if _, err := g.client.SubmitProof(g.ctx(), &cuzkv1.SubmitProofRequest{}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("kind 0: %v", err)
	}
	preloaded, err := g.client.PreloadSRS(g.ctx(), &cuzkv1.PreloadSrsRequest{CircuitId: "snap-32g"})
	if err != nil || !preloaded.AlreadyLoaded {
		t.Errorf("%v, %v", preloaded, err)
	}
	evicted, err := g.client.EvictSRS(g.ctx(), &cuzkv1.EvictSrsRequest{CircuitId: "wpost-32g"})
	if err != nil || evicted.FreedBytes != 77 {
		t.Errorf("%v, %v", evicted, err)
	}
}

func TestWithoutUpstreamOtherKindsAreUnimplementedAndStartSaysSo(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	for _, r := range others() {
		_, err := g.client.SubmitProof(g.ctx(), r)
		_, proveErr := g.client.Prove(g.ctx(), &cuzkv1.ProveRequest{Submit: r})
		if status.Code(err) != codes.Unimplemented || status.Code(proveErr) != codes.Unimplemented {
			t.Errorf("%s: %v, %v", r.RequestId, err, proveErr)
		}
	}
	loud := 0
	for line := range strings.Lines(g.log.String()) {
		if strings.Contains(line, `"level":"warn"`) && strings.Contains(line, "LOSES ITS BLOCKS") &&
			strings.Contains(line, "WindowPoSt") && strings.Contains(line, "SnapDeals") {
			loud++
		}
	}
	if loud != 1 {
		t.Errorf("%d loud lines: %s", loud, g.log)
	}
	_, err := g.client.PreloadSRS(g.ctx(), &cuzkv1.PreloadSrsRequest{CircuitId: "snap-32g"})
	_, evictErr := g.client.EvictSRS(g.ctx(), &cuzkv1.EvictSrsRequest{CircuitId: "snap-32g"})
	if status.Code(err) != codes.NotFound || status.Code(evictErr) != codes.NotFound {
		t.Errorf("%v, %v", err, evictErr)
	}
}

// With every turn of PoRep taken and more waiting, and other requests of the upstream in work, a WinningPoSt goes
// through at once.
func TestWinningPoStNeverWaitsForPoRep(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.hold = make(chan struct{})
	g := start(t, func(c *Config) {
		c.Forward.To, c.Forward.BodiesMax, c.Gateway.BodiesMax = u.address, 1, 1
	})
	holdRack := make(chan struct{})
	g.rack.refuse = func(int) error { <-holdRack; return nil }
	var proved []<-chan answer[*cuzkv1.ProveResponse]
	for i := range 5 {
		r := request(t, "porep-1000-"+string(rune('a'+i)), "2KiB-v1_1")
		r.VanillaProof = append(make([]byte, 0, 1<<20), r.VanillaProof...)
		for range 900 << 10 { // more than any window takes
			r.VanillaProof = append(r.VanillaProof, ' ')
		}
		proved = append(proved, g.prove(g.ctx(), r))
	}
	snaps := []<-chan answer[*cuzkv1.ProveResponse]{g.prove(g.ctx(), others()[0]), g.prove(g.ctx(), others()[1])}
	for held := uint32(0); held < 5; {
		s, err := g.client.GetStatus(g.ctx(), &cuzkv1.GetStatusRequest{})
		check(t, err)
		held = s.Queues[0].Pending
	}
	for { // both are at the upstream: what it works on takes no turn
		u.mu.Lock()
		n := len(u.got)
		u.mu.Unlock()
		if n == 2 {
			break
		}
		if g.ctx().Err() != nil {
			t.Fatal("a turn lasts as long as the upstream works")
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := g.client.SubmitProof(g.ctx(), others()[3]); err != nil {
		t.Error(err)
	}
	close(u.hold)
	for _, p := range snaps {
		if a := <-p; a.err != nil {
			t.Error(a.err)
		}
	}
	close(holdRack)
	for i := range proved {
		g.rack.end(g.rack.accepted(i+1), job.Done, nil)
	}
	for _, p := range proved {
		if a := <-p; a.err != nil {
			t.Error(a.err)
		}
	}
}

// The upstream is asked whether it lives; log and metric tell, a line for each change, and one that
// comes back is used.
func TestUpstreamIsChecked(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.server.Stop()
	g := start(t, func(c *Config) {
		c.Forward.To, c.Forward.CheckEvery, c.Forward.ConnectWait = u.address, 10*time.Millisecond, 50*time.Millisecond
	})
	// seen waits until the log has so many of both lines, and the metric says the same.
	seen := func(away, back int, want string) {
		t.Helper()
		for ctx := g.ctx(); ; time.Sleep(time.Millisecond) {
			log := g.log.String()
			m, err := g.client.GetMetrics(ctx, &cuzkv1.GetMetricsRequest{})
			check(t, err)
			if strings.Count(log, "upstream does not answer") == away && strings.Count(log, "upstream answers") == back &&
				strings.Contains(m.PrometheusText, `c2_gateway_upstream_healthy{role="gateway"} `+want+"\n") {
				return
			}
		}
	}
	seen(1, 0, "0")
	_, err := g.client.SubmitProof(g.ctx(), others()[3])
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "upstream") {
		t.Errorf("%v", err)
	}
	u.serve(t)
	seen(1, 1, "1")
	if _, err := g.client.SubmitProof(g.ctx(), others()[3]); err != nil {
		t.Error(err)
	}
	u.server.Stop()
	seen(2, 1, "0")
}

// A WinningPoSt that comes a moment before its upstream is back is not lost.
func TestForwardedRequestWaitsForTheUpstream(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.server.Stop()
	g := start(t, func(c *Config) { c.Forward.To, c.Forward.ConnectWait = u.address, patience })
	sent := beside(func() (*cuzkv1.SubmitProofResponse, error) { return g.client.SubmitProof(g.ctx(), others()[3]) })
	for !strings.Contains(g.log.String(), "upstream does not answer") {
		time.Sleep(time.Millisecond)
	}
	u.serve(t)
	if a := <-sent; a.err != nil {
		t.Error(a.err)
	}
}

func TestConnectionOfNobodyIsNoQueue(t *testing.T) {
	t.Parallel()
	r := newFakeRack(t)
	g := startAt(t, r, func(c *Config) {
		c.Gateway.AnswerMax = 20 * time.Millisecond
		c.Connect = func(ctx context.Context) (bus.Bus, error) { <-ctx.Done(); return nil, ctx.Err() }
	})
	if s, err := g.client.GetStatus(g.ctx(), &cuzkv1.GetStatusRequest{}); err == nil {
		t.Errorf("a queue is told that nobody knows: %v", s)
	}
}
