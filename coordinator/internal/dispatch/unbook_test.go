package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// An attempt in limbo on a node that nobody hears of stays booked for ever, until an operator says that its bytes are
// gone; that word is kept. What is at work, or what its node says that it holds, is not released by it.
func TestABookingInLimboIsReleasedByAnOperatorsWord(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) {
		ctx := r.t.Context()
		release := func(a job.Attempt, gone bool) (*wire.Forgotten, error) {
			return r.leader.Unbook(ctx, &wire.UnbookRequest{Node: "n1", Attempt: a, Gone: gone, Reason: "seen by eye"})
		}
		refused := func(a job.Attempt, gone bool, kind fault.Kind, text string) {
			r.t.Helper()
			if _, err := release(a, gone); fault.KindOf(err) != kind || !strings.Contains(err.Error(), text) {
				r.t.Errorf("%v, want %s: %s", err, kind, text)
			}
		}
		a := r.given()
		refused(a, true, fault.Conflict, "at work")
		refused(job.Attempt{Job: a.Job, Fence: 99}, true, fault.NotFound, "not booked")
		time.Sleep(2 * time.Minute) // without a beat: its lease ends
		refused(a, false, fault.Conflict, "nobody has shown")
		f, err := release(a, true)
		r.check(err)
		if len(f.Attempts) != 1 || f.Attempts[0] != a || len(f.Held) == 0 {
			r.t.Errorf("released: %+v", f)
		}
		books, err := r.leader.Ledger(ctx)
		r.check(err)
		if len(books.Nodes) != 1 || len(books.Nodes[0].Entries) != 0 {
			r.t.Errorf("still booked: %+v", books.Nodes)
		}
		kept, err := r.store.Released(ctx, "n1", a)
		r.check(err)
		if kept.Reason != "seen by eye" || len(kept.Attempts) != 1 || !strings.Contains(r.logged.String(), "seen by eye") {
			r.t.Errorf("kept of it: %+v", kept)
		}
		refused(a, true, fault.NotFound, "not booked")
	})
}

// The node's own word counts more than an operator's.
func TestABookingThatItsNodeHoldsIsNotReleasedByHand(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) {
		a := r.given()
		time.Sleep(2 * time.Minute) // its lease ends
		b := &wire.Beat{
			Node: "n1", Boot: "boot", Instance: "synth-2", Role: wire.RoleSynth, Seq: 1, State: wire.StateReady, WireMin: 1,
			WireMax: 2, Host: &wire.HostReport{
				Capacity: ledger.Amounts{ledger.PoolRAM: 1 << 30, ledger.PoolSHM: 1 << 30}, BookComplete: true, At: time.Now(),
				Book: []wire.Booking{{Attempt: a, Amounts: ledger.Amounts{ledger.PoolRAM: 1 << 20}, Alive: true}},
			},
		}
		r.check(b.Check())
		r.nodes.Beat(b, time.Now())
		_, err := r.leader.Unbook(r.t.Context(), &wire.UnbookRequest{Node: "n1", Attempt: a, Gone: true})
		if fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "says that it holds it") {
			r.t.Error(err)
		}
	})
}
