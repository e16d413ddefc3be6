package top

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/proofrack/proofrack/shared/wire"
)

// order is one way to sort.
type order[T any] struct {
	name    string
	compare func(a, b *T) int
}

// jobOrders are the orders of jobs; the first is the rack's own.
func jobOrders() []order[wire.JobSummary] {
	return []order[wire.JobSummary]{
		{"newest", func(*wire.JobSummary, *wire.JobSummary) int { return 0 }},
		{"state", func(a, b *wire.JobSummary) int { return cmp.Compare(a.State, b.State) }},
		{"waiting", func(a, b *wire.JobSummary) int { return cmp.Compare(b.Waiting, a.Waiting) }},
		{"progress", func(a, b *wire.JobSummary) int { return cmp.Compare(progress(b), progress(a)) }},
		{"tenant", func(a, b *wire.JobSummary) int { return cmp.Compare(a.Tenant, b.Tenant) }},
	}
}

func progress(j *wire.JobSummary) float64 { return float64(j.Verified) / float64(max(1, j.Partitions)) }

// nodeOrders are the orders of nodes.
func nodeOrders() []order[wire.NodeView] {
	return []order[wire.NodeView]{
		{"name", func(a, b *wire.NodeView) int { return cmp.Compare(a.Node, b.Node) }},
		{"fullest", func(a, b *wire.NodeView) int { return cmp.Compare(fullest(b), fullest(a)) }},
		{"running", func(a, b *wire.NodeView) int { return cmp.Compare(b.Running, a.Running) }},
		{"trouble", func(a, b *wire.NodeView) int { return cmp.Compare(trouble(b), trouble(a)) }},
	}
}

// fullest is the largest share of a pool that is booked.
func fullest(n *wire.NodeView) (share float64) {
	for pool, capacity := range n.Capacity {
		share = max(share, float64(n.Reserved[pool])/float64(max(1, capacity)))
	}
	return share
}

// trouble counts what keeps a node from work.
func trouble(n *wire.NodeView) (count int) {
	if !n.Ready {
		count++
	}
	for i := range n.Devices {
		if d := &n.Devices[i]; d.Quarantined || !d.Healthy {
			count++
		}
	}
	return count
}

// shownJobs are the jobs that pass the filter, in order.
func (m *model) shownJobs() []*wire.JobSummary {
	if m.jobs.value == nil {
		return nil
	}
	return sorted(m.jobs.value.Jobs, jobOrders()[m.sortJobs], m.turned[ofJobs], func(j *wire.JobSummary) bool {
		fault := ""
		if j.Fault != nil {
			fault = j.Fault.Message
		}
		return m.passes(string(j.ID), j.Key, string(j.Tenant), j.Circuit, j.Miner, strconv.FormatUint(j.SectorNumber, 10),
			string(j.State), fault)
	})
}

// shownNodes are the nodes that pass the filter, in order.
func (m *model) shownNodes() []*wire.NodeView {
	if m.nodes.value == nil {
		return nil
	}
	return sorted(m.nodes.value.Nodes, nodeOrders()[m.sortNodes], m.turned[ofNodes], func(n *wire.NodeView) bool {
		texts := []string{string(n.Node), n.Reason, nodeState(n)}
		for i := range n.Devices {
			texts = append(texts, string(n.Devices[i].Device), n.Devices[i].UUID, n.Devices[i].Name, n.Devices[i].Reason)
		}
		return m.passes(texts...)
	})
}

// passes tells whether any of some texts has the filter's.
func (m *model) passes(texts ...string) bool {
	wanted := strings.ToLower(m.filter)
	return slices.ContainsFunc(texts, func(text string) bool {
		return strings.Contains(strings.ToLower(printable(text)), wanted)
	})
}

func sorted[T any](all []T, by order[T], turned bool, passes func(*T) bool) []*T {
	var some []*T
	for i := range all {
		if passes(&all[i]) {
			some = append(some, &all[i])
		}
	}
	slices.SortStableFunc(some, by.compare)
	if turned {
		slices.Reverse(some)
	}
	return some
}
