package client

import (
	"context"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/wire"
)

// pagesMax bounds what a rack may answer with: far more than any has.
const pagesMax = 10_000

// pages asks for one page after another until the last. What names them in the error of a rack that never comes to an
// end.
func pages(what string, ask func() (last bool, err error)) error {
	for range pagesMax {
		if last, err := ask(); last || err != nil {
			return err
		}
	}
	return fault.New(fault.Internal, "%s: more than %d pages", what, pagesMax)
}

// Nodes asks for all nodes of a rack as its operator, page by page. See Ask for pause and errors. Everything but the
// nodes is of the first page.
func Nodes(ctx context.Context, b bus.Bus, pause time.Duration) (*wire.NodesReply, error) {
	var all *wire.NodesReply
	var request wire.PageRequest
	err := pages("nodes", func() (bool, error) {
		var page wire.NodesReply
		if err := Ask(ctx, b, wire.AdminSubject(wire.AdminNodes), &request, &page, pause); err != nil {
			return false, err
		}
		request.After, page.Next = page.Next, ""
		if all == nil {
			all = &page
		} else {
			all.Nodes = append(all.Nodes, page.Nodes...)
		}
		return request.After == "", nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Ledger asks for all books of a rack as its operator, page by page. See Ask for pause and errors.
func Ledger(ctx context.Context, b bus.Bus, pause time.Duration) (*wire.LedgerReply, error) {
	all := &wire.LedgerReply{Nodes: []wire.LedgerNode{}}
	var request wire.PageRequest
	err := pages("ledger", func() (bool, error) {
		var page wire.LedgerReply
		if err := Ask(ctx, b, wire.AdminSubject(wire.AdminLedger), &request, &page, pause); err != nil {
			return false, err
		}
		for _, n := range page.Nodes {
			if last := len(all.Nodes) - 1; last >= 0 && all.Nodes[last].Node == n.Node { // the rest of its entries
				n.Entries = append(all.Nodes[last].Entries, n.Entries...)
				all.Nodes[last] = n
				continue
			}
			all.Nodes = append(all.Nodes, n)
		}
		request.After = page.Next
		return page.Next == "", nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Letters asks for all dead letters of a rack as its operator, page by page, newest first. See Ask for pause and
// errors.
func Letters(ctx context.Context, b bus.Bus, pause time.Duration) (*wire.DLQReply, error) {
	all := &wire.DLQReply{Letters: []wire.DeadLetter{}}
	var request wire.DLQRequest
	err := pages("dead letters", func() (bool, error) {
		var page wire.DLQReply
		if err := Ask(ctx, b, wire.AdminSubject(wire.AdminDLQ), &request, &page, pause); err != nil {
			return false, err
		}
		all.Letters, all.Messages = append(all.Letters, page.Letters...), append(all.Messages, page.Messages...)
		if !page.More || len(page.Letters) == 0 {
			return true, nil
		}
		request.After = page.Letters[len(page.Letters)-1].Job
		return false, nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}
