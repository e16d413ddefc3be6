package scheduler_test

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// What waits is counted by what it waits for, with the bytes that it asks for and lacks.
func TestWaitsAreCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, scheduler.DefaultConfig())
	if waits, oldest := w.core.Waits(); waits != nil || !oldest.IsZero() {
		t.Errorf("nothing waits: %+v since %s", waits, oldest)
	}
	held := scheduler.Holding{Attempt: job.Attempt{Job: "x", Fence: 1}, Amounts: ledger.Amounts{"ram": gib(4)}}
	nodeWithBook(w, kind(8, 0, 0, "c"), scheduler.Book{Holdings: []scheduler.Holding{held}}, nil)
	see := func(id job.ID, circuit string, at time.Time, parts ...scheduler.PartitionView) {
		w.core.Apply(w.now, scheduler.JobSeen{Job: scheduler.JobView{
			ID: id, Circuit: circuit, SubmittedAt: at, Partitions: parts,
		}})
	}
	waiting := scheduler.PartitionView{Stage: job.Waiting}
	later := waiting
	later.NotBefore = w.now.Add(time.Minute)
	see("a", "c", epoch.Add(-time.Minute), waiting, waiting, later)
	see("b", "c", epoch.Add(-time.Hour), waiting)
	see("d", "none", epoch.Add(-time.Second), waiting)
	waits, oldest := w.core.Waits()
	if !oldest.Equal(epoch.Add(-time.Hour)) {
		t.Errorf("the oldest is of %s", oldest)
	}
	if diff := gocmp.Diff([]scheduler.Wait{
		{Reason: scheduler.Backoff, Partitions: 1, Needed: ledger.Amounts{}},
		{Reason: scheduler.Memory, Pool: "ram", Partitions: 3, Needed: ledger.Amounts{"ram": gib(24)}, Missing: gib(6)},
		{Reason: scheduler.NoParams, Partitions: 1, Needed: ledger.Amounts{}},
	}, waits); diff != "" {
		t.Error(diff)
	}
	known := map[scheduler.Code]bool{}
	for _, code := range scheduler.Codes() {
		known[code] = true
	}
	for _, wait := range waits {
		if !known[wait.Reason] {
			t.Errorf("%s is in no list", wait.Reason)
		}
	}
}
