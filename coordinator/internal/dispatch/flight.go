package dispatch

import (
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// Flight gives the buffers of a node, or of all when the name is "", by the beats of their processes.
func (l *Leader) Flight(name job.Node) []wire.FlightNode {
	nodes := []wire.FlightNode{}
	for _, n := range l.parts.Nodes.Nodes() {
		if name == "" || n.Node == name {
			nodes = append(nodes, n.Flight())
		}
	}
	return nodes
}
