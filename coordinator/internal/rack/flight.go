package rack

import (
	"slices"

	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/wire"
)

// Flight is the buffers of the node's processes as of their last beats, with those that should be gone.
func (n *Node) Flight() wire.FlightNode {
	out := wire.FlightNode{Node: n.Node, SeenAt: n.SeenAt, Idle: true, Reports: []flight.Report{}}
	owners := map[string]bool{}
	for _, p := range n.Processes {
		for _, r := range p.Beat.Running {
			owners[r.Attempt.String()] = true
		}
		out.Reports = append(out.Reports, p.Beat.Flight...)
	}
	if n.Host != nil {
		for _, b := range n.Host.Report.Book {
			owners[b.Attempt.String()] = true
		}
	}
	out.Idle = len(owners) == 0 && !slices.ContainsFunc(out.Reports, func(r flight.Report) bool { return !r.Idle() })
	out.Leaks = flight.Leaks(out.Reports, func(label string) bool { return owners[label] }, flight.GraceDefault)
	for i := range out.Reports {
		out.Defects += out.Reports[i].Defects
	}
	return out
}
