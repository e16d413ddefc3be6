package intake_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/intake"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/seal"
	"github.com/proofrack/proofrack/shared/wire"
)

var (
	now    = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	number = uint64(4243)
)

const miner = "f01000"

// sample is a real C1 output of a 2 KiB sector.
func sample(version sdr.APIVersion, family sdr.Family) func() []byte {
	return sync.OnceValue(func() []byte {
		proof, err := sdr.FindRegisteredProof(sdr.Size2KiB, version, family)
		if err != nil {
			panic(err)
		}
		request := seal.NewRequest(proof.Config(), 1000, number, "intake")
		out, err := seal.Seal(context.Background(), &request, nil)
		if err != nil {
			panic(err)
		}
		var text bytes.Buffer
		if err := c1.WriteJSON(&text, out); err != nil {
			panic(err)
		}
		return text.Bytes()
	})
}

var (
	interactive    = sample(sdr.APIVersion1_1, sdr.Interactive)
	nonInteractive = sample(sdr.APIVersion1_2, sdr.NonInteractive)
)

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// stores are slices, inputs, records and gate in memory.
type stores struct {
	mu      sync.Mutex
	objects map[string][]byte
	inputs  map[string][]byte // tenant/name
	// slow are inputs, by tenant/name, whose bytes come when somebody says so.
	slow map[string]*slowSource
	// room is the size of each tenant's share of the object store; 0 is no bound.
	room    int64
	jobs    []*job.Record
	closed  error
	fits    error
	quota   error
	keyless error
	// putErr fails the put of this name.
	putErr string
	// created is the error of every Create; it may have stored the record all the same.
	created           error
	createdAllTheSame bool
}

func (s *stores) Put(_ context.Context, name string, data []byte) (job.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.putErr != "" && strings.HasSuffix(name, s.putErr) {
		return job.Object{}, fault.New(fault.Exhausted, "object store is full")
	}
	s.objects[name] = bytes.Clone(data)
	return job.Object{Name: name, Bytes: int64(len(data)), SHA256: digestOf(data)}, nil
}

func (s *stores) Delete(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, name)
	return nil
}

type inputsOf struct{ *stores }

func (s inputsOf) Open(_ context.Context, tenant job.Tenant, name string) (io.ReadCloser, error) {
	if slow := s.slow[string(tenant)+"/"+name]; slow != nil {
		return slow, nil
	}
	data, ok := s.inputs[string(tenant)+"/"+name]
	if !ok {
		return nil, fault.New(fault.NotFound, "no input %q", name)
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (s *stores) Find(_ context.Context, tenant job.Tenant, key string) (*job.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(tenant, key), nil
}

func (s *stores) find(tenant job.Tenant, key string) *job.Record {
	for _, r := range s.jobs {
		if key != "" && r.Tenant == tenant && r.Key == key && r.State != job.Failed && r.State != job.Cancelled {
			return r
		}
	}
	return nil
}

func (s *stores) Create(_ context.Context, r *job.Record) (*job.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.created != nil {
		if s.createdAllTheSame {
			s.jobs = append(s.jobs, r)
		}
		return nil, s.created
	}
	if existing := s.find(r.Tenant, r.Key); existing != nil {
		return existing, nil
	}
	s.jobs = append(s.jobs, r)
	return nil, nil
}

func (s *stores) LiveCount(tenant job.Tenant) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, r := range s.jobs {
		if r.Tenant == tenant && !r.State.Ended() {
			count++
		}
	}
	return count
}

func (s *stores) Room(tenant job.Tenant, bytes int64) error {
	if s.room > 0 && bytes > s.room {
		return fault.New(fault.Exhausted, "%d bytes are over the share of tenant %s, %d", bytes, tenant, s.room)
	}
	return nil
}

func (s *stores) Open(job.Tenant) error              { return s.closed }
func (s *stores) Fits(string) error                  { return s.fits }
func (s *stores) FitsQuota(job.Tenant, string) error { return s.quota }

func (s *stores) Verifiable(context.Context, string) error { return s.keyless }

func newIntake(t *testing.T, change func(*intake.Config)) (*intake.Intake, *stores) {
	t.Helper()
	config := intake.DefaultConfig()
	if change != nil {
		change(&config)
	}
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	s := &stores{objects: map[string][]byte{}, inputs: map[string][]byte{}}
	return intake.New(config, s, inputsOf{s}, s, s, func() time.Time { return now }), s
}

func request(change func(*wire.Submit)) *wire.Submit {
	r := &wire.Submit{Miner: miner, SectorNumber: &number, Inline: interactive()}
	if change != nil {
		change(r)
	}
	return r
}

func (s *stores) wantNothing(t *testing.T) {
	t.Helper()
	if len(s.jobs) != 0 || len(s.objects) != 0 {
		t.Errorf("left behind: %d jobs, objects %v", len(s.jobs), slices.Collect(maps.Keys(s.objects)))
	}
}

func TestAcceptedJobHasSlicesInputsAndRecord(t *testing.T) {
	t.Parallel()
	in, s := newIntake(t, nil)
	reply := in.Submit(t.Context(), "t1", request(func(r *wire.Submit) { r.Key, r.Priority = "k", 7 }))
	if reply.Fault != nil {
		t.Fatal(reply.Fault)
	}
	if len(s.jobs) != 1 || s.jobs[0].ID != reply.Job || reply.Existing {
		t.Fatalf("%+v, %d jobs", reply, len(s.jobs))
	}
	r := s.jobs[0]
	if r.Circuit != "porep-2KiB" || r.Tenant != "t1" || r.Miner != miner || r.SectorNumber != number ||
		r.Priority != 7 || r.State != job.Active || r.Output != job.OutputProof {
		t.Errorf("%+v", r)
	}
	c, err := catalog.Find(r.Circuit)
	if err != nil {
		t.Fatal(err)
	}
	public, err := wire.ParsePublicInputs(s.objects[r.Inputs.Name], len(r.Partitions))
	if err != nil {
		t.Fatal(err)
	}
	for partition, p := range r.Partitions {
		data := s.objects[p.Slice.Name]
		if p.Slice.SHA256 != digestOf(data) || p.Slice.Bytes != int64(len(data)) || p.Stage != job.Waiting {
			t.Errorf("partition %d: %+v", partition, p)
		}
		w, err := c.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(w.PublicInputs(), public[partition]) {
			t.Errorf("partition %d: public inputs differ from those of its slice", partition)
		}
	}
}

func TestEqualKeyAndEqualInputGiveTheSameJob(t *testing.T) { // invariant 7
	t.Parallel()
	in, s := newIntake(t, nil)
	keyed := func(r *wire.Submit) { r.Key = "k" }
	var wg sync.WaitGroup
	replies := make([]*wire.SubmitReply, 6)
	for i := range replies {
		wg.Go(func() { replies[i] = in.Submit(context.Background(), "t1", request(keyed)) })
	}
	wg.Wait()
	fresh := 0
	for _, reply := range replies {
		if reply.Fault != nil || reply.Job != replies[0].Job {
			t.Fatalf("%+v, want job %s", reply, replies[0].Job)
		}
		if !reply.Existing {
			fresh++
		}
	}
	if fresh != 1 || len(s.jobs) != 1 || len(s.objects) != 2 {
		t.Errorf("%d new, %d jobs, %d objects", fresh, len(s.jobs), len(s.objects))
	}
	other := in.Submit(t.Context(), "t1", request(func(r *wire.Submit) { r.Key, r.Output = "k", job.OutputPartitions }))
	if other.Fault == nil || other.Fault.Kind != fault.Conflict ||
		!strings.Contains(other.Fault.Message, string(replies[0].Job)) {
		t.Errorf("other input under the same key: %+v", other.Fault)
	}
	if reply := in.Submit(t.Context(), "t2", request(keyed)); reply.Fault != nil || reply.Existing {
		t.Errorf("another tenant's key is its own: %+v", reply)
	}
	s.jobs[0].State = job.Failed
	if reply := in.Submit(t.Context(), "t1", request(keyed)); reply.Fault != nil || reply.Existing {
		t.Errorf("a failed job frees its key: %+v", reply)
	}
}

func TestRefusalsAreTypedAndLeaveNothing(t *testing.T) {
	t.Parallel()
	flipped := bytes.Replace(interactive(), []byte(`"comm_r":[`), []byte(`"comm_r":[1`), 1)
	past := now.Add(-time.Second)
	wrong := uint64(4244)
	byObject := func(data []byte) func(*wire.Submit) {
		return func(r *wire.Submit) { r.Inline, r.Object = nil, &job.Object{Name: "c1", SHA256: digestOf(data)} }
	}
	inline := func(data []byte) func(*wire.Submit) { return func(r *wire.Submit) { r.Inline = data } }
	stored := func(name string, data []byte) func(*stores) { return func(s *stores) { s.inputs[name] = data } }
	whole := interactive()
	for name, c := range map[string]struct {
		request func(*wire.Submit)
		stores  func(*stores)
		kind    fault.Kind
		says    string
	}{
		"paused": {
			nil, func(s *stores) { s.closed = fault.New(fault.Transient, "intake is paused") }, fault.Transient, "paused",
		},
		"other tenant": {func(r *wire.Submit) { r.Tenant = "t2" }, nil, fault.Invalid, "t2"},
		"garbage":      {inline([]byte("garbage")), nil, fault.Invalid, "input is refused"},
		"cut":          {inline(whole[:len(whole)/2]), nil, fault.Invalid, "input is refused"},
		"wrong comm_r": {inline(flipped), nil, fault.Invalid, "comm_r"},
		"wrong sector": {func(r *wire.Submit) { r.SectorNumber = &wrong }, nil, fault.Invalid, "replica"},
		"no sector":    {func(r *wire.Submit) { r.SectorNumber = nil }, nil, fault.Invalid, "sector number"},
		"wrong miner":  {func(r *wire.Submit) { r.Miner = "f01001" }, nil, fault.Invalid, "replica"},
		"no miner":     {func(r *wire.Submit) { r.Miner = "" }, nil, fault.Invalid, ""},
		"unknown kind": {func(r *wire.Submit) { r.Kind = "post" }, nil, fault.Invalid, "post"},
		"deadline passed": {
			func(r *wire.Submit) { r.Deadline = &past }, nil, fault.Invalid, "deadline",
		},
		"non-interactive": {inline(nonInteractive()), nil, fault.Invalid, "aggregated"},
		"too large for all": {
			nil, func(s *stores) { s.fits = fault.New(fault.Exhausted, "needs 5, largest node has 4") }, fault.Exhausted,
			"needs 5",
		},
		"too large for its quota": {
			func(r *wire.Submit) { r.WaitForNode = true },
			func(s *stores) { s.quota = fault.New(fault.Exhausted, "needs 5, the quota is 4") }, fault.Exhausted, "needs 5",
		},
		"path not allowed": {func(r *wire.Submit) {
			r.Inline, r.Path, r.SHA256 = nil, "/etc/passwd", digestOf(nil)
		}, nil, fault.Invalid, "not allowed"},
		"url not allowed": {func(r *wire.Submit) {
			r.Inline, r.URL, r.SHA256 = nil, "http://h/x", digestOf(nil)
		}, nil, fault.Invalid, "not allowed"},
		"object not there": {byObject(whole), nil, fault.NotFound, ""},
		"another tenant's": {byObject(whole), stored("t2/c1", whole), fault.NotFound, ""},
		"wrong digest":     {byObject([]byte("x")), stored("t1/c1", whole), fault.Corrupt, "SHA-256"},
		"half an upload":   {byObject(whole), stored("t1/c1", whole[:5000]), fault.Corrupt, "SHA-256"},
		"more than it says": {func(r *wire.Submit) {
			r.Inline, r.Object = nil, &job.Object{Name: "c1", Bytes: 100, SHA256: digestOf(whole)}
		}, stored("t1/c1", whole), fault.Invalid, "larger"},
		"over its share": {nil, func(s *stores) { s.room = 5 }, fault.Exhausted, "share of tenant t1"},
		"store full":     {nil, func(s *stores) { s.putErr = ".inputs" }, fault.Exhausted, "full"},
		"no verifying key": {
			func(r *wire.Submit) { r.WaitForNode = true },
			func(s *stores) { s.keyless = fault.New(fault.Transient, "no .vk file") }, fault.Transient, ".vk",
		},
		"record not created": {
			nil, func(s *stores) { s.created = fault.New(fault.Exhausted, "no room") }, fault.Exhausted, "no room",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in, s := newIntake(t, nil)
			if c.stores != nil {
				c.stores(s)
			}
			reply := in.Submit(t.Context(), "t1", request(c.request))
			if reply.Fault == nil || reply.Fault.Kind != c.kind || !strings.Contains(reply.Fault.Message, c.says) {
				t.Errorf("%+v, want %s with %q", reply.Fault, c.kind, c.says)
			}
			s.wantNothing(t)
		})
	}
}

// The answer to the write of the record is lost, as when NATS restarts: the job may be there. Without its slices it
// would fail, and the client that submits again under its key would be given that job.
func TestSlicesStayWhenTheRecordMayBeThere(t *testing.T) {
	t.Parallel()
	in, s := newIntake(t, nil)
	s.created, s.createdAllTheSame = fault.New(fault.Transient, "no answer"), true
	again := request(func(r *wire.Submit) { r.Key = "k" })
	if reply := in.Submit(t.Context(), "t1", again); reply.Fault == nil || reply.Fault.Kind != fault.Transient {
		t.Fatalf("%+v", reply)
	}
	s.created = nil
	reply := in.Submit(t.Context(), "t1", again)
	if reply.Fault != nil || !reply.Existing {
		t.Fatalf("submitted again: %+v", reply)
	}
	for _, p := range s.jobs[0].Partitions {
		if s.objects[p.Slice.Name] == nil {
			t.Errorf("the accepted job's slice %s is gone", p.Slice.Name)
		}
	}
}

func TestNonInteractiveAsPartitions(t *testing.T) {
	t.Parallel()
	in, s := newIntake(t, nil)
	reply := in.Submit(t.Context(), "t1", request(func(r *wire.Submit) {
		r.Inline, r.Output = nil, job.OutputPartitions
		r.Object = &job.Object{Name: "c1", Bytes: int64(len(nonInteractive())), SHA256: digestOf(nonInteractive())}
		s.inputs["t1/c1"] = nonInteractive()
	}))
	if reply.Fault != nil || len(s.jobs[0].Partitions) < 2 {
		t.Fatalf("%+v", reply)
	}
}

func TestB41TooLargeJobWaitsWhenAsked(t *testing.T) {
	t.Parallel()
	in, s := newIntake(t, nil)
	s.fits = fault.New(fault.Exhausted, "needs 5, largest node has 4")
	reply := in.Submit(t.Context(), "t1", request(func(r *wire.Submit) { r.WaitForNode = true }))
	if reply.Fault != nil || !s.jobs[0].WaitForNode {
		t.Errorf("%+v", reply)
	}
}

func TestTenantsAreBoundedEachForItself(t *testing.T) {
	t.Parallel()
	in, s := newIntake(t, func(c *intake.Config) { c.SubmitsPerMinute, c.SubmitBurst, c.LiveJobsMax = 60, 3, 2 })
	for i, want := range []fault.Kind{"", "", fault.Exhausted, fault.Exhausted} {
		reply := in.Submit(t.Context(), "t1", request(nil))
		if got := fault.KindOf(reply.Err()); got != want {
			t.Errorf("request %d: %q, want %q", i, got, want)
		}
	}
	if reply := in.Submit(t.Context(), "t2", request(nil)); reply.Fault != nil {
		t.Errorf("another tenant: %v", reply.Fault)
	}
	if len(s.jobs) != 3 {
		t.Errorf("%d jobs", len(s.jobs))
	}
}

func TestEndOfTheRequestIsTheEndOfTheWork(t *testing.T) {
	t.Parallel()
	in, s := newIntake(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if reply := in.Submit(ctx, "t1", request(nil)); fault.KindOf(reply.Err()) != fault.Cancelled {
		t.Errorf("%+v", reply.Fault)
	}
	s.wantNothing(t)
}

func TestConfigNamesEveryProblem(t *testing.T) {
	t.Parallel()
	c := intake.Config{PathPrefixes: []string{"/", "rel", "/ok/../x"}, URLAddresses: []string{"10.1"}}
	err := c.Validate()
	for _, part := range []string{"submit_burst", "in_flight_bytes_max", "checks_max", `"/"`, `"rel"`, "url_addresses"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not name %s", err, part)
		}
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		t.Error("problems are not joined")
	}
}
