package e2e_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
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

// leaking are the classes of buffers, and the process of a node that plantLeaks has leak one of each.
func leaking() map[ledger.Class]string {
	return map[ledger.Class]string{
		ledger.ClassInput: "synth", ledger.ClassScratch: "synth", ledger.ClassAssignment: "synth",
		ledger.ClassSRS: "engine cpu", ledger.ClassArtifact: "engine cpu", ledger.ClassEvals: "engine cpu",
	}
}

// plantLeaks starts a node's workers, has one buffer of each class leak at a job, and gives the job's attempt and what
// the leader names.
func (r *rack) plantLeaks(n *node, gpu ...string) (job.Attempt, []flight.Leak) {
	r.t.Helper()
	n.startSynth(r.hooked("leak@flight.input", "leak@flight.scratch", "leak@flight.assignment")...)
	n.startGPU(append(r.hooked("leak@flight.srs", "leak@flight.artifact", "leak@flight.evals"), gpu...)...)
	r.ready()
	r.submit(1)
	r.waitDone()
	evict, err := wire.Encode(&wire.Control{Node: n.name, Kind: wire.ControlEvict, Asset: "srs:toy"})
	r.check(err)
	r.check(r.bus.Send(r.t.Context(), bus.Message{Subject: wire.ControlSubject(n.name), Data: evict}))
	first := r.record(r.jobs[0])
	var leaks []flight.Leak
	until(r.t, "every leak is named", func() bool {
		reply := r.flown()
		if reply == nil || len(reply.Nodes) != 1 {
			return false
		}
		leaks = reply.Nodes[0].Leaks
		return len(leaks) >= len(leaking())
	})
	return job.Attempt{Job: first.ID, Fence: first.Partitions[0].Attempts[0].Fence}, leaks
}

// One buffer of each class leaks: the leader names each, with its process and owner, and no other.
func TestALeakedBufferOfEachClassIsNamed(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.startCoordinator()
	want := leaking()
	if len(want) != len(ledger.Classes()) {
		t.Fatalf("%d of %d classes leak", len(want), len(ledger.Classes()))
	}
	attempt, leaks := r.plantLeaks(r.addNode("n1"))
	for _, l := range leaks {
		process, ok := want[l.Class]
		if !ok || l.Process != process || l.Bytes <= 0 || l.Stage != flight.Released {
			t.Errorf("leak %+v", l)
		}
		if process == "synth" && l.Label != attempt.String() {
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

// Every program serves its buffers, and how they changed, on its own HTTP service.
func TestProgramsServeTheirBuffers(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.calm()
	n := r.addNode("n1")
	address := map[string]string{}
	start := func(name string, run func(settings ...string) *process) {
		at, setting := probe(t)
		run(setting)
		address[name] = at
	}
	start("coordinator", r.startCoordinator)
	start("synth", n.startSynth)
	start("gpu", n.startGPU)
	r.ready()
	r.submit(1)
	r.waitDone()
	get := func(name, path string, read func(io.Reader) error) {
		t.Helper()
		client := http.Client{Timeout: answerWithin}
		answer, err := client.Get("http://" + address[name] + path)
		r.check(err)
		defer answer.Body.Close()
		r.check(read(answer.Body))
	}
	for name, processes := range map[string][]string{
		"coordinator": {"coordinator"}, "synth": {"synth"}, "gpu": {"gpu", "engine cpu"},
	} {
		var status flight.Status
		get(name, "/status", func(body io.Reader) error { return json.NewDecoder(body).Decode(&status) })
		var got []string
		for i := range status.Reports {
			got = append(got, status.Reports[i].Process)
			if status.Reports[i].RSSBytes == 0 {
				t.Errorf("%s: nothing is resident in %+v", name, status.Reports[i])
			}
		}
		if !slices.Equal(got, processes) {
			t.Errorf("%s has reports of %v", name, got)
		}
	}
	for name, class := range map[string]ledger.Class{"synth": ledger.ClassInput, "gpu": ledger.ClassSRS} {
		get(name, "/flight/timeline", func(body io.Reader) error {
			points, err := flight.ReadPoints(body)
			if !slices.ContainsFunc(points, func(p flight.Point) bool { return p.Class == class && p.Pieces > 0 }) {
				t.Errorf("the time line of %s has no %s: %+v", name, class, points)
			}
			return err
		})
	}
	r.checkQuiet()
}
