package scheduler_test

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// turnsOf has a partition wait for a pool after another, a minute each, and gives what its admission says.
func turnsOf(t *testing.T, pools ...ledger.Pool) *scheduler.Admit {
	t.Helper()
	w := newWorld(t, scheduler.DefaultConfig())
	capacity := ledger.Amounts{"ram": gib(10), "shm": gib(10)}
	book := func(full ledger.Pool) []scheduler.Decision {
		v := nodeView("n1", 10, 1, map[string]scheduler.CircuitView{"c": ready(kind(8, 8, 0, "c"))}, "gpu0")
		v.Capacity, v.Book = capacity, &scheduler.Book{Declared: true}
		if full != "" {
			v.Book.Holdings = []scheduler.Holding{{
				Attempt: job.Attempt{Job: "x", Fence: 1}, Amounts: ledger.Amounts{full: gib(4)},
			}}
		}
		return w.core.Apply(w.now, scheduler.NodeSeen{Node: v})
	}
	book(pools[0])
	w.core.Apply(w.now, scheduler.JobSeen{Job: scheduler.JobView{
		ID: "a", Circuit: "c", SubmittedAt: w.now, Partitions: []scheduler.PartitionView{{Stage: job.Waiting}},
	}})
	for _, pool := range pools[1:] {
		w.now = w.now.Add(time.Minute)
		book(pool)
	}
	w.now = w.now.Add(time.Minute)
	for _, d := range book("") {
		if admit, ok := d.(*scheduler.Admit); ok {
			return admit
		}
	}
	t.Fatal("it is not admitted")
	return nil
}

// What held a partition is told in turn, from when it could go, no more than eight; one thing alone is not told twice.
func TestAWaitThatChangesItsReasonTellsEachInTurn(t *testing.T) {
	t.Parallel()
	one := turnsOf(t, "ram", "ram", "ram")
	if one.Held.Pool != "ram" || one.Turns != nil {
		t.Errorf("held by %+v, %+v", one.Held, one.Turns)
	}
	type turn struct {
		Pool  ledger.Pool
		After time.Duration
	}
	in := func(d *scheduler.Admit) (turns []turn) {
		for _, h := range d.Turns {
			turns = append(turns, turn{h.Pool, h.Since.Sub(epoch)})
		}
		return turns
	}
	if diff := gocmp.Diff([]turn{{"ram", 0}, {"shm", 2 * time.Minute}, {"ram", 3 * time.Minute}},
		in(turnsOf(t, "ram", "ram", "shm", "ram"))); diff != "" {
		t.Error(diff)
	}
	var many []ledger.Pool
	for range 10 {
		many = append(many, "ram", "shm")
	}
	got := in(turnsOf(t, many...))
	last := turn{"shm", 19 * time.Minute}
	if len(got) != 8 || got[0].After != 0 || got[1].After != 13*time.Minute || got[7] != last {
		t.Errorf("turns %v", got)
	}
}
