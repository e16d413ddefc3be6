package store_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// world is a bus with the store's buckets.
type world struct {
	t      *testing.T
	server *membus.Server
	bus    bus.Bus
}

func newWorld(t *testing.T) *world { return newWorldOf(t, 64*bytesize.MiB) }

// newWorldOf has buckets of a size.
func newWorldOf(t *testing.T, size bytesize.Bytes) *world {
	t.Helper()
	w := &world{t: t, server: membus.New(membus.Config{})}
	w.bus = w.server.Connect(bus.Events{})
	t.Cleanup(w.bus.Close)
	w.check(w.bus.Setup(t.Context(), bus.Topology{
		Buckets: []bus.Bucket{{Name: wire.BucketJobs, BytesMax: size}, {Name: wire.BucketNodes, BytesMax: size}},
		Objects: []bus.ObjectBucket{
			{Name: wire.ObjectsSlices, BytesMax: size}, {Name: wire.ObjectsIn(job.MainTenant), BytesMax: size},
			{Name: wire.ObjectsProofs(job.MainTenant), BytesMax: size},
		},
	}))
	return w
}

func (w *world) check(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) open(edits ...func(*store.Config)) *store.Store {
	w.t.Helper()
	c := store.DefaultConfig()
	c.KeyGrace = 100 * time.Millisecond
	for _, edit := range edits {
		edit(&c)
	}
	b := w.server.Connect(bus.Events{})
	s, err := store.Open(w.t.Context(), b, c, zerolog.Nop())
	w.check(err)
	w.t.Cleanup(func() { s.Close(); b.Close() })
	return s
}

func record(t *testing.T, edits ...func(*job.Record)) *job.Record {
	t.Helper()
	id, err := job.NewID()
	if err != nil {
		t.Fatal(err)
	}
	r := &job.Record{
		ID: id, Tenant: job.MainTenant, InputHash: "aa", Circuit: "toy", State: job.Active, SubmittedAt: epoch,
		Partitions: []job.Partition{{Stage: job.Waiting}, {Stage: job.Waiting}},
	}
	for _, edit := range edits {
		edit(r)
	}
	return r
}

func keyed(key, hash string) func(*job.Record) {
	return func(r *job.Record) { r.Key, r.InputHash = key, hash }
}

func (w *world) until(what string, ok func() bool) {
	w.t.Helper()
	for began := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(began) > time.Minute {
			w.t.Fatalf("not in time: %s", what)
		}
	}
}

func TestRecordsAreSeenByEveryInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.open()
	r := record(t)
	_, err := a.Create(t.Context(), r)
	w.check(err)
	b := w.open() // sees what was there before
	if _, ok := b.Get(r.ID); !ok {
		t.Fatal("a record that was there is not seen at once")
	}
	feed := b.Follow()
	defer feed.Close()
	if got := feed.Take(); !cmp.Equal(got, []job.ID{r.ID}) {
		t.Errorf("a new feed has %v", got)
	}
	_, err = a.Update(t.Context(), r.ID, func(r *job.Record) error {
		_, err := r.Claim(0, "n1", "cpu", epoch)
		return err
	})
	w.check(err)
	<-feed.Ready()
	w.until("the change is seen", func() bool {
		j, _ := b.Get(r.ID)
		return j.Record.Partitions[0].Stage == job.Reserved
	})
	if r.Partitions[0].Stage != job.Waiting {
		t.Error("an update changed the caller's record")
	}
}

func TestUpdateStartsAgainWhenSomebodyElseWasFaster(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.open(), w.open()
	r := record(t)
	_, err := a.Create(t.Context(), r)
	w.check(err)
	w.until("both see it", func() bool { _, ok := b.Get(r.ID); return ok })
	calls := 0
	j, err := a.Update(t.Context(), r.ID, func(r *job.Record) error {
		if calls++; calls == 1 {
			_, err := b.Update(t.Context(), r.ID, func(r *job.Record) error { r.LateCount = 5; return nil })
			w.check(err)
		}
		r.LateCount++
		return nil
	})
	w.check(err)
	if calls != 2 || j.Record.LateCount != 6 {
		t.Errorf("%d calls, count %d", calls, j.Record.LateCount)
	}
	refused := errors.New("no")
	if _, err := a.Update(t.Context(), r.ID, func(*job.Record) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("refused change: %v", err)
	}
	same, err := a.Update(t.Context(), r.ID, func(*job.Record) error { return store.ErrUnchanged })
	if err != nil || same.Revision != j.Revision {
		t.Errorf("unchanged: %v, revision %d", err, same.Revision)
	}
	_, err = a.Update(t.Context(), record(t).ID, func(*job.Record) error { return nil })
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("unknown job: %v", err)
	}
}

// Invariant 7.
func TestKeysStandForOneJob(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end      func(*job.Record) error
		hash     string
		existing bool
		kind     fault.Kind
	}{
		"live, equal input": {nil, "aa", true, ""},
		"live, other input": {nil, "bb", false, fault.Conflict},
		"done, equal input": {func(r *job.Record) error {
			for i := range r.Partitions {
				r.Partitions[i].Stage, r.Partitions[i].Proof = job.Verified, []byte{1}
			}
			return r.Complete(job.Object{}, epoch)
		}, "aa", true, ""},
		"done, other input": {func(r *job.Record) error {
			for i := range r.Partitions {
				r.Partitions[i].Stage, r.Partitions[i].Proof = job.Verified, []byte{1}
			}
			return r.Complete(job.Object{}, epoch)
		}, "bb", false, ""},
		"failed, equal input": {func(r *job.Record) error {
			return r.FailWhole(&fault.Report{Kind: fault.Invalid}, epoch)
		}, "aa", false, ""},
		"cancelled, other input": {func(r *job.Record) error {
			if err := r.Cancel(nil, epoch); err != nil {
				return err
			}
			return r.Stopped(epoch)
		}, "bb", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			s := w.open()
			first, err := s.Create(t.Context(), record(t, keyed("k", "aa")))
			w.check(err)
			if c.end != nil {
				_, err := s.Update(t.Context(), first.Job.Record.ID, c.end)
				w.check(err)
			}
			other := w.open()
			second, err := other.Create(t.Context(), record(t, keyed("k", c.hash)))
			if fault.KindOf(err) != c.kind {
				t.Fatalf("create: %v", err)
			}
			if err != nil {
				return
			}
			if second.Existing != c.existing || (second.Job.Record.ID == first.Job.Record.ID) != c.existing {
				t.Errorf("existing %v, same job %v", second.Existing, second.Job.Record.ID == first.Job.Record.ID)
			}
			found, err := other.Find(t.Context(), job.MainTenant, "k")
			if err != nil || found == nil || found.ID != second.Job.Record.ID {
				t.Errorf("find: %v, %v", err, found)
			}
			mine, err := other.Confirm(t.Context(), first.Job.Record)
			if err != nil || mine != c.existing {
				t.Errorf("the first job's key is its own: %v, %v", mine, err)
			}
			if free, err := other.Find(t.Context(), "other", "k"); err != nil || free != nil {
				t.Errorf("another tenant's key: %v, %v", free, err)
			}
		})
	}
}

func TestOfSubmitsAtTheSameTimeOneMakesAJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const n = 8
	ids := make([]job.ID, n)
	fresh := make([]bool, n)
	var wg sync.WaitGroup
	for i := range n {
		s, r := w.open(), record(t, keyed("k", "aa"))
		wg.Go(func() {
			c, err := s.Create(context.Background(), r)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i], fresh[i] = c.Job.Record.ID, !c.Existing
		})
	}
	wg.Wait()
	count := 0
	for i := range n {
		if ids[i] != ids[0] {
			t.Errorf("two jobs: %s and %s", ids[0], ids[i])
		}
		if fresh[i] {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d of them made the job", count)
	}
	s := w.open()
	if jobs, _ := s.List(store.Query{}); len(jobs) != 1 {
		t.Errorf("%d records", len(jobs))
	}
}

// A coordinator that dies between key entry and record leaves a key that others take over; when it was only slow, its
// record is the one that goes.
func TestAKeyWithoutARecordIsTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open()
	kv, err := w.bus.KV(t.Context(), wire.BucketJobs)
	w.check(err)
	slow := record(t, keyed("k", "aa"))
	key := wire.IdempotencyKey(job.MainTenant, "k")
	_, err = kv.Create(t.Context(), key, fmt.Appendf(nil, `{"v":1,"job_id":%q,"input_hash":"aa"}`, slow.ID))
	w.check(err)
	began := time.Now()
	c, err := s.Create(t.Context(), record(t, keyed("k", "bb")))
	if err != nil || c.Existing {
		t.Fatalf("create: %v, existing %v", err, c.Existing)
	}
	if took := time.Since(began); took < 100*time.Millisecond {
		t.Errorf("taken over after %s, before its writer could be done", took)
	}
	if mine, err := s.Confirm(t.Context(), slow); err != nil || mine {
		t.Errorf("the slow one's key is its own: %v, %v", mine, err)
	}
	if mine, err := s.Confirm(t.Context(), c.Job.Record); err != nil || !mine {
		t.Errorf("the new one's key is not its own: %v, %v", mine, err)
	}
}

// B80: what is kept levels off, by age and by number; objects and keys go with their jobs (invariant 9).
func TestB80RetentionByAgeAndNumber(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(func(c *store.Config) { c.Retention, c.RetentionCount, c.OrphanAge = time.Hour, 3, time.Millisecond })
	now := time.Now()
	var ids []job.ID
	for i := range 6 {
		r := record(t, keyed(fmt.Sprintf("k%d", i), "aa"))
		for p := range r.Partitions {
			var err error
			r.Partitions[p].Slice, err = s.PutInput(t.Context(), wire.SliceName(r.ID, p), []byte("slice"))
			w.check(err)
		}
		_, err := s.Create(t.Context(), r)
		w.check(err)
		ended := now.Add(-time.Duration(10*i) * time.Minute) // the oldest of six is 50 minutes old
		if i == 5 {
			continue // lives
		}
		_, err = s.Update(t.Context(), r.ID, func(r *job.Record) error {
			return r.FailWhole(&fault.Report{Kind: fault.Internal, Message: "x"}, ended)
		})
		w.check(err)
		ids = append(ids, r.ID)
	}
	orphan, err := job.NewID()
	w.check(err)
	_, err = s.PutInput(t.Context(), wire.SliceName(orphan, 0), []byte("left by a crash"))
	w.check(err)
	time.Sleep(5 * time.Millisecond)
	sweep := func(at time.Time) store.Swept {
		t.Helper()
		swept, err := s.Sweep(t.Context(), []job.Tenant{job.MainTenant}, at)
		w.check(err)
		return swept
	}
	if got := sweep(time.Now()); got.Jobs != 2 || got.Objects != 1 {
		t.Errorf("first sweep %+v, want 2 jobs over the number and the orphan's object", got)
	}
	if got := s.Counts(); got[job.Failed] != 3 || got[job.Active] != 1 {
		t.Errorf("jobs left: %v", got)
	}
	if got := sweep(now.Add(2 * time.Hour)); got.Jobs != 3 {
		t.Errorf("second sweep %+v, want 3 jobs over the age", got)
	}
	kv, err := w.bus.KV(t.Context(), wire.BucketJobs)
	w.check(err)
	keys, err := kv.Keys(t.Context(), "")
	w.check(err)
	if len(keys) != 2 {
		t.Errorf("keys left: %v, want the record and key of the job that lives", keys)
	}
	objects, err := w.bus.Objects(t.Context(), wire.ObjectsSlices)
	w.check(err)
	list, err := objects.List(t.Context())
	w.check(err)
	if len(list) != 2 {
		t.Errorf("objects left: %v, want the slices of the job that lives", list)
	}
	for _, id := range ids {
		if _, lost := s.Lost(id); lost {
			t.Errorf("job %s counts as lost, it was removed", id)
		}
	}
}

// A proof that was stored before its job was cancelled goes at the next sweep, however young it is (invariant 9). Those
// of jobs that are at work or done stay.
func TestProofOfACancelledJobIsSweptAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open()
	stored := func(change func(*job.Record) error) job.ID {
		t.Helper()
		r := record(t, keyed("", "aa"))
		_, err := s.Create(t.Context(), r)
		w.check(err)
		_, err = s.PutProof(t.Context(), r, []byte("proof"))
		w.check(err)
		_, err = s.Update(t.Context(), r.ID, change)
		w.check(err)
		return r.ID
	}
	report := &fault.Report{Kind: fault.Cancelled, Message: "x"}
	stored(func(r *job.Record) error {
		return errors.Join(r.Cancel(report, time.Now()), r.Stopped(time.Now()))
	})
	stored(func(r *job.Record) error { return r.FailWhole(report, time.Now()) })
	alive := stored(func(r *job.Record) error { r.LateCount++; return nil })
	ending := stored(func(r *job.Record) error { return r.Cancel(report, time.Now()) })
	swept, err := s.Sweep(t.Context(), nil, time.Now())
	w.check(err)
	objects, err := w.bus.Objects(t.Context(), wire.ObjectsProofs(job.MainTenant))
	w.check(err)
	list, err := objects.List(t.Context())
	w.check(err)
	var names []string
	for _, o := range list {
		names = append(names, o.Name)
	}
	want := []string{string(alive), string(ending)}
	slices.Sort(names)
	slices.Sort(want)
	if !slices.Equal(names, want) || swept.Objects != 2 {
		t.Errorf("%+v were swept, proofs of %v are left, want those of %v", swept, names, want)
	}
}

func TestAKeyWithoutARecordIsSweptAfterTwoLooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open()
	kv, err := w.bus.KV(t.Context(), wire.BucketJobs)
	w.check(err)
	_, err = kv.Create(t.Context(), wire.IdempotencyKey(job.MainTenant, "k"),
		fmt.Appendf(nil, `{"v":1,"job_id":%q,"input_hash":"aa"}`, record(t).ID))
	w.check(err)
	for look, want := range []int{0, 1, 0} {
		swept, err := s.Sweep(t.Context(), nil, time.Now())
		if err != nil || swept.Keys != want {
			t.Errorf("look %d removed %d keys, want %d (%v)", look, swept.Keys, want, err)
		}
	}
}

func TestARecordThatSomebodyDeletesIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open()
	r := record(t)
	_, err := s.Create(t.Context(), r)
	w.check(err)
	kv, err := w.bus.KV(t.Context(), wire.BucketJobs)
	w.check(err)
	w.check(kv.Delete(t.Context(), wire.JobKey(r.ID), 0))
	w.until("it is gone", func() bool { _, ok := s.Get(r.ID); return !ok })
	if _, lost := s.Lost(r.ID); !lost {
		t.Error("it does not count as lost")
	}
}

func TestListsArePagedNewestFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open()
	var want []job.ID
	for i := range 5 {
		r := record(t)
		if i == 2 {
			r.Tenant = "other"
		}
		_, err := s.Create(t.Context(), r)
		w.check(err)
		if i != 2 {
			want = append([]job.ID{r.ID}, want...)
		}
	}
	var got []job.ID
	var before job.ID
	for {
		page, more := s.List(store.Query{Tenant: job.MainTenant, Before: before, Limit: 3})
		for _, j := range page {
			got = append(got, j.Record.ID)
		}
		if !more {
			break
		}
		before = got[len(got)-1]
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A record stays below what the bus carries, however much its attempts had to say.
func TestALongHistoryIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open()
	long := strings.Repeat("x", fault.MessageBytesMax)
	r := record(t, func(r *job.Record) {
		r.Partitions = make([]job.Partition, 126)
		for i := range r.Partitions {
			p := &r.Partitions[i]
			p.Stage = job.Waiting
			for k := range job.AttemptsKept {
				p.Attempts = append(p.Attempts, job.AttemptRecord{
					Fence: uint64(k), Outcome: job.OutcomeFailed, Fault: &fault.Report{Kind: fault.Internal, Message: long},
				})
			}
		}
	})
	c, err := s.Create(t.Context(), r)
	w.check(err)
	again, err := w.open().Fetch(t.Context(), r.ID)
	w.check(err)
	last := again.Record.Partitions[0].Last()
	if last.Fence != job.AttemptsKept-1 || last.Fault == nil || last.Fault.Message == "" {
		t.Errorf("the last attempt lost its reason: %+v", last)
	}
	if c.Job.Record.ID != again.Record.ID {
		t.Error("another record")
	}
}

func TestMarksAndIntakeOutliveTheirWriter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.open()
	w.check(a.SetIntake(t.Context(), store.Intake{Paused: true, Reason: "why"}))
	_, err := a.SetMark(t.Context(), "n1", func(m *store.NodeMark) {
		m.Draining = true
		m.Quarantined["gpu0"] = store.Quarantine{Reason: "bad proofs", At: epoch}
	})
	w.check(err)
	b := w.open()
	if i := b.Intake(); !i.Paused || i.Reason != "why" {
		t.Errorf("intake %+v", i)
	}
	want := map[job.Node]store.NodeMark{"n1": {
		Draining: true, Quarantined: map[job.Device]store.Quarantine{"gpu0": {Reason: "bad proofs", At: epoch}},
	}}
	if d := cmp.Diff(want, b.Marks()); d != "" {
		t.Error(d)
	}
	_, err = b.SetMark(t.Context(), "n1", func(m *store.NodeMark) {
		m.Draining = false
		delete(m.Quarantined, "gpu0")
	})
	w.check(err)
	w.until("the first one sees the change", func() bool { return len(a.Marks()) == 0 })
}

func TestStoredInputsAreCheckedAgainstTheirDigest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open()
	r := record(t)
	public := make([]byte, 2*32)
	public[31] = 7
	var err error
	r.Inputs, err = s.PutInput(t.Context(), wire.InputsName(r.ID), public)
	w.check(err)
	inputs, err := s.Inputs(t.Context(), r)
	if err != nil || len(inputs) != 2 || len(inputs[0]) != 1 || inputs[0][0].Uint64() != 7 {
		t.Errorf("inputs %v, %v", inputs, err)
	}
	public[31] = 8
	_, err = s.PutInput(t.Context(), wire.InputsName(r.ID), public)
	w.check(err)
	if _, err := s.Inputs(t.Context(), r); fault.KindOf(err) != fault.Corrupt {
		t.Errorf("other bytes: %v", err)
	}
	w.check(s.DropInput(t.Context(), r.ID, 2))
	if _, err := s.Inputs(t.Context(), r); fault.KindOf(err) != fault.NotFound {
		t.Errorf("no bytes: %v", err)
	}
}

// All disks were lost, and buckets are not made again yet: what can't be stored is to be tried again, and not refused
// as if the client had named something that does not exist.
func TestWritesToALostBucketAreTransient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open()
	r := record(t)
	w.server.Wipe()
	if _, err := s.PutInput(t.Context(), wire.SliceName(r.ID, 0), []byte{1}); fault.KindOf(err) != fault.Transient {
		t.Errorf("a slice: %v", err)
	}
	if _, err := s.Create(t.Context(), r); fault.KindOf(err) != fault.Transient {
		t.Errorf("a record: %v", err)
	}
}
