package dispatch

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// Unbook releases one attempt that is over and still booked on a node, by an operator's word that its bytes are gone
// (Gone); without that word it tells what it would release. The word is kept, with what it released. It may be called
// from any goroutine. Errors: fault.NotFound when the attempt is not booked there; fault.Conflict when it owns its
// partition, when its node says that it holds it, and without Gone; fault.Transient.
//
// Should the word be wrong, the node's next declaration books the bytes again, and its own book refuses what does not
// fit.
func (l *Leader) Unbook(ctx context.Context, q *wire.UnbookRequest) (*wire.Forgotten, error) {
	f := &wire.Forgotten{Node: q.Node, At: time.Now().UTC(), Reason: q.Reason, Attempts: []job.Attempt{q.Attempt}}
	var refusal error
	if err := l.Ask(ctx, func() { refusal = l.unbookable(q, f) }); err != nil || refusal != nil {
		return nil, errors.Join(err, refusal)
	}
	if err := l.parts.Store.PutReleased(ctx, q.Attempt, f); err != nil {
		return nil, err
	}
	l.log.Warn().Str("c2.node.id", string(q.Node)).Stringer("attempt", q.Attempt).Str("reason", q.Reason).
		Interface("held", f.Held).Msg("booking is released by an operator's word")
	ctx, cancel := context.WithTimeout(ctx, 2*l.cfg.CallTimeout)
	defer cancel()
	for {
		booked := false
		err := l.Ask(ctx, func() {
			if booked = l.book(q.Node).entries[q.Attempt] != nil; booked {
				l.freed(q.Node, q.Attempt)
			}
		})
		if err != nil || !booked {
			return f, err
		}
		select {
		case <-ctx.Done():
			return nil, fault.New(fault.Transient, "release attempt %s on node %s: the ledger has not done it yet",
				q.Attempt, q.Node)
		case <-time.After(l.cfg.CallTimeout / 100):
		}
	}
}

// unbookable tells why a booking is not to be released by hand, and notes what is booked.
func (l *Leader) unbookable(q *wire.UnbookRequest, f *wire.Forgotten) error {
	refuse := func(hint, format string, args ...any) error {
		args = append([]any{q.Attempt, q.Node}, args...)
		return fault.WithHint(fault.New(fault.Conflict, "release attempt %s on node %s: "+format, args...), hint)
	}
	if !l.books.up {
		return fault.New(fault.Transient, "release attempt %s: the ledger is away: %s", q.Attempt, l.books.downCause)
	}
	b := l.books.of[q.Node]
	if b == nil || b.entries[q.Attempt] == nil {
		return fault.WithHint(fault.New(fault.NotFound, "attempt %s is not booked on node %s", q.Attempt, q.Node),
			"the ledger names what is booked")
	}
	f.Held = ledger.Amounts{}
	for pool, bytes := range b.entries[q.Attempt].amounts {
		f.Held[pool] = bytes
	}
	if _, owner := l.ownsOn(q.Attempt, q.Node); owner {
		return refuse("cancel its job, or wait until its lease has ended", "it is at work")
	}
	if n, ok := l.parts.Nodes.Node(q.Node); ok && n.Host != nil && slices.ContainsFunc(n.Host.Report.Book,
		func(booking wire.Booking) bool { return booking.Attempt == q.Attempt }) {
		return refuse("end the worker that has it: the end of the process is the evidence", "the node says that it holds it")
	}
	if !q.Gone {
		return refuse("if its bytes are gone, say so (gone): your word releases them, and is kept",
			"%s are booked, and nobody has shown that they are free", f.Held)
	}
	return nil
}
