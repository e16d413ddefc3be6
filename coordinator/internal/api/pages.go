package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// pageNodes cuts the nodes, which are sorted, down to the page after one of them.
func pageNodes(reply *wire.NodesReply, after string) {
	nodes := reply.Nodes
	from, found := slices.BinarySearchFunc(nodes, job.Node(after), func(n wire.NodeView, name job.Node) int {
		return strings.Compare(string(n.Node), string(name))
	})
	if found {
		from++
	}
	bytes := 0
	for i := from; i < len(nodes); i++ {
		if bytes += size(nodes[i]); bytes > pageBytesMax && i > from {
			reply.Nodes, reply.Next = nodes[from:i], string(nodes[i-1].Node)
			return
		}
	}
	reply.Nodes = nodes[from:]
}

// pageLedger cuts the books down to the page after a place: a node's name when all of its entries were told, or a
// node's and an entry's name with a slash between them.
func pageLedger(reply *wire.LedgerReply, after string) {
	afterNode, afterEntry, within := strings.Cut(after, "/")
	books := reply.Nodes
	slices.SortFunc(books, func(a, b wire.LedgerNode) int { return strings.Compare(string(a.Node), string(b.Node)) })
	reply.Nodes = []wire.LedgerNode{}
	room := pageBytesMax
	for _, book := range books {
		name := string(book.Node)
		if name < afterNode || name == afterNode && !within {
			continue
		}
		entries := book.Entries
		slices.SortStableFunc(entries, func(a, b wire.LedgerEntry) int { return strings.Compare(a.Name, b.Name) })
		if name == afterNode {
			entries = slices.DeleteFunc(entries, func(e wire.LedgerEntry) bool { return e.Name <= afterEntry })
		}
		book.Entries = []wire.LedgerEntry{}
		room -= size(book)
		for i := range entries {
			room -= size(entries[i])
			if room < 0 && (len(reply.Nodes) > 0 || i > 0) {
				if i > 0 {
					book.Entries = entries[:i]
					reply.Nodes = append(reply.Nodes, book)
					reply.Next = name + "/" + entries[i-1].Name
				}
				return
			}
		}
		if room < 0 && len(reply.Nodes) > 0 {
			return
		}
		book.Entries = append(book.Entries, entries...)
		reply.Nodes = append(reply.Nodes, book)
		reply.Next = name
	}
	reply.Next = ""
}

// holdersKept is how many holders of a pool a long answer names; they are the largest.
const holdersKept = 8

// boundReasons keeps an answer to why below a page: first the smaller holders are told as a sum, then reasons of the
// last partitions are counted.
func boundReasons(reasons []wire.Reason) []wire.Reason {
	if size(reasons) <= pageBytesMax {
		return reasons
	}
	bytes := 0
	for i := range reasons {
		r := &reasons[i]
		if n := len(r.Holders); n > holdersKept {
			rest := wire.Holder{Name: fmt.Sprintf("%d others", n-holdersKept)}
			for _, h := range r.Holders[holdersKept:] {
				rest.Bytes += h.Bytes
			}
			r.Holders = append(r.Holders[:holdersKept:holdersKept], rest)
		}
		if bytes += size(*r); bytes > pageBytesMax && i > 0 {
			last := wire.Reason{Text: fmt.Sprintf("%d further reasons of other partitions", len(reasons)-i)}
			for _, left := range reasons[i:] {
				last.Partitions = append(last.Partitions, left.Partitions...)
			}
			return append(reasons[:i:i], last)
		}
	}
	return reasons
}

// pageSpeeds cuts the speeds down to the page from a place on, beside the sizes, which are few.
func pageSpeeds(reply *wire.MemoryReply, from int) {
	room := pageBytesMax
	for i := range reply.Sizes {
		room -= size(reply.Sizes[i])
	}
	from = min(from, len(reply.Speeds))
	for i, s := range reply.Speeds[from:] {
		if room -= size(s); room < 0 && i > 0 {
			reply.SpeedsNext = from + i
			reply.Speeds = reply.Speeds[from:reply.SpeedsNext]
			return
		}
	}
	reply.Speeds = reply.Speeds[from:]
}
