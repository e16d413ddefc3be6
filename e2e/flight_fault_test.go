package e2e_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// flown is what the leader says of all nodes' buffers; nil while none answers.
func (r *rack) flown() *wire.FlightReply {
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Second)
	defer cancel()
	var reply wire.FlightReply
	subject := wire.AdminSubject(wire.AdminFlight)
	if client.Ask(ctx, r.bus, subject, &wire.FlightRequest{}, &reply, 50*time.Millisecond) != nil {
		return nil
	}
	return &reply
}

// One buffer of each class leaks: the leader names each, with its process and owner, and no other.
func TestALeakedBufferOfEachClassIsNamed(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.startCoordinator()
	n := r.addNode("n1")
	n.startSynth(r.hooked("leak@flight.input", "leak@flight.scratch", "leak@flight.assignment")...)
	n.startGPU(r.hooked("leak@flight.srs", "leak@flight.artifact", "leak@flight.evals")...)
	r.ready()
	r.submit(1)
	r.waitDone()
	want := map[ledger.Class]string{
		ledger.ClassInput: "synth", ledger.ClassScratch: "synth", ledger.ClassAssignment: "synth",
		ledger.ClassSRS: "engine cpu", ledger.ClassArtifact: "engine cpu", ledger.ClassEvals: "engine cpu",
	}
	evict, err := wire.Encode(&wire.Control{Node: "n1", Kind: wire.ControlEvict, Asset: "srs:toy"})
	r.check(err)
	r.check(r.bus.Send(t.Context(), bus.Message{Subject: wire.ControlSubject("n1"), Data: evict}))
	first := r.record(r.jobs[0])
	attempt := job.Attempt{Job: first.ID, Fence: first.Partitions[0].Attempts[0].Fence}.String()
	var leaks []flight.Leak
	until(t, "every leak is named", func() bool {
		reply := r.flown()
		if reply == nil || len(reply.Nodes) != 1 {
			return false
		}
		leaks = reply.Nodes[0].Leaks
		return len(leaks) >= len(want)
	})
	for _, l := range leaks {
		process, ok := want[l.Class]
		if !ok || l.Process != process || l.Bytes <= 0 || l.Stage != flight.Released {
			t.Errorf("leak %+v", l)
		}
		if process == "synth" && l.Label != attempt {
			t.Errorf("leak of %s, not of the attempt: %+v", l.Label, l)
		}
		delete(want, l.Class)
	}
	if len(want) > 0 {
		t.Errorf("not named: %v in %+v", want, leaks)
	}
	// The rack goes on.
	r.submit(2)
	r.waitDone()
	if reply := r.flown(); reply != nil && slices.ContainsFunc(reply.Nodes, func(n wire.FlightNode) bool {
		return n.Defects > 0
	}) {
		t.Errorf("defects: %+v", reply)
	}
}
