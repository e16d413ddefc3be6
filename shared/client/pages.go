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

// errPages says that a rack never comes to an end.
func errPages(what string) error {
	return fault.New(fault.Internal, "%s: more than %d pages", what, pagesMax)
}

// Nodes asks for all nodes of a rack as its operator, page by page. See Ask for pause and errors. Everything but the
// nodes is of the first page.
func Nodes(ctx context.Context, b bus.Bus, pause time.Duration) (*wire.NodesReply, error) {
	var all *wire.NodesReply
	var request wire.PageRequest
	for range pagesMax {
		var page wire.NodesReply
		if err := Ask(ctx, b, wire.AdminSubject(wire.AdminNodes), &request, &page, pause); err != nil {
			return nil, err
		}
		if all == nil {
			all = &page
		} else {
			all.Nodes = append(all.Nodes, page.Nodes...)
		}
		if request.After = page.Next; page.Next == "" {
			all.Next = ""
			return all, nil
		}
	}
	return nil, errPages("nodes")
}

// Ledger asks for all books of a rack as its operator, page by page. See Ask for pause and errors.
func Ledger(ctx context.Context, b bus.Bus, pause time.Duration) (*wire.LedgerReply, error) {
	all := &wire.LedgerReply{Nodes: []wire.LedgerNode{}}
	var request wire.PageRequest
	for range pagesMax {
		var page wire.LedgerReply
		if err := Ask(ctx, b, wire.AdminSubject(wire.AdminLedger), &request, &page, pause); err != nil {
			return nil, err
		}
		for _, n := range page.Nodes {
			if last := len(all.Nodes) - 1; last >= 0 && all.Nodes[last].Node == n.Node { // the rest of its entries
				n.Entries = append(all.Nodes[last].Entries, n.Entries...)
				all.Nodes[last] = n
				continue
			}
			all.Nodes = append(all.Nodes, n)
		}
		if request.After = page.Next; page.Next == "" {
			return all, nil
		}
	}
	return nil, errPages("ledger")
}

// Letters asks for all dead letters of a rack as its operator, page by page, newest first. See Ask for pause and
// errors.
func Letters(ctx context.Context, b bus.Bus, pause time.Duration) (*wire.DLQReply, error) {
	all := &wire.DLQReply{Letters: []wire.DeadLetter{}}
	var request wire.DLQRequest
	for range pagesMax {
		var page wire.DLQReply
		if err := Ask(ctx, b, wire.AdminSubject(wire.AdminDLQ), &request, &page, pause); err != nil {
			return nil, err
		}
		all.Letters, all.Messages = append(all.Letters, page.Letters...), append(all.Messages, page.Messages...)
		if !page.More || len(page.Letters) == 0 {
			return all, nil
		}
		request.After = page.Letters[len(page.Letters)-1].Job
	}
	return nil, errPages("dead letters")
}
