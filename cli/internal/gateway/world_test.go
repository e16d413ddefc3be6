package gateway

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what should be there at once.
const patience = time.Minute

const tenant = job.Tenant("t1")

// fakeRack answers as coordinators do. A job goes on when the test says so.
type fakeRack struct {
	t      *testing.T
	server *membus.Server
	bus    bus.Bus

	mu      sync.Mutex
	jobs    map[job.ID]*job.Record
	order   []job.ID
	submits int
	refuse  func(n int) error // of the n-th submit
	changed chan struct{}     // closed and replaced at each change
	assets  wire.AssetsReply
	orders  []wire.AssetsRequest
}

func newFakeRack(t *testing.T) *fakeRack {
	t.Helper()
	server := membus.New(membus.Config{})
	r := &fakeRack{
		t: t, server: server, bus: server.Connect(bus.Events{}), jobs: map[job.ID]*job.Record{},
		changed: make(chan struct{}), refuse: func(int) error { return nil },
	}
	t.Cleanup(r.bus.Close)
	check(t, r.bus.Setup(t.Context(), bus.Topology{Objects: []bus.ObjectBucket{
		{Name: wire.ObjectsIn(tenant), BytesMax: 1 << 30}, {Name: wire.ObjectsProofs(tenant), BytesMax: 1 << 20},
	}}))
	ask := func(verb string, handle func(context.Context, []byte) (wire.Body, error)) bus.Endpoint {
		return bus.Endpoint{Name: verb, Subject: wire.ClientSubject(verb, tenant), Handle: answered(handle)}
	}
	stop, err := r.bus.Serve(bus.Service{Name: "c2", Version: "0.1.0", Endpoints: []bus.Endpoint{
		ask(wire.VerbSubmit, r.submit), ask(wire.VerbStatus, r.status), ask(wire.VerbCancel, r.cancel),
		ask(wire.VerbJobs, r.list),
		{Name: "assets", Subject: wire.AdminSubject(wire.AdminAssets), Handle: answered(r.orderAssets)},
		{Name: "nodes", Subject: wire.AdminSubject(wire.AdminNodes), Handle: answered(r.nodes)},
	}})
	check(t, err)
	t.Cleanup(stop)
	return r
}

func answered(handle func(context.Context, []byte) (wire.Body, error)) func(context.Context, bus.Message) (bus.Message,
	error) {
	return func(ctx context.Context, m bus.Message) (bus.Message, error) {
		body, err := handle(ctx, m.Data)
		if err != nil {
			body = &wire.Reply{Fault: fault.ReportOf("test", err)}
		}
		data, err := wire.Encode(body)
		return bus.Message{Data: data}, err
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *fakeRack) submit(ctx context.Context, data []byte) (wire.Body, error) {
	var s wire.Submit
	if err := wire.Decode(data, &s); err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.submits++
	n := r.submits
	refuse := r.refuse
	r.note()
	r.mu.Unlock()
	if err := refuse(n); err != nil {
		return nil, err
	}
	input := s.Inline
	if s.Object != nil {
		objects, err := r.bus.Objects(ctx, wire.ObjectsIn(tenant))
		if err != nil {
			return nil, err
		}
		reader, _, err := objects.Get(ctx, s.Object.Name, wire.ReferenceBytesMax)
		if err != nil {
			return nil, err
		}
		defer reader.Close()
		if input, err = io.ReadAll(reader); err != nil {
			return nil, err
		}
	}
	kind, err := catalog.FindKind(s.Kind)
	if err != nil {
		return nil, err
	}
	miner, err := sdr.ParseMiner(s.Miner)
	if err != nil {
		return nil, err
	}
	in, err := kind.Open(ctx, bytes.NewReader(input), circuit.Claim{
		ProverID: sdr.ProverID(miner), SectorNumber: s.SectorNumber,
	})
	if err != nil {
		return nil, fault.As(fault.Invalid, err)
	}
	hash := in.Hash()
	return r.accept(&s, hex.EncodeToString(hash[:]), in)
}

func (r *fakeRack) accept(s *wire.Submit, hash string, in circuit.Input) (wire.Body, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range r.jobs {
		if j.Key == s.Key && (j.State == job.Active || j.State == job.Done) {
			if j.InputHash != hash {
				return nil, fault.New(fault.Conflict, "key %q stands for another input", s.Key)
			}
			return &wire.SubmitReply{Job: j.ID, Existing: true, State: j.State}, nil
		}
	}
	id, err := job.NewID()
	if err != nil {
		return nil, err
	}
	j := &job.Record{
		Version: job.RecordVersion, ID: id, Tenant: tenant, Key: s.Key, InputHash: hash, State: job.Active,
		Circuit: in.Circuit().ID(), Priority: s.Priority, SubmittedAt: time.Now().UTC(), Miner: s.Miner,
		SectorNumber: *s.SectorNumber, Partitions: make([]job.Partition, in.PartitionCount()),
		TraceParent: s.TraceParent,
	}
	for i := range j.Partitions {
		j.Partitions[i].Stage = job.Waiting
	}
	r.jobs[id] = j
	r.order = append(r.order, id)
	r.note()
	return &wire.SubmitReply{Job: id, State: job.Active}, nil
}

// note tells waiting tests that something changed. The lock is held.
func (r *fakeRack) note() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *fakeRack) status(_ context.Context, data []byte) (wire.Body, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	j, err := r.find(data)
	if err != nil {
		return nil, err
	}
	copied := *j
	return &wire.StatusReply{Record: &copied}, nil
}

func (r *fakeRack) find(data []byte) (*job.Record, error) {
	var q wire.JobRequest
	if err := wire.Decode(data, &q); err != nil {
		return nil, err
	}
	j := r.jobs[q.Job]
	if j == nil {
		return nil, fault.New(fault.NotFound, "no job %s", q.Job)
	}
	return j, nil
}

func (r *fakeRack) cancel(_ context.Context, data []byte) (wire.Body, error) {
	r.mu.Lock()
	j, err := r.find(data)
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	r.end(j.ID, job.Cancelled, &fault.Report{Kind: fault.Cancelled, Message: "not wanted any more"})
	return &wire.StatusReply{Record: j}, nil
}

func (r *fakeRack) list(_ context.Context, data []byte) (wire.Body, error) {
	var q wire.JobsRequest
	if err := wire.Decode(data, &q); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	reply := &wire.JobsReply{Jobs: []wire.JobSummary{}}
	for i := len(r.order) - 1; i >= 0; i-- {
		j := r.jobs[r.order[i]]
		if j.State != q.State || q.Before != "" && j.ID >= q.Before {
			continue
		}
		if len(reply.Jobs) == 2 { // small pages, so that they are turned
			reply.More = true
			break
		}
		s := wire.JobSummary{ID: j.ID, State: j.State, Partitions: len(j.Partitions)}
		for k := range j.Partitions {
			if j.Partitions[k].Stage == job.Waiting {
				s.Waiting++
			}
		}
		reply.Jobs = append(reply.Jobs, s)
	}
	return reply, nil
}

// proofOf makes up a proof of a job.
func proofOf(id job.ID, partitions int) []byte {
	var out []byte
	for k := range partitions {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", id, k))
		out = append(out, bytes.Repeat(sum[:], wire.ProofBytes/len(sum))...)
	}
	return out
}

// begin has a job's first partition worked on.
func (r *fakeRack) begin(id job.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	partitions := append([]job.Partition(nil), r.jobs[id].Partitions...)
	partitions[0].Stage = job.Proving
	copied := *r.jobs[id]
	copied.Partitions = partitions
	r.jobs[id] = &copied
}

// end ends a job and tells everybody.
func (r *fakeRack) end(id job.ID, state job.State, why *fault.Report) {
	r.t.Helper()
	r.mu.Lock()
	j := *r.jobs[id]
	now := j.SubmittedAt.Add(5 * time.Second)
	j.State, j.Fault, j.EndedAt = state, why, &now
	j.Partitions = append([]job.Partition(nil), j.Partitions...)
	if state == job.Done {
		proof := proofOf(id, len(j.Partitions))
		for k := range j.Partitions {
			j.Partitions[k].Stage = job.Verified
			j.Partitions[k].Proof = proof[k*wire.ProofBytes:][:wire.ProofBytes]
			j.Partitions[k].Attempts = []job.AttemptRecord{{
				StartedAt: j.SubmittedAt.Add(time.Second), Outcome: job.OutcomeOK,
				Seconds: map[string]float64{"synthesis": 1.5, "start": 0.25, "finish": 9},
			}}
		}
		sum := sha256.Sum256(proof)
		j.Result = &job.Object{Name: string(id), Bytes: int64(len(proof)), SHA256: hex.EncodeToString(sum[:])}
	}
	r.jobs[id] = &j
	r.note()
	r.mu.Unlock()
	check(r.t, r.bus.Send(context.Background(), bus.Message{Subject: wire.EventSubject(tenant, id, string(state))}))
}

// accepted waits until the rack has so many jobs, and gives the last.
func (r *fakeRack) accepted(count int) job.ID {
	r.t.Helper()
	r.until(func() bool { return len(r.order) >= count })
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.order[count-1]
}

// until waits until something holds of the rack.
func (r *fakeRack) until(holds func() bool) {
	r.t.Helper()
	limit := time.After(patience)
	for {
		r.mu.Lock()
		ok, changed := holds(), r.changed
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-limit:
			r.t.Fatal("the rack does not come to what the test waits for")
		}
	}
}

func (r *fakeRack) orderAssets(_ context.Context, data []byte) (wire.Body, error) {
	var q wire.AssetsRequest
	if err := wire.Decode(data, &q); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if q.Do != "" {
		r.orders = append(r.orders, q)
		for i := range r.assets.Nodes {
			if n := &r.assets.Nodes[i]; n.Node == q.Node {
				for k := range n.Assets {
					n.Assets[k].Present = q.Do == wire.AssetsPreload
				}
				if q.Do == wire.AssetsEvict {
					n.Assets = nil
				}
			}
		}
		return &wire.AssetsReply{}, nil
	}
	reply := &wire.AssetsReply{}
	for _, n := range r.assets.Nodes {
		if q.Node == "" || q.Node == n.Node {
			n.Assets = append([]wire.AssetView(nil), n.Assets...)
			reply.Nodes = append(reply.Nodes, n)
		}
	}
	return reply, nil
}

func (r *fakeRack) nodes(context.Context, []byte) (wire.Body, error) {
	return &wire.NodesReply{Ready: true, Nodes: []wire.NodeView{{
		Node: "n1", Devices: []wire.DeviceView{{Device: "gpu0", Name: "H200", Healthy: true}},
		Capacity: ledger.Amounts{"vram:gpu0": 1000, "pinned": 70}, Reserved: ledger.Amounts{"vram:gpu0": 300},
	}}}, nil
}

// running is a gateway that runs.
type running struct {
	t       *testing.T
	rack    *fakeRack
	config  Config
	control *service.Control
	done    chan error
	log     *logged
	conn    *grpc.ClientConn
	client  cuzkv1.ProvingEngineClient
}

// logged is the gateway's log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// start runs a gateway in front of a made-up rack until the test ends.
func start(t *testing.T, change func(*Config)) *running {
	t.Helper()
	return startAt(t, newFakeRack(t), change)
}

func startAt(t *testing.T, r *fakeRack, change func(*Config)) *running {
	t.Helper()
	g := &running{t: t, rack: r, config: DefaultConfig(), control: service.NewControl(), done: make(chan error, 1),
		log: &logged{}}
	c := &g.config
	c.Gateway.Listen, c.Gateway.Tenant = "unix://"+filepath.Join(socketFolder(t), "s"), string(tenant)
	c.HTTP.Listen = ""
	c.Log = zerolog.New(g.log)
	c.Connect = func(context.Context) (bus.Bus, error) { return r.server.Connect(bus.Events{}), nil }
	if change != nil {
		change(c)
	}
	for _, err := range []error{c.Validate(), c.Gateway.Validate(), c.Forward.Validate(), c.Test.Validate()} {
		check(t, err)
	}
	go func() { g.done <- Run(service.With(context.Background(), g.control), *c) }()
	t.Cleanup(func() {
		g.stop(service.HandBack)
		if t.Failed() {
			t.Log(g.log)
		}
	})
	g.conn = dial(t, c.Gateway.Listen)
	g.client = cuzkv1.NewProvingEngineClient(g.conn)
	return g
}

// socketFolder is a folder with a short name: that of a socket must not be long.
func socketFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "gw")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	return folder
}

// dial connects as clients do. The first call waits for the socket.
func dial(t *testing.T, target string) *grpc.ClientConn {
	t.Helper()
	if _, address := endpoint(target); !strings.HasPrefix(target, "unix") {
		target = "passthrough:///" + address
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.MaxCallSendMsgSize(MessageBytesMax)))
	check(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// stop asks the gateway to end and waits for it.
func (g *running) stop(level service.Level) {
	g.t.Helper()
	g.control.Stop(level, "the test has ended")
	select {
	case err := <-g.done:
		if err != nil {
			g.t.Errorf("gateway: %v", err)
		}
		g.done <- nil
	case <-time.After(patience):
		g.t.Fatal("the gateway does not end")
	}
}

func (g *running) ctx() context.Context {
	ctx, cancel := context.WithTimeout(g.t.Context(), patience)
	g.t.Cleanup(cancel)
	return ctx
}

// sample is a C1 output of miner 1000, sector 4243.
func sample(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../shared/proof/c1/testdata", name+".c1.json"))
	check(t, err)
	return text
}

// envelope wraps a C1 output as clients do.
func envelope(t *testing.T, text []byte, sectorSize uint64) []byte {
	t.Helper()
	out, err := json.Marshal(map[string]any{
		"SectorNum": 4243, "Phase1Out": base64.StdEncoding.EncodeToString(text), "SectorSize": sectorSize,
	})
	check(t, err)
	return out
}

// request is one as a client fills it.
func request(t *testing.T, id, name string) *cuzkv1.SubmitProofRequest {
	t.Helper()
	registered := map[string]uint64{"2KiB-v1": 0, "2KiB-v1_1": 5}[name]
	return &cuzkv1.SubmitProofRequest{
		RequestId: id, ProofKind: cuzkv1.ProofKind_POREP_SEAL_COMMIT, SectorSize: 2048, RegisteredProof: registered,
		Priority: cuzkv1.Priority_NORMAL, VanillaProof: envelope(t, sample(t, name), 2048), SectorNumber: 4243,
		MinerId: 1000,
	}
}
