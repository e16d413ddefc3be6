package dispatch

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// Forget drops what is kept about a node that does not beat any more: its book and its marks. What is booked there is
// released only by an operator's word that the machine is gone (Gone): nobody else can say so. That word is kept, with
// what it released. It may be called from any goroutine. Errors: fault.Conflict when the node beats, or something is
// booked there and Gone is not given; fault.NotFound when nothing is kept about it; fault.Transient.
//
// Should the node come back all the same, it declares what it holds, and its own book refuses what does not fit.
func (l *Leader) Forget(ctx context.Context, q *wire.ForgetRequest) (*wire.Forgotten, error) {
	f := &wire.Forgotten{Node: q.Node, At: time.Now().UTC(), Reason: q.Reason, Held: ledger.Amounts{}}
	var refusal error
	if err := l.Ask(ctx, func() { refusal = l.forgettable(q, f) }); err != nil || refusal != nil {
		return nil, errors.Join(err, refusal)
	}
	cause := fmt.Sprintf("node %s is gone, by an operator's word", q.Node)
	if q.Reason != "" {
		cause += ": " + q.Reason
	}
	if err := l.parts.Store.PutForgotten(ctx, f); err != nil {
		return nil, err
	}
	l.log.Warn().Str("c2.node.id", string(q.Node)).Str("reason", q.Reason).Int("attempts", len(f.Attempts)).
		Interface("held", f.Held).Msg("node is forgotten, what it held is released by an operator's word")
	if err := l.letGo(ctx, q.Node, cause); err != nil {
		return nil, err
	}
	var call ledger.Call
	if err := l.Ask(ctx, func() { call = l.books.call }); err != nil {
		return nil, err
	}
	callCtx, cancel := l.call(ctx)
	defer cancel()
	if err := l.parts.Ledger.Forget(callCtx, call, q.Node); err != nil && fault.KindOf(err) != fault.NotFound {
		return nil, fmt.Errorf("forget book of node %s: %w", q.Node, err)
	}
	if _, err := l.parts.Store.SetMark(ctx, q.Node, func(m *store.NodeMark) { *m = store.NodeMark{} }); err != nil {
		return nil, err
	}
	return f, l.Ask(ctx, func() {
		if _, back := l.parts.Nodes.Node(q.Node); !back {
			delete(l.books.of, q.Node)
			delete(l.nodes, q.Node)
		}
	})
}

// forgettable tells why a node is not to be forgotten now, and notes what is booked there.
func (l *Leader) forgettable(q *wire.ForgetRequest, f *wire.Forgotten) error {
	if n, ok := l.parts.Nodes.Node(q.Node); ok {
		return fault.New(fault.Conflict, "forget node %s: it beats, last at %s", q.Node, n.SeenAt.UTC().Format(time.RFC3339))
	}
	if !l.books.up {
		return fault.New(fault.Transient, "forget node %s: the ledger is away: %s", q.Node, l.books.downCause)
	}
	b, known := l.books.of[q.Node]
	if _, marked := l.parts.Store.Marks()[q.Node]; !known && !marked {
		return fault.New(fault.NotFound, "forget node %s: nothing is kept about it", q.Node)
	}
	if known && (b.reading || len(b.asked) > 0) {
		return fault.New(fault.Transient, "forget node %s: its book is being read", q.Node)
	}
	if !known {
		return nil
	}
	for a, e := range b.entries {
		f.Attempts = append(f.Attempts, a)
		for pool, bytes := range e.amounts {
			f.Held[pool] += bytes
		}
	}
	slices.SortFunc(f.Attempts, compare)
	if len(f.Attempts) > 0 && !q.Gone {
		return fault.WithHint(fault.New(fault.Conflict, "forget node %s: %d attempts are booked there with %s",
			q.Node, len(f.Attempts), f.Held), "if the machine will not come back with what it held, say so (gone): "+
			"your word releases it, and is kept")
	}
	return nil
}

// letGo takes all partitions from a node's attempts, and then releases what is booked for them. It returns when nothing
// is.
func (l *Leader) letGo(ctx context.Context, node job.Node, cause string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*l.cfg.CallTimeout)
	defer cancel()
	for {
		left := 0
		err := l.Ask(ctx, func() {
			b := l.book(node)
			left = len(b.entries)
			for a := range b.entries {
				if _, owner := l.ownsOn(a, node); owner {
					l.lose(a, cause)
				} else {
					l.freed(node, a)
				}
			}
		})
		if err != nil {
			return err
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fault.New(fault.Transient, "forget node %s: %d attempts are not released yet", node, left)
		case <-time.After(l.cfg.CallTimeout / 100):
		}
	}
}
