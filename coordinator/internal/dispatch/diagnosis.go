package dispatch

import (
	"github.com/proofrack/proofrack/shared/wire"
)

// Diagnose has all programs of the nodes tell about themselves, and gives those that were asked. It may be called from
// any goroutine.
func (l *Leader) Diagnose(id string) []wire.Program {
	programs := []wire.Program{}
	for _, n := range l.parts.Nodes.Nodes() {
		for _, p := range n.Processes {
			programs = append(programs, wire.Program{Node: n.Node, Role: p.Beat.Role, Instance: p.Beat.Instance})
		}
		l.sendControl(&wire.Control{Node: n.Node, Kind: wire.ControlTell, Diagnosis: id})
	}
	return programs
}
