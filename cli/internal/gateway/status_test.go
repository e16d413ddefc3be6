package gateway

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// setAssets gives the rack two nodes, one with the parameters loaded.
func (r *fakeRack) setAssets() {
	srs := func(node job.Node, present bool) wire.NodeAssets {
		return wire.NodeAssets{
			Node: node, Circuits: []wire.CircuitState{{Device: "gpu0", Circuit: "porep-2KiB", Ready: true}},
			Assets: []wire.AssetView{
				{Asset: ledger.Asset{Name: "srs:porep-2KiB", Pool: "ram", Class: ledger.ClassSRS, Bytes: 500}, Users: 1,
					Present: present},
				{Asset: ledger.Asset{Name: "artifact:porep-2KiB", Pool: "ram", Class: ledger.ClassArtifact, Bytes: 9},
					Present: present},
			},
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.assets = wire.AssetsReply{Nodes: []wire.NodeAssets{srs("n1", true), srs("n2", false), {Node: "n3"}}}
}

func TestStatusTellsTheTruth(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	g := start(t, func(c *Config) { c.Forward.To = u.address })
	g.rack.setAssets()
	var ids []job.ID
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		s, err := g.client.SubmitProof(g.ctx(), request(t, name, "2KiB-v1_1"))
		check(t, err)
		ids = append(ids, job.ID(s.JobId))
	}
	g.rack.begin(ids[0])
	g.rack.end(ids[1], job.Done, nil)
	g.rack.end(ids[2], job.Failed, &fault.Report{Message: "no"})
	// One more is on its way, which the rack does not take yet.
	hold := make(chan struct{})
	g.rack.mu.Lock()
	g.rack.refuse = func(int) error { <-hold; return nil }
	g.rack.mu.Unlock()
	sixth := beside(func() (*cuzkv1.SubmitProofResponse, error) {
		return g.client.SubmitProof(g.ctx(), request(t, "f", "2KiB-v1_1"))
	})
	g.rack.until(func() bool { return g.rack.submits == 6 })
	for !(g.rackCounted(1, 1)) {
		if g.ctx().Err() != nil {
			t.Fatal("ended jobs are not counted")
		}
		time.Sleep(time.Millisecond)
	}
	got, err := g.client.GetStatus(g.ctx(), &cuzkv1.GetStatusRequest{})
	check(t, err)
	close(hold)
	if a := <-sixth; a.err != nil {
		t.Error(a.err)
	}
	want := &cuzkv1.GetStatusResponse{
		Gpus: []*cuzkv1.GPUStatus{
			{Name: "n1/gpu0 H200", VramTotalBytes: 1000, VramFreeBytes: 700}, {Ordinal: 1, Name: "upstream/their GPU"},
		},
		LoadedSrs: []*cuzkv1.SRSStatus{
			{CircuitId: "porep-2k", Tier: cuzkv1.SRSStatus_WARM, SizeBytes: 509, RefCount: 1}, {CircuitId: "snap-32g"},
		},
		Queues: []*cuzkv1.QueueStatus{
			{ProofKind: "POREP_SEAL_COMMIT", Pending: 3, InProgress: 1}, {ProofKind: "WINNING_POST", Pending: 4},
		},
		TotalProofsCompleted: 101, TotalProofsFailed: 1, PinnedMemoryLimitBytes: 70, UptimeSeconds: got.UptimeSeconds,
	}
	if !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// rackCounted tells whether the gateway has seen so many ends of jobs.
func (g *running) rackCounted(done, failed int) bool {
	m, err := g.client.GetMetrics(g.ctx(), &cuzkv1.GetMetricsRequest{})
	check(g.t, err)
	has := func(state string, n int) bool {
		return strings.Contains(m.PrometheusText,
			`c2_gateway_jobs_ended_total{role="gateway",state="`+state+`"} `+string(rune('0'+n))+"\n")
	}
	return has("done", done) && has("failed", failed)
}

func TestPreloadAndEvictReachEveryNode(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	g.rack.setAssets()
	preload := func() *cuzkv1.PreloadSrsResponse {
		t.Helper()
		out, err := g.client.PreloadSRS(g.ctx(), &cuzkv1.PreloadSrsRequest{CircuitId: "porep-2k"})
		check(t, err)
		return out
	}
	evict := func() *cuzkv1.EvictSrsResponse {
		t.Helper()
		out, err := g.client.EvictSRS(g.ctx(), &cuzkv1.EvictSrsRequest{CircuitId: "porep-2KiB"})
		check(t, err)
		return out
	}
	if out := preload(); out.AlreadyLoaded {
		t.Errorf("%v", out)
	}
	if out := preload(); !out.AlreadyLoaded || out.LoadTimeMs != 0 {
		t.Errorf("%v", out)
	}
	if out := evict(); !out.WasLoaded || out.FreedBytes != 2*509 {
		t.Errorf("%v", out)
	}
	if out := evict(); out.WasLoaded || out.FreedBytes != 0 {
		t.Errorf("%v", out)
	}
	g.rack.mu.Lock()
	defer g.rack.mu.Unlock()
	var orders []string
	for _, o := range g.rack.orders {
		orders = append(orders, o.Do+" "+string(o.Node)+" "+o.Circuit)
	}
	if got, want := strings.Join(orders, ", "),
		"preload n2 porep-2KiB, evict n1 porep-2KiB, evict n2 porep-2KiB"; got != want {
		t.Errorf("orders %s, want %s", got, want)
	}
}

// A node that does not load what it was told to is named.
func TestPreloadThatANodeGivesUpFails(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	g.rack.mu.Lock()
	g.rack.assets = wire.AssetsReply{Nodes: []wire.NodeAssets{{
		Node: "n7", Circuits: []wire.CircuitState{{Device: "gpu0", Circuit: "porep-2KiB", Ready: true}},
	}}}
	g.rack.mu.Unlock()
	_, err := g.client.PreloadSRS(g.ctx(), &cuzkv1.PreloadSrsRequest{CircuitId: "porep-2k"})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "node n7") {
		t.Errorf("%v", err)
	}
}

// With a tenant's credential only, what is an operator's is refused and says what is missing.
func TestPreloadAndEvictAreAnOperators(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *Config) { c.NATS.NKeySeedFile = "of-a-tenant" })
	_, err := g.client.PreloadSRS(g.ctx(), &cuzkv1.PreloadSrsRequest{CircuitId: "porep-32g"})
	_, evictErr := g.client.EvictSRS(g.ctx(), &cuzkv1.EvictSrsRequest{CircuitId: "porep-32g"})
	for _, err := range []error{err, evictErr} {
		if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "operator_creds_file") {
			t.Errorf("%v", err)
		}
	}
	got, err := g.client.GetStatus(g.ctx(), &cuzkv1.GetStatusRequest{})
	if err != nil || len(got.Gpus) != 0 || len(got.Queues) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestCircuitsOfTheProtocol(t *testing.T) {
	t.Parallel()
	for theirs, ours := range map[string]string{
		"porep-32g": "porep-32GiB", "porep-64g": "porep-64GiB", "porep-2k": "porep-2KiB", "porep-512m": "porep-512MiB",
	} {
		if got, ok := ourCircuit(theirs); got != ours || !ok {
			t.Errorf("%s is %s, %v", theirs, got, ok)
		}
		if got, ok := ourCircuit(ours); got != ours || !ok {
			t.Errorf("%s is %s, %v", ours, got, ok)
		}
		if got := theirCircuit(ours); got != theirs {
			t.Errorf("%s is %s", ours, got)
		}
	}
	for _, other := range []string{"", "snap-32g", "wpost-32g", "winning-32g", "porep-", "porep-3g"} {
		if got, ok := ourCircuit(other); ok {
			t.Errorf("%q is %s", other, got)
		}
	}
}
