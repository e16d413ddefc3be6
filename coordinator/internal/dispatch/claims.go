package dispatch

import (
	"slices"

	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// claims are the attempts that own their partitions on a node, or may in a moment, and that its report does not show:
// their tasks are out. If the ledger lost them nothing else speaks for their bytes. Those that ended on the node are
// none: their results are on the way, and their bytes may be another's by now. One whose bytes nobody knows is handed
// back first; not ok means that this is under way.
func (l *Leader) claims(n *rack.Node, b *book) (claims []ledger.Reservation, ok bool) {
	held := map[job.Attempt]bool{} // or held no more
	for _, a := range n.Host.Report.Freed {
		held[a] = true
	}
	for _, booking := range n.Host.Report.Book {
		held[booking.Attempt] = true
	}
	ok = true
	add := func(a job.Attempt, amounts ledger.Amounts, assets []ledger.Asset) {
		if !held[a] && !b.freeing[a] && !l.goneSince(b, a, n.Host) {
			claims = append(claims, ledger.Reservation{Attempt: a, Node: n.Node, Amounts: amounts, Assets: assets})
		}
	}
	for a, needs := range b.asked {
		add(a, needs.Amounts, needs.Assets)
	}
	for a, t := range l.tracks {
		j, owner := l.ownsOn(a, n.Node)
		if !owner || held[a] || b.asks(a) || j.Record.Partitions[a.Partition].Stage == job.Proved {
			continue
		}
		if len(t.amounts) == 0 {
			t.amounts, t.assets = l.largestNeeds(n, j.Record, a)
		}
		if len(t.amounts) == 0 {
			l.takeBack(a, "neither ledger nor node knows what it takes")
			ok = false
			continue
		}
		add(a, t.amounts, t.assets)
	}
	slices.SortFunc(claims, func(x, y ledger.Reservation) int { return compare(x.Attempt, y.Attempt) })
	return claims, ok
}

// largestNeeds is the most that an attempt may have been admitted with on a node, for one of an earlier reign; nothing
// while the node's workers do not say what the circuit takes.
func (l *Leader) largestNeeds(n *rack.Node, r *job.Record, a job.Attempt) (ledger.Amounts, []ledger.Asset) {
	amounts := ledger.Amounts{}
	var assets []ledger.Asset
	for _, d := range n.View(l.parts.Store.Mark(n.Node)).Devices {
		if d.Device != r.Partitions[a.Partition].Device {
			continue
		}
		for _, needs := range d.Circuits[r.Circuit].Choices {
			assets = needs.Assets
			for pool, bytes := range needs.Amounts {
				amounts[pool] = max(amounts[pool], bytes)
			}
		}
	}
	return amounts, assets
}
