package coordinator_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

func TestADrainedNodeFinishesAndGetsNothingNew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	gate := make(chan struct{})
	n := w.node("n1", 2, func(ctx context.Context, n *node, task *wire.SynthTask) {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		prove(ctx, n, task)
	})
	id := w.submit(4)
	w.until("two run", func() bool { return len(n.attempts()) == 2 })
	drain := func(q *wire.DrainRequest) *wire.DrainReply {
		t.Helper()
		reply, err := ask[wire.DrainReply](w, wire.AdminSubject(wire.AdminDrain), q)
		if err != nil || reply.Fault != nil {
			t.Fatalf("drain: %v, %+v", err, reply)
		}
		return reply
	}
	reply := drain(&wire.DrainRequest{Node: "n1"})
	if reply.Running != 2 || reply.Drained || reply.Estimate <= 0 {
		t.Errorf("drain of two running: %+v", reply)
	}
	close(gate)
	w.until("it is drained", func() bool { return drain(&wire.DrainRequest{Node: "n1"}).Drained })
	time.Sleep(lease)
	if got := len(n.attempts()); got != 2 {
		t.Errorf("a drained node began %d attempts", got-2)
	}
	if nodes := w.leads(); len(nodes.Nodes) != 1 || !nodes.Nodes[0].Draining {
		t.Errorf("nodes: %+v", nodes.Nodes)
	}
	drain(&wire.DrainRequest{Node: "n1", Undo: true})
	w.proof(w.ends(id, job.Done))
	missing, err := ask[wire.DrainReply](w, wire.AdminSubject(wire.AdminDrain), &wire.DrainRequest{Node: "nobody"})
	if err != nil || missing.Fault == nil || missing.Fault.Kind != fault.NotFound {
		t.Errorf("drain of an unknown node: %v, %+v", err, missing)
	}
	w.settles("n1")
}

func TestIntakeIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.start()
	w.leads()
	set := func(q *wire.IntakeRequest) {
		t.Helper()
		reply, err := ask[wire.Reply](w, wire.AdminSubject(wire.AdminIntake), q)
		if err != nil || reply.Fault != nil {
			t.Fatalf("intake: %v, %+v", err, reply)
		}
	}
	submit := func() *fault.Report {
		t.Helper()
		reply, err := ask[wire.SubmitReply](w, wire.ClientSubject(wire.VerbSubmit, job.MainTenant),
			&wire.Submit{Miner: "f01000", Inline: []byte("{}")})
		if err != nil || reply.Fault == nil {
			t.Fatalf("submit: %v, %+v", err, reply)
		}
		return reply.Fault
	}
	set(&wire.IntakeRequest{Pause: true, Reason: "disks are being changed"})
	w.until("every instance refuses with the reason", func() bool {
		for range 4 {
			if f := submit(); f.Kind != fault.Transient || !strings.Contains(f.Message, "disks are being changed") {
				return false
			}
		}
		return true
	})
	if !w.leads().Paused {
		t.Error("nodes do not say that intake is paused")
	}
	set(&wire.IntakeRequest{})
	w.until("every instance looks at the input again", func() bool {
		for range 4 {
			if submit().Kind != fault.Invalid {
				return false
			}
		}
		return true
	})
}

// Whoever finished a job can be asked for what made it; the end is told once, and slices are gone.
func TestAFinishedJobLeavesAnAuditRecordAndAnEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.node("n1", 1, each(fails(fault.Device, "hiccup", true), prove))
	id := w.submit(2)
	r := w.ends(id, job.Done)
	var audit *wire.AuditReply
	w.until("the audit record is there", func() bool {
		var err error
		audit, err = ask[wire.AuditReply](w, wire.AdminSubject(wire.AdminAudit), &wire.AuditRequest{})
		return err == nil && len(audit.Records) == 1
	})
	a := audit.Records[0]
	if a.Job != id || a.ProofSHA256 != r.Result.SHA256 || a.AttemptCount != 3 || len(a.Attempts) != 2 ||
		a.ParamsDigest != "abcd" || a.Attempts[0].DeviceUUID != "CPU-n1" || a.Attempts[0].Build != "test" {
		t.Errorf("audit record %+v", a)
	}
	if a.InputHash != r.InputHash || a.Tenant != r.Tenant || a.Miner != r.Miner || a.Circuit != r.Circuit ||
		a.SectorNumber != r.SectorNumber || !a.SubmittedAt.Equal(r.SubmittedAt) || !a.EndedAt.Equal(*r.EndedAt) {
		t.Errorf("audit record %+v of job %+v", a, r)
	}
	for i, made := range a.Attempts {
		if made.Node != "n1" || made.Device != "cpu" || made.Build != "test" || made.Outcome != job.OutcomeOK {
			t.Errorf("partition %d was made by %+v", i, made)
		}
	}
	events, err := w.bus.Log(t.Context(), wire.StreamEvents)
	w.check(err)
	w.until("the end was told", func() bool {
		_, err := events.Next(t.Context(), wire.EventSubject(job.MainTenant, id, wire.EventDone), 1)
		return err == nil
	})
	objects, err := w.bus.Objects(t.Context(), wire.ObjectsSlices)
	w.check(err)
	w.until("slices and inputs are gone", func() bool {
		list, err := objects.List(t.Context())
		return err == nil && len(list) == 0
	})
	w.settles("n1")
}

func TestTheLedgerIsShownWithOwnersAndLeases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	n := w.node("n1", 1, hangs)
	id := w.submit(1)
	w.until("it runs", func() bool { return len(n.attempts()) == 1 })
	reply, err := ask[wire.LedgerReply](w, wire.AdminSubject(wire.AdminLedger), &wire.Empty{})
	if err != nil || len(reply.Nodes) != 1 || !reply.Nodes[0].Declared || len(reply.Nodes[0].Entries) != 2 {
		t.Fatalf("ledger: %v, %+v", err, reply)
	}
	e := reply.Nodes[0].Entries[0]
	if e.Name != n.attempts()[0].String() || e.Owner != job.MainTenant || e.LeaseAt == nil || e.Limbo {
		t.Errorf("entry %+v of job %s", e, id)
	}
}

// The leader tells which buffers each node has, by its processes' beats; a node that it does not know is refused.
func TestBuffersOfNodesAreShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.node("n1", 1, hangs, func(n *node) { n.flight = []flight.Report{{Process: "synth", LiveBytes: 5}} })
	var reply *wire.FlightReply
	w.until("the beat with it came", func() bool {
		var err error
		reply, err = ask[wire.FlightReply](w, wire.AdminSubject(wire.AdminFlight), &wire.FlightRequest{})
		return err == nil && len(reply.Nodes) == 1 && len(reply.Nodes[0].Reports) == 1
	})
	if got := reply.Nodes[0]; got.Node != "n1" || !got.Idle || got.Reports[0].LiveBytes != 5 || reply.Left != 0 {
		t.Errorf("%+v", got)
	}
	w.submit(1)
	w.until("it is at work", func() bool {
		reply, err := ask[wire.FlightReply](w, wire.AdminSubject(wire.AdminFlight), &wire.FlightRequest{Node: "n1"})
		return err == nil && !reply.Nodes[0].Idle
	})
	none, err := ask[wire.FlightReply](w, wire.AdminSubject(wire.AdminFlight), &wire.FlightRequest{Node: "n2"})
	if err != nil || fault.KindOf(none.Err()) != fault.NotFound {
		t.Errorf("a node that is not there: %v, %+v", err, none)
	}
}
