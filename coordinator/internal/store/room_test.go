package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// prove takes a job through all that makes its record grow, to its end.
func (w *world) prove(s *store.Store, id job.ID) {
	w.t.Helper()
	j, err := s.Fetch(w.t.Context(), id)
	w.check(err)
	for i := range j.Record.Partitions {
		var a job.Attempt
		_, err = s.Update(w.t.Context(), id, func(r *job.Record) (err error) {
			a, err = r.Claim(i, "node-with-a-long-name", "gpu-0a1b2c3d", time.Now())
			return err
		})
		w.check(err)
		_, err = s.Update(w.t.Context(), id, func(r *job.Record) error {
			last := r.Partitions[i].Last()
			last.Handoff, last.Build, last.DeviceUUID = "shm", "v1.0.0+0123456789ab", "GPU-0a1b2c3d-1111-2222-3333-444455556666"
			last.TraceID = strings.Repeat("a", 32)
			last.Seconds = map[string]float64{
				"slice": 0.123456789, "segment": 0.123456789, "synthesis": 0.123456789, "start": 0.123456789,
				"finish": 0.123456789, "ntt": 0.123456789, "msm": 0.123456789, "verify": 0.123456789,
			}
			return r.Accept(a, make([]byte, wire.ProofBytes), time.Now())
		})
		w.check(err)
	}
	j, err = s.Update(w.t.Context(), id, func(r *job.Record) error {
		return r.Complete(job.Object{Name: string(id), SHA256: strings.Repeat("b", 64)}, time.Now())
	})
	w.check(err)
	w.check(s.PutAudit(w.t.Context(), j.Record))
}

func tenPartitions(r *job.Record) {
	r.Partitions = nil
	for i := range 10 {
		r.Partitions = append(r.Partitions, job.Partition{
			Stage: job.Waiting, Slice: job.Object{Name: wire.SliceName(r.ID, i), Bytes: 1, SHA256: strings.Repeat("c", 64)},
		})
	}
}

// What is kept of ended jobs must never keep running ones from growing: a rack whose bucket of records is full claims
// and accepts nothing.
func TestHistoryGivesWayToRunningJobs(t *testing.T) {
	t.Parallel()
	const size = bytesize.MiB
	w := newWorldOf(t, size)
	s := w.open(func(c *store.Config) { c.BytesMax = int64(size) })
	lives, err := s.Create(t.Context(), record(t, tenPartitions))
	w.check(err)
	for i := range 200 { // some 4 MiB of records and audit records
		created, err := s.Create(t.Context(), record(t, tenPartitions))
		w.check(err)
		w.prove(s, created.Job.Record.ID)
		if i%4 == 3 {
			_, err := s.Sweep(t.Context(), nil, time.Now())
			w.check(err)
			w.check(s.PutMissingAudits(t.Context(), time.Now()))
		}
	}
	w.prove(s, lives.Job.Record.ID)
	if kept := s.Counts()[job.Done]; kept < 10 {
		t.Errorf("only %d ended jobs are kept in %s", kept, size)
	}
	audits, _, err := s.Audits(t.Context(), "", time.Time{}, 1000)
	w.check(err)
	if len(audits) < 10 {
		t.Errorf("only %d audit records are kept in %s", len(audits), size)
	}
}

// Jobs are taken only as long as all of them can grow to their end.
func TestNoMoreJobsAreTakenThanCanEnd(t *testing.T) {
	t.Parallel()
	const size = bytesize.MiB
	w := newWorldOf(t, size)
	s := w.open(func(c *store.Config) { c.BytesMax = int64(size) })
	var ids []job.ID
	for s.Room() == nil {
		created, err := s.Create(t.Context(), record(t, tenPartitions))
		w.check(err)
		if ids = append(ids, created.Job.Record.ID); len(ids) > 1000 {
			t.Fatal("a thousand jobs are taken into one MiB")
		}
	}
	if err := s.Room(); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("no room: %v", err)
	}
	if len(ids) < 10 {
		t.Errorf("only %d jobs are taken", len(ids))
	}
	for _, id := range ids {
		w.prove(s, id)
	}
	if err := s.Room(); err != nil {
		t.Errorf("all have ended: %v", err)
	}
}

// A tenant can fill its own share of the buckets, not the others'.
func TestTenantsHaveEqualSharesOfTheBuckets(t *testing.T) {
	t.Parallel()
	const size = 2 * bytesize.MiB
	w := newWorldOf(t, size)
	s := w.open(func(c *store.Config) { c.BytesMax, c.SliceBytesMax = int64(size), int64(size) })
	records := store.Records{Store: s, Tenants: 2}
	of := func(tenant job.Tenant, sliceBytes int64) func(*job.Record) {
		return func(r *job.Record) {
			tenPartitions(r)
			r.Tenant, r.Partitions[0].Slice.Bytes = tenant, sliceBytes
		}
	}
	var first job.ID
	accepted := 0
	for records.Room("busy", 1) == nil {
		created, err := s.Create(t.Context(), record(t, of("busy", 1)))
		w.check(err)
		if accepted++; accepted == 1 {
			first = created.Job.Record.ID
		}
	}
	if accepted < 10 || accepted > 40 { // a half of a half of 2 MiB, in records of some 17 KiB when they have grown
		t.Errorf("%d jobs of one tenant fill its share of records", accepted)
	}
	if err := records.Room("busy", 1); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("no room: %v", err)
	}
	if err := errors.Join(records.Room("other", 1), s.Room()); err != nil {
		t.Errorf("another tenant is refused: %v", err)
	}
	_, err := s.Create(t.Context(), record(t, of("large", int64(size)/4)))
	w.check(err)
	for bytes, want := range map[int64]fault.Kind{int64(size)/4 - 9: "", int64(size) / 4: fault.Exhausted} {
		if got := fault.KindOf(records.Room("large", bytes)); got != want {
			t.Errorf("%d further bytes of slices: %q, want %q", bytes, got, want)
		}
	}
	w.prove(s, first)
	if err := records.Room("busy", 1); err != nil {
		t.Errorf("one has ended: %v", err)
	}
}

// Slices of failed jobs are kept for replays, but not so that nobody can submit any more.
func TestSlicesOfFailedJobsGiveWay(t *testing.T) {
	t.Parallel()
	const size = bytesize.MiB
	w := newWorldOf(t, size)
	s := w.open(func(c *store.Config) { c.SliceBytesMax = int64(size) })
	submit := func() *job.Record {
		r := record(t)
		for i := range r.Partitions {
			var err error
			r.Partitions[i].Slice, err = s.PutInput(t.Context(), wire.SliceName(r.ID, i), make([]byte, 16<<10))
			w.check(err)
		}
		created, err := s.Create(t.Context(), r)
		w.check(err)
		return created.Job.Record
	}
	lives := submit()
	var failed []*job.Record
	for i := range 100 { // three times what the bucket holds
		failed = append(failed, submit())
		_, err := s.Update(t.Context(), failed[i].ID, func(r *job.Record) error {
			return r.FailWhole(&fault.Report{Kind: fault.Exhausted, Message: "deadline passed"}, time.Now())
		})
		w.check(err)
		if i%4 == 3 {
			_, err := s.Sweep(t.Context(), nil, time.Now())
			w.check(err)
		}
	}
	has := func(r *job.Record) bool {
		t.Helper()
		ok, err := s.HasSlice(t.Context(), r, 0)
		w.check(err)
		return ok
	}
	if !has(lives) {
		t.Error("the slice of a job that lives is gone")
	}
	if !has(failed[99]) || has(failed[0]) {
		t.Errorf("slice of the last failed job there: %v, of the first: %v", has(failed[99]), has(failed[0]))
	}
}
