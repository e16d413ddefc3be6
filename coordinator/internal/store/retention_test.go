package store_test

import (
	"encoding/json"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// ended makes ended jobs of a tenant and gives their ids.
func (w *world) ended(s *store.Store, tenant job.Tenant, count int, edits ...func(*job.Record)) (ids []job.ID) {
	w.t.Helper()
	for range count {
		r := record(w.t, append(edits, func(r *job.Record) { r.Tenant = tenant })...)
		_, err := s.Create(w.t.Context(), r)
		w.check(err)
		_, err = s.Update(w.t.Context(), r.ID, func(r *job.Record) error {
			return r.FailWhole(&fault.Report{Kind: fault.Internal, Message: "x"}, time.Now())
		})
		w.check(err)
		ids = append(ids, r.ID)
	}
	return ids
}

func (w *world) wantKept(s *store.Store, what string, ids []job.ID, want bool) {
	w.t.Helper()
	for i, id := range ids {
		if _, ok := s.Get(id); ok != want {
			w.t.Errorf("%s: job %d of %d is kept: %v", what, i, len(ids), ok)
		}
	}
}

// A tenant with many jobs pushes out its own results, not another tenant's.
func TestRetentionCountsEachTenantForItself(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(func(c *store.Config) { c.RetentionCount = 5 })
	quiet := w.ended(s, "quiet", 3)
	busy := w.ended(s, "busy", 20)
	_, err := s.Sweep(t.Context(), nil, time.Now())
	w.check(err)
	w.wantKept(s, "quiet", quiet, true)
	w.wantKept(s, "busy, older", busy[:15], false)
	w.wantKept(s, "busy, latest", busy[15:], true)
}

// The same for want of room: what is over an equal share goes first.
func TestRetentionForWantOfRoomTakesFromThoseWithMost(t *testing.T) {
	t.Parallel()
	const size = bytesize.MiB
	w := newWorldOf(t, size)
	s := w.open(func(c *store.Config) { c.BytesMax = int64(size) })
	quiet := w.ended(s, "quiet", 5, tenPartitions)
	busy := w.ended(s, "busy", 250, tenPartitions)
	_, err := s.Sweep(t.Context(), nil, time.Now())
	w.check(err)
	w.wantKept(s, "quiet", quiet, true)
	w.wantKept(s, "busy, oldest", busy[:10], false)
	w.wantKept(s, "busy, latest", busy[len(busy)-50:], true)
}

// Proofs have a bucket of their own; when it is full no job can end.
func TestRetentionLeavesRoomForProofs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(func(c *store.Config) { c.ProofBytesMax = 100 << 10 })
	var ids []job.ID
	for range 12 {
		created, err := s.Create(t.Context(), record(t))
		w.check(err)
		id := created.Job.Record.ID
		w.prove(s, id)
		j, err := s.Fetch(t.Context(), id)
		w.check(err)
		proof, err := s.PutProof(t.Context(), j.Record, make([]byte, 9<<10))
		w.check(err)
		_, err = s.Update(t.Context(), id, func(r *job.Record) error { r.Result = &proof; return nil })
		w.check(err)
		ids = append(ids, id)
	}
	_, err := s.Sweep(t.Context(), nil, time.Now())
	w.check(err)
	w.wantKept(s, "over half of the bucket", ids[:7], false)
	w.wantKept(s, "latest", ids[7:], true)
}

// What Misfits computes with is what records really take.
func TestTypicalSizesAreTrue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open()
	created, err := s.Create(t.Context(), record(t, tenPartitions))
	w.check(err)
	w.prove(s, created.Job.Record.ID)
	j, _ := s.Get(created.Job.Record.ID)
	if n := len(j.Record.Partitions); n != store.TypicalPartitions {
		t.Fatalf("%d partitions", n)
	}
	for what, c := range map[string]struct {
		value any
		want  int
	}{
		"record": {j.Record, store.TypicalRecordBytes}, "audit record": {store.AuditOf(j.Record), store.TypicalAuditBytes},
	} {
		data, err := json.Marshal(c.value)
		w.check(err)
		if len(data) > c.want || len(data) < c.want*3/4 {
			t.Errorf("a typical %s takes %d bytes, counted are %d", what, len(data), c.want)
		}
	}
}

// The share that each may get uses the room up and no more, and nobody who wants less than the share gets less than it
// wants.
func TestFairShareUsesTheRoom(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		room := rapid.Int64Range(-10, 1000).Draw(t, "room")
		wants := rapid.SliceOfN(rapid.Int64Range(0, 500), 1, 8).Draw(t, "wants")
		sum, got := int64(0), int64(0)
		share := store.FairShare(room, append([]int64(nil), wants...))
		for _, want := range wants {
			sum += want
			got += min(want, share)
		}
		switch {
		case got > max(0, room):
			t.Fatalf("share %d gives %d of %d", share, got, room)
		case sum <= room && got != sum:
			t.Fatalf("share %d gives %d of %d, and there is room for all", share, got, sum)
		case sum > room && room > 0 && got < room-int64(len(wants)):
			t.Fatalf("share %d gives only %d of %d", share, got, room)
		}
	})
}
