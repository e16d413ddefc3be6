package coordinator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/memledger"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

// Timers of all tests: the real ones divided by about ten, but for beats, which come often: some late ones on a crowded
// machine must not cost an attempt.
const (
	heartbeat   = 100 * time.Millisecond
	lease       = 1500 * time.Millisecond
	leaderLease = 1200 * time.Millisecond
	tick        = 25 * time.Millisecond
	patience    = time.Minute      // until a test gives up
	slack       = 15 * time.Second // what a bound on time leaves to a crowded machine
)

// world is a rack: a bus and a ledger in memory, coordinators, and nodes whose workers are scripts.
type world struct {
	t    testing.TB
	dial func(name string) bus.Bus
	bus  bus.Bus // of the test itself
	open func() ledger.Ledger

	ledger *memledger.Store  // nil when another one is in use
	nats   *natsbus.Embedded // nil when the bus is in memory
	store  *store.Store
	made   *proved
	log    zerolog.Logger

	edits []func(*coordinator.Config)
}

func newWorld(t testing.TB, edits ...func(*coordinator.Config)) *world {
	t.Helper()
	server := membus.New(membus.Config{})
	return build(t, func(string) bus.Bus {
		b := server.Connect(bus.Events{})
		t.Cleanup(b.Close)
		return b
	}, edits...)
}

// newNATSWorld has a real NATS server in this process.
func newNATSWorld(t testing.TB, edits ...func(*coordinator.Config)) *world {
	t.Helper()
	server, err := natsbus.StartEmbedded(natsbus.EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	w := build(t, func(name string) bus.Bus {
		config := natsbus.DefaultConfig()
		config.Name = name
		b, err := natsbus.Dial(context.Background(), config, natsbus.Options{Embedded: server})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		return b
	}, edits...)
	w.nats = server
	return w
}

func build(t testing.TB, dial func(name string) bus.Bus, edits ...func(*coordinator.Config)) *world {
	t.Helper()
	w := &world{
		t: t, dial: dial, made: proofs(t), edits: edits,
		log: logger(t),
	}
	var err error
	w.ledger, err = memledger.New(ledger.Config{Lease: lease}, time.Now)
	w.check(err)
	w.open = func() ledger.Ledger { return w.ledger.Open() }
	w.bus = w.dial("test")
	config := w.config()
	w.check(w.bus.Setup(t.Context(), config.Streams.Topology()))
	w.store, err = store.Open(t.Context(), w.bus, store.DefaultConfig(), w.log)
	w.check(err)
	t.Cleanup(w.store.Close)
	return w
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func findCircuit(id string) (circuit.Circuit, error) {
	if id == toy.Circuit().ID() {
		return toy.Circuit(), nil
	}
	return catalog.Find(id)
}

func (w *world) config() coordinator.Config {
	c := coordinator.DefaultConfig()
	c.Params.Dir = w.made.dir
	c.Params.DigestCache = w.t.TempDir() + "/digests.json"
	c.Find = findCircuit
	c.Times = coordinator.TimesConfig{
		Heartbeat: heartbeat, Lease: lease, LeaderLease: leaderLease, Tick: tick, Sweep: 500 * time.Millisecond,
		ResultWait: time.Second, Call: 2 * time.Second,
	}
	c.Attempts.BackoffMin, c.Attempts.BackoffMax = 10*time.Millisecond, 100*time.Millisecond
	c.Attempts.HandBackPause = 10 * time.Millisecond
	c.HTTP.Listen = ""
	c.Schedule.GuessDefault = 100 * time.Millisecond
	c.Log = w.log
	for _, edit := range w.edits {
		edit(&c)
	}
	return c
}

// process is a running coordinator.
type process struct {
	w      *world
	bus    bus.Bus
	cancel context.CancelFunc
	ended  chan error
	once   sync.Once
}

// start starts a coordinator. It is stopped with the test.
func (w *world) start(edits ...func(*coordinator.Config)) *process {
	w.t.Helper()
	c := w.config()
	p := &process{w: w, bus: w.dial("coordinator"), ended: make(chan error, 1)}
	c.Connect = func(context.Context) (bus.Bus, error) { return p.bus, nil }
	if w.ledger != nil {
		c.OpenLedger = func(context.Context) (ledger.Ledger, error) { return w.open(), nil }
	}
	for _, edit := range edits {
		edit(&c)
	}
	w.check(c.Validate())
	ctx, cancel := context.WithCancel(context.Background())
	p.cancel = cancel
	go func() { p.ended <- coordinator.Run(ctx, c) }()
	w.t.Cleanup(p.stop)
	return p
}

// stop ends it in order.
func (p *process) stop() {
	p.once.Do(func() {
		p.cancel()
		select {
		case err := <-p.ended:
			if err != nil && fault.KindOf(err) != fault.Cancelled {
				p.w.t.Errorf("coordinator ended: %v", err)
			}
		case <-time.After(patience):
			p.w.t.Error("coordinator does not end")
		}
	})
}

// kill ends it as a crash does: it can't say anything any more.
func (p *process) kill() {
	p.bus.Close()
	p.once.Do(func() {
		p.cancel()
		<-p.ended
	})
}

// submit stores a job of the given number of partitions.
func (w *world) submit(partitions int, edits ...func(*job.Record)) job.ID {
	w.t.Helper()
	id, err := job.NewID()
	w.check(err)
	now := time.Now().UTC()
	r := &job.Record{
		Version: job.RecordVersion, ID: id, Tenant: job.MainTenant, InputHash: digest([]byte(id)), Kind: "toy",
		Circuit: toy.Circuit().ID(), ProverID: "00", Miner: "f01000", SectorNumber: 7, Output: job.OutputProof,
		SubmittedAt: now, State: job.Active,
	}
	var public []byte
	for i := range partitions {
		slice := w.made.slices[i%seedsMax]
		object, err := w.store.PutInput(w.t.Context(), wire.SliceName(id, i), slice)
		w.check(err)
		r.Partitions = append(r.Partitions, job.Partition{Stage: job.Waiting, StageAt: now, Slice: object})
		public = wire.AppendPublicInputs(public, w.made.inputs[i%seedsMax])
	}
	r.Inputs, err = w.store.PutInput(w.t.Context(), wire.InputsName(id), public)
	w.check(err)
	for _, edit := range edits {
		edit(r)
	}
	_, err = w.store.Create(w.t.Context(), r)
	w.check(err)
	return id
}

// until waits for something to become true, with what it looks at in the message of the failure.
func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			w.t.Fatalf("not in time: %s\n%s", what, w.describe())
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (w *world) describe() string {
	jobs, _ := w.store.List(store.Query{})
	text := ""
	for _, j := range jobs {
		data, _ := json.Marshal(j.Record)
		text += string(data) + "\n"
	}
	l := w.open()
	defer func() { _ = l.Close() }()
	names, _ := l.Nodes(context.Background())
	for _, name := range names {
		b, _ := l.Node(context.Background(), name)
		data, _ := json.Marshal(b)
		text += string(data) + "\n"
	}
	return text
}

func (w *world) record(id job.ID) *job.Record {
	j, ok := w.store.Get(id)
	if !ok {
		return &job.Record{}
	}
	return j.Record
}

// ends waits until a job has the state.
func (w *world) ends(id job.ID, state job.State) *job.Record {
	w.t.Helper()
	w.until(fmt.Sprintf("job %s is %s", id, state), func() bool { return w.record(id).State == state })
	return w.record(id)
}

// proof checks that a finished job's proof is what it should be.
func (w *world) proof(r *job.Record) {
	w.t.Helper()
	data, err := w.store.Proof(w.t.Context(), r)
	w.check(err)
	if len(data) != len(r.Partitions)*wire.ProofBytes {
		w.t.Errorf("proof of %d bytes for %d partitions", len(data), len(r.Partitions))
	}
	for i := range r.Partitions {
		want := w.made.proofs[r.Partitions[i].Slice.SHA256]
		if got := data[i*wire.ProofBytes : (i+1)*wire.ProofBytes]; string(got) != string(want) {
			w.t.Errorf("partition %d: not its proof", i)
		}
	}
}

// book is a node's book in the ledger.
func (w *world) book(node job.Node) *ledger.NodeBook {
	l := w.open()
	defer func() { _ = l.Close() }()
	b, err := l.Node(context.Background(), node)
	if err != nil {
		return &ledger.NodeBook{}
	}
	return b
}

// settles waits until nothing of any job is left: no reservation, no message (invariants 2 and 9).
func (w *world) settles(nodes ...job.Node) {
	w.t.Helper()
	for _, n := range nodes {
		w.until("ledger of "+string(n)+" is empty", func() bool { return len(w.book(n).Entries) == 0 })
		b := w.book(n)
		if len(b.Mismatch()) > 0 || len(b.Over()) > 0 {
			w.t.Errorf("book of %s: mismatch %v, over %v", n, b.Mismatch(), b.Over())
		}
	}
	for _, stream := range []string{wire.StreamSynth, wire.StreamProve, wire.StreamResult} {
		log, err := w.bus.Log(w.t.Context(), stream)
		w.check(err)
		w.until(stream+" is empty", func() bool {
			state, err := log.State(w.t.Context())
			return err == nil && state.Messages == 0
		})
	}
}

// leads waits until a leader answers.
func (w *world) leads() *wire.NodesReply {
	w.t.Helper()
	var reply *wire.NodesReply
	w.until("a leader answers", func() bool {
		var err error
		reply, err = ask[wire.NodesReply](w, wire.AdminSubject(wire.AdminNodes), &wire.Empty{})
		return err == nil && reply.Fault == nil
	})
	return reply
}

// ask sends a request, again while nobody answers for a moment, and decodes the answer.
func ask[A any, AP interface {
	*A
	wire.Body
}](w *world, subject string, q wire.Body) (AP, error) {
	data, err := wire.Encode(q)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), slack)
	defer cancel()
	for {
		m, err := w.bus.Request(ctx, bus.Message{Subject: subject, Data: data})
		if fault.KindOf(err) == fault.Transient && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		if err != nil {
			return nil, err
		}
		answer := AP(new(A))
		return answer, wire.Decode(m.Data, answer)
	}
}

// logger writes warnings into the test's log, and everything to standard error when C2_TEST_LOG asks for it.
func logger(t testing.TB) zerolog.Logger {
	if os.Getenv("C2_TEST_LOG") != "" {
		return zerolog.New(os.Stderr).Level(zerolog.DebugLevel).With().Timestamp().Logger()
	}
	return zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.WarnLevel)
}
