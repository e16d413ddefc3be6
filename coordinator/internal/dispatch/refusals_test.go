package dispatch_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// refusing is a ledger whose books look as if there were room, and that grants nothing.
type refusing struct {
	ledger.Ledger

	asked *atomic.Int64
	until time.Time
}

func (l refusing) Reserve(ctx context.Context, c ledger.Call, r *ledger.Reservation) error {
	l.asked.Add(1)
	if time.Now().Before(l.until) {
		return fault.New(fault.Lost, "node %s: %s is in limbo", r.Node, r.Attempt)
	}
	return l.Ledger.Reserve(ctx, c, r)
}

// What a ledger refuses although its book shows room is asked for again, but not as fast as it answers.
func TestARefusedAdmissionIsTriedAgainWithPauses(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	spoil := func(l ledger.Ledger) ledger.Ledger { return refusing{l, &asked, time.Now().Add(time.Minute)} }
	leadingWith(t, func(b bus.Bus) bus.Bus { return b }, spoil, func(r *reign) {
		r.pass(10 * time.Second)
		id := r.submit(1)
		r.pass(40 * time.Second)
		if n := asked.Load(); n < 10 || n > 80 {
			t.Errorf("asked %d times in 40 seconds", n)
		}
		r.pass(20 * time.Second)
		if stages, _ := r.stages(id); stages[job.Reserved] != 1 {
			t.Errorf("ten seconds after it could: %v", stages)
		}
	})
}
