package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// A machine burnt down with work on it. Its bytes stay booked for ever, and it is listed for ever, until an operator
// says that it is gone; that word is kept.
func TestANodeThatIsGoneIsForgottenByAnOperatorsWord(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) {
		ctx := r.t.Context()
		forget := func(gone bool) (*wire.Forgotten, error) {
			return r.leader.Forget(ctx, &wire.ForgetRequest{Node: "n1", Gone: gone, Reason: "burnt down"})
		}
		a := r.given()
		if _, err := forget(true); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "beats") {
			r.t.Errorf("a node that beats: %v", err)
		}
		time.Sleep(2 * time.Minute) // without a beat
		books, err := r.leader.Ledger(ctx)
		r.check(err)
		if len(books.Nodes) != 1 || len(books.Nodes[0].Entries) == 0 {
			r.t.Fatalf("time freed what a dead node holds: %+v", books.Nodes)
		}
		if _, err := forget(false); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "1 attempts") {
			r.t.Errorf("without the word that it is gone: %v", err)
		}
		f, err := forget(true)
		r.check(err)
		if len(f.Attempts) != 1 || f.Attempts[0] != a || len(f.Held) == 0 {
			r.t.Errorf("released: %+v", f)
		}
		if books, err = r.leader.Ledger(ctx); err != nil || len(books.Nodes) != 0 {
			r.t.Errorf("its book is still there: %+v, %v", books.Nodes, err)
		}
		kept, err := r.store.Forgotten(ctx, "n1")
		r.check(err)
		if kept.Reason != "burnt down" || len(kept.Attempts) != 1 || !strings.Contains(r.logged.String(), "burnt down") {
			r.t.Errorf("kept of it: %+v", kept)
		}
		if _, err := forget(true); fault.KindOf(err) != fault.NotFound {
			r.t.Errorf("twice: %v", err)
		}
		r.pass(10 * time.Second) // a new machine of that name
		if stages, _ := r.stages(a.Job); stages[job.Reserved] != 1 {
			r.t.Errorf("the new machine gets no work: %v", stages)
		}
	})
}
