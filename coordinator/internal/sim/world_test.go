package sim_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	jobs "github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/memledger"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/proof/toy"
	"github.com/proofrack/proofrack/shared/wire"
)

// world is one run.
type world struct {
	t      *testing.T
	seed   uint64
	dice   *dice
	log    zerolog.Logger
	logged bytes.Buffer // written when the run has ended, so that it does not disturb
	made   *proved
	began  time.Time
	server *membus.Server
	bus    *membus.Bus // of the watchers
	ledger *memledger.Store
	hosts  []*host
	seats  []*instance
	clocks []*clock // of the seats
	redis  *clock   // of the ledger
	starts int
	jobs   int
	keys   []*job.Record // what was submitted under a key
	counts *counts
	// stepsMin is how many steps there are before the faults end.
	stepsMin int
	// healedAt is when all trouble ended, zero before; guarded by books.
	healedAt time.Time

	// books orders what changes the ledger, so that the watchers see it just before and after.
	books struct {
		sync.Mutex
		client ledger.Ledger
		last   map[job.Node]*ledger.NodeBook
		over   map[job.Node]time.Time // since when
	}

	mu sync.Mutex
	// lostAt is when a node's book was last lost or went back; declaredOf when the report was made that was
	// declared last.
	lostAt, declaredOf map[job.Node]time.Time
	// peace tells that nothing goes wrong in the run from its beginning.
	peace     bool
	calm      bool // no call is spoiled any more
	records   map[job.ID]*job.Record
	accepted  map[job.ID]bool
	cancelled map[job.ID]bool // the leader said that it does
	// leader is who leads, or led last, until when.
	leader      *instance
	leaderUntil context.Context      //nolint:containedctx // its end is what is watched
	results     map[job.Attempt]bool // proofs published
	beats       map[string]*wire.Beat
	failures    []string
	clients     sync.WaitGroup
}

// failuresMax bounds what one run tells.
const failuresMax = 5

func (w *world) fail(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.failures) < failuresMax {
		w.failures = append(w.failures, fmt.Sprintf("%7.1fs ", time.Since(w.began).Seconds())+fmt.Sprintf(format,
			args...))
	}
}

func (w *world) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.failures) > 0
}

func (w *world) told(a job.Attempt) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.results[a] = true
}

func (w *world) badness() trouble {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calm {
		return trouble{}
	}
	return trouble{lose: 0.01, loseAnswer: 0.01, twice: 0.02, late: 0.02}
}

func (w *world) ledgerBadness() trouble {
	b := w.badness()
	b.twice = 0
	b.lose, b.loseAnswer, b.late = b.lose/2, b.loseAnswer/2, b.late/2
	return b
}

func findCircuit(id string) (circuit.Circuit, error) {
	if id == toy.Circuit().ID() {
		return toy.Circuit(), nil
	}
	return catalog.Find(id)
}

func newWorld(t *testing.T, seed uint64, steps int, made *proved) *world {
	w := &world{
		t: t, seed: seed, dice: newDice(seed, "world"), log: zerolog.Nop(), made: made, began: time.Now(),
		counts: newCounts(), stepsMin: steps, server: membus.New(membus.Config{}), seats: make([]*instance, 2),
		lostAt: map[job.Node]time.Time{}, declaredOf: map[job.Node]time.Time{}, records: map[job.ID]*job.Record{},
		accepted: map[job.ID]bool{}, cancelled: map[job.ID]bool{}, results: map[job.Attempt]bool{},
		beats: map[string]*wire.Beat{},
	}
	w.peace = os.Getenv("SIM_CALM") != ""
	w.calm = w.peace
	if os.Getenv("SIM_LOG") != "" {
		w.log = zerolog.New(&w.logged).Level(zerolog.DebugLevel).Hook(zerolog.HookFunc(func(e *zerolog.Event,
			_ zerolog.Level, _ string) {
			e.Str("at", fmt.Sprintf("%.3f", time.Since(w.began).Seconds()))
		}))
	}
	w.bus = w.server.Connect(bus.Events{})
	w.must(w.bus.Setup(t.Context(), topology()))
	var err error
	w.redis = w.newClock("ledger")
	for seat := range w.seats {
		w.clocks = append(w.clocks, w.newClock(fmt.Sprintf("seat %d", seat)))
	}
	w.ledger, err = memledger.New(ledger.Config{Lease: 15 * time.Second}, w.redis.now)
	w.must(err)
	w.books.client, w.books.last = w.ledger.Open(), map[job.Node]*ledger.NodeBook{}
	w.books.over = map[job.Node]time.Time{}
	kv, err := w.bus.KV(t.Context(), wire.BucketJobs)
	w.must(err)
	stop, err := kv.Watch(t.Context(), wire.JobKeyPrefix, w.seeRecord, func() {})
	w.must(err)
	t.Cleanup(stop)
	for i := range 2 + w.dice.pick(2) {
		w.hosts = append(w.hosts, w.newHost(job.Node(fmt.Sprintf("n%d", i)), 2+w.dice.pick(3)))
	}
	return w
}

func (w *world) host(name job.Node) *host {
	return w.hosts[slices.IndexFunc(w.hosts, func(h *host) bool { return h.name == name })]
}

// topology is what a rack's bus has, as package coordinator sets it up.
func topology() bus.Topology {
	queue := func(name, subject string) bus.Stream {
		return bus.Stream{Name: name, Subjects: []string{subject}, Retention: bus.WorkQueue}
	}
	log := func(name, subject string) bus.Stream {
		return bus.Stream{
			Name: name, Subjects: []string{subject}, Retention: bus.Limits, BytesMax: 16 * bytesize.MiB,
			DropOldest: true,
		}
	}
	return bus.Topology{
		Replicas: 1,
		Streams: []bus.Stream{
			queue(wire.StreamSynth, wire.AllSynth), queue(wire.StreamProve, wire.AllProve),
			queue(wire.StreamResult, wire.AllResult), log(wire.StreamEvents, wire.AllEvents), log(wire.StreamDLQ,
				wire.AllDLQ),
		},
		Buckets: []bus.Bucket{{Name: wire.BucketJobs}, {Name: wire.BucketNodes}, {Name: wire.BucketLead}},
		Objects: []bus.ObjectBucket{
			{Name: wire.ObjectsSlices}, {Name: wire.ObjectsIn(job.MainTenant)},
			{Name: wire.ObjectsProofs(job.MainTenant)},
		},
	}
}

func (w *world) must(err error) {
	if err != nil {
		w.t.Fatalf("seed %d: %v", w.seed, err)
	}
}

// newRecord is a request; now and then one that was made before, or another one under its key.
func (w *world) newRecord(ctx context.Context, s *jobs.Store) (*job.Record, error) {
	w.jobs++
	id := job.ID(fmt.Sprintf("01900000-0000-7000-8000-%012x", w.jobs))
	sum := sha256.Sum256([]byte(id))
	now := time.Now().UTC()
	r := &job.Record{
		Version: job.RecordVersion, ID: id, Tenant: job.MainTenant, InputHash: hex.EncodeToString(sum[:]), Kind: "toy",
		Circuit: toy.Circuit().ID(), ProverID: "00", Miner: "f01000", SectorNumber: 7, Output: job.OutputProof,
		Priority: w.dice.pick(3), SubmittedAt: now, State: job.Active,
	}
	if w.dice.chance(0.6) {
		r.Key = fmt.Sprintf("key-%d", w.jobs)
		if len(w.keys) > 0 && w.dice.chance(0.5) {
			old := w.keys[w.dice.pick(len(w.keys))]
			r.Key = old.Key
			if w.dice.chance(0.8) {
				r.InputHash = old.InputHash
			}
		}
		w.keys = append(w.keys, r)
	}
	var public []byte
	for i := range 1 + w.dice.pick(partitionsMax) {
		seed := w.dice.pick(seedsMax)
		object, err := s.PutInput(ctx, wire.SliceName(id, i), w.made.slices[seed])
		if err != nil {
			return nil, err
		}
		r.Partitions = append(r.Partitions, job.Partition{Stage: job.Waiting, StageAt: now, Slice: object})
		public = wire.AppendPublicInputs(public, w.made.inputs[seed])
	}
	var err error
	r.Inputs, err = s.PutInput(ctx, wire.InputsName(id), public)
	return r, err
}

// submit asks some coordinator to take a job, once. Only what it answers counts.
func (w *world) submit() {
	up := slices.DeleteFunc(slices.Clone(w.seats), func(c *instance) bool { return c == nil || c.link.isPaused() })
	if len(up) == 0 {
		return
	}
	s, _ := up[w.dice.pick(len(up))].parts()
	if s == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	r, err := w.newRecord(ctx, s)
	if err != nil {
		cancel()
		return
	}
	w.clients.Go(func() {
		defer cancel()
		created, err := s.Create(ctx, r)
		if err != nil {
			return // refused, or unknown
		}
		got := created.Job.Record
		if created.Existing && (got.InputHash != r.InputHash || got.Key != r.Key) {
			w.fail("invariant 7: key %s of job %s gave job %s with another input", r.Key, r.ID, got.ID)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.accepted[got.ID] = true
	})
}

// cancel asks the leader to stop a job that has not ended.
func (w *world) cancel() {
	open := w.open()
	l, _, err := w.leading()
	if len(open) == 0 || err != nil {
		return
	}
	slices.SortFunc(open, func(a, b *job.Record) int {
		return byAttempt(job.Attempt{Job: a.ID},
			job.Attempt{Job: b.ID})
	})
	id := open[w.dice.pick(len(open))].ID
	w.clients.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_, err := l.Cancel(ctx, id, "cancelled by the simulation")
		if err != nil && fault.KindOf(err) == fault.Internal {
			w.fail("cancel job %s: %v", id, err)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cancelled[id] = w.cancelled[id] || err == nil
	})
}
