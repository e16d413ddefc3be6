package agent_test

import (
	"context"
	"errors"
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
