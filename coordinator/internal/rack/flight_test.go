package rack_test

import (
	"testing"

	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// A buffer is a leak when no process works on its attempt and the node's book does not have it.
func TestBuffersOfAttemptsThatAreOverAreLeaks(t *testing.T) {
	t.Parallel()
	over := job.Attempt{Job: "01890a5d-ac96-774b-bcce-b302099a8057", Fence: 1}
	runs, booked := over, over
	runs.Partition, booked.Partition = 1, 2
	piece := func(a job.Attempt) flight.Piece {
		return flight.Piece{Label: a.String(), Stage: flight.Mapped, Bytes: 5, AgeMS: 60_000}
	}
	node := func(labels ...job.Attempt) *rack.Node {
		c := flight.ClassReport{Class: ledger.ClassAssignment, Pieces: int64(len(labels)), Bytes: 5}
		for _, a := range labels {
			c.Oldest = append(c.Oldest, piece(a))
		}
		return &rack.Node{Node: "n1", Processes: []rack.Process{
			{Beat: wire.Beat{Role: wire.RoleSynth}},
			{Beat: wire.Beat{Role: wire.RoleGPU, Flight: []flight.Report{
				{Process: "gpu", Defects: 1}, {Process: "engine gpu0", Defects: 2, Classes: []flight.ClassReport{c}},
			}}},
		}}
	}
	n := node(over, runs, booked)
	n.Processes[0].Beat.Running = []wire.Running{{Attempt: runs}}
	n.Host = &rack.Host{Report: wire.HostReport{Book: []wire.Booking{{Attempt: booked}}}}
	got := n.Flight()
	if len(got.Leaks) != 1 || got.Leaks[0].Label != over.String() || got.Leaks[0].Process != "engine gpu0" || got.Idle {
		t.Errorf("%+v", got)
	}
	if got.Defects != 3 || len(got.Reports) != 2 {
		t.Errorf("%d defects in %d reports", got.Defects, len(got.Reports))
	}
	if n := node(over).Flight(); n.Idle {
		t.Errorf("a node with a buffer is idle: %+v", n)
	}
	idle := rack.Node{Node: "n1", Processes: []rack.Process{{Beat: wire.Beat{Flight: []flight.Report{{Process: "gpu"}}}}}}
	if !idle.Flight().Idle {
		t.Error("a node without a buffer is not idle")
	}
	idle.Processes[0].Beat.Running = []wire.Running{{Attempt: runs}}
	if idle.Flight().Idle {
		t.Error("a node where an attempt runs is idle")
	}
}
