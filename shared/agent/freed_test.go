package agent_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Invariant 2: an attempt whose bytes were reported free takes none again, whichever worker its message comes to, as
// long as its record may say that it runs.
func TestFreedAttemptIsBookedNoMore(t *testing.T) {
	t.Parallel()
	n, a, ctx := newNode(t), attempt(1, 0, 1), t.Context()
	held := n.mustAdmit(t, a, gib(3))
	if err := held.Free(ctx, nil); err != nil || n.book.Booked(a) {
		t.Fatalf("free: %v", err)
	}
	other := n.open(t, "next", "synth")
	again := func(a job.Attempt) error {
		held, err := other.Admit(ctx, agent.Request{Attempt: a, Amounts: gib(1)})
		if err == nil {
			err = held.Remove(ctx)
		}
		return err
	}
	if err := again(a); !errors.Is(err, agent.ErrFreed) || fault.KindOf(err) != fault.Lost {
		t.Errorf("booked again: %v", err)
	}
	if err := again(attempt(1, 0, 2)); err != nil {
		t.Errorf("the next attempt of the partition: %v", err)
	}
	running := true
	current := func(context.Context, job.Attempt) (bool, error) { return running, nil }
	if m, err := n.book.Mend(ctx, current); err != nil || m.FreedForgotten != 0 || !errors.Is(again(a), agent.ErrFreed) {
		t.Errorf("forgotten while its record says that it runs: %+v, %v", m, err)
	}
	running = false
	if m, err := n.book.Mend(ctx, current); err != nil || m.FreedForgotten != 1 {
		t.Errorf("not forgotten when it is over: %+v, %v", m, err)
	}
	if err := again(a); err != nil {
		t.Errorf("the mark is there still: %v", err)
	}
}

func TestAbandonedBookingOfAnEndedAttemptIsMarkedWhenItGoes(t *testing.T) {
	t.Parallel()
	n, a, ctx := newNode(t), attempt(1, 0, 1), t.Context()
	held := n.mustAdmit(t, a, gib(3))
	if err := held.Free(ctx, errors.New("segment is busy")); err == nil || !n.book.Booked(a) {
		t.Fatalf("freed with its segment in use: %v", err)
	}
	if err := held.Remove(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := n.book.Admit(ctx, agent.Request{Attempt: a, Amounts: gib(1)}); !errors.Is(err, agent.ErrFreed) {
		t.Errorf("booked again: %v", err)
	}
}

// Invariant 1: what an attempt gave back on its way was granted to others. When its worker dies it does not begin anew
// with all that it had at first.
func TestShrunkAttemptOfADeadWorkerIsBookedNoMore(t *testing.T) {
	t.Parallel()
	n, ctx := newNode(t), t.Context()
	dead := n.open(t, "dead", "gpu")
	for a, shrunk := range map[job.Attempt]bool{attempt(1, 0, 1): true, attempt(2, 0, 1): false} {
		held, err := dead.Admit(ctx, agent.Request{Attempt: a, Amounts: gib(3)})
		if err == nil && shrunk {
			err = held.Shrink(ctx, gib(1))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := dead.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err := n.book.Mend(ctx, nil); err != nil || len(m.Removed) != 2 {
		t.Fatalf("mended %+v, %v", m, err)
	}
	again := func(a job.Attempt) error {
		_, err := n.book.Admit(ctx, agent.Request{Attempt: a, Amounts: gib(3)})
		return err
	}
	if err := again(attempt(1, 0, 1)); !errors.Is(err, agent.ErrFreed) {
		t.Errorf("begun anew with what it had given back: %v", err)
	}
	if err := again(attempt(2, 0, 1)); err != nil {
		t.Errorf("one that had given nothing back: %v", err)
	}
}

// A leader that begins tells by it what has ended from what may still begin.
func TestReportNamesWhatEndedHere(t *testing.T) {
	t.Parallel()
	n, a, ctx := newNode(t), attempt(1, 0, 1), t.Context()
	if err := n.mustAdmit(t, a, gib(1)).Free(ctx, nil); err != nil {
		t.Fatal(err)
	}
	list, err := n.book.List(ctx)
	if err != nil || len(list.Entries) != 0 || !slices.Equal(list.Freed, []job.Attempt{a}) {
		t.Errorf("after it ended: %+v, %v", list, err)
	}
	if _, err := n.book.Mend(ctx, func(context.Context, job.Attempt) (bool, error) { return false, nil }); err != nil {
		t.Fatal(err)
	}
	if list, err = n.book.List(ctx); err != nil || len(list.Freed) != 0 {
		t.Errorf("after its record said so: %+v, %v", list, err)
	}
}
