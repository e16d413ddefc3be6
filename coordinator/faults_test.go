package coordinator_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/coordinator/internal/dispatch"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// pausedAt starts a coordinator that stops at a point, and gives a function that waits until it has got there.
func (w *world) pausedAt(point string) (p *process, reached func()) {
	w.t.Helper()
	folder := w.t.TempDir()
	p = w.start(func(c *coordinator.Config) {
		c.Test.Folder, c.Test.Hooks = folder, []string{"pause@" + point}
	})
	return p, func() {
		w.t.Helper()
		w.until("point "+point+" is reached", func() bool {
			_, ok := hook.ReachedBy(folder, point+"#1")
			return ok
		})
		if _, err := os.Stat(filepath.Join(folder, point+"#1.hold")); err != nil {
			w.t.Errorf("it did not pause: %v", err)
		}
	}
}

// A leader that crashes between any two steps of a claim or of a result leaves nothing that the next one does not put
// right; a finished partition is not computed again (B48, B39, invariants 2, 3 and 6).
func TestB39B48ALeaderCrashesBetweenAnyTwoSteps(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		dispatch.PointReserved, dispatch.PointClaimed, dispatch.PointPublished, dispatch.PointAccepted,
		dispatch.PointBeforeAck, dispatch.PointResultStored, dispatch.PointRelease,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			first, reached := w.pausedAt(point)
			n := w.node("n1", 1, nil)
			id := w.submit(1)
			reached()
			verified := w.record(id).VerifiedCount()
			runs := len(n.attempts())
			first.kill()
			began := time.Now()
			w.start()
			r := w.ends(id, job.Done)
			w.proof(r)
			w.settles("n1")
			if took := time.Since(began); took > 8*lease+slack {
				t.Errorf("healed after %s", took)
			}
			if again := len(n.attempts()) - runs; verified == 1 && again > 0 {
				t.Errorf("a finished partition was computed %d times again", again)
			}
			if len(r.Partitions[0].Attempts) > 2 {
				t.Errorf("%d attempts", len(r.Partitions[0].Attempts))
			}
		})
	}
}

// Another coordinator takes over within a few leases of the leader, and running work goes on.
func TestALeaderIsKilledAndAnotherGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.start()
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
	second := w.start()
	first.kill()
	began := time.Now()
	w.until("the other one leads", func() bool {
		reply, err := ask[wire.NodesReply](w, wire.AdminSubject(wire.AdminNodes), &wire.Empty{})
		return err == nil && reply.Term > 1
	})
	if took := time.Since(began); took > 2*leaderLease+slack {
		t.Errorf("taken over after %s", took)
	}
	close(gate)
	r := w.ends(id, job.Done)
	w.proof(r)
	w.settles("n1")
	for i := range r.Partitions {
		if len(r.Partitions[i].Attempts) != 1 {
			t.Errorf("partition %d: %d attempts", i, len(r.Partitions[i].Attempts))
		}
	}
	second.stop()
}

// While the ledger is away nothing starts, what runs ends, and its bytes come back later (B72).
func TestB72NothingStartsWithoutTheLedger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	gate := make(chan struct{})
	n := w.node("n1", 3, func(ctx context.Context, n *node, task *wire.SynthTask) {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		prove(ctx, n, task)
	}, func(n *node) { n.slots = 3 })
	running := w.submit(3)
	w.until("three run", func() bool { return len(n.attempts()) == 3 })
	w.ledger.SetAway(errors.New("connection refused"))
	later := w.submit(3)
	close(gate)
	w.proof(w.ends(running, job.Done))
	time.Sleep(3 * lease)
	if got := len(n.attempts()); got != 3 {
		t.Errorf("%d attempts began without the ledger", got-3)
	}
	w.until("why names the ledger", func() bool {
		why, err := ask[wire.WhyReply](w, wire.ClientSubject(wire.VerbWhy, job.MainTenant), &wire.JobRequest{Job: later})
		return err == nil && len(why.Reasons) > 0 && strings.Contains(why.Reasons[0].Text, "ledger is away")
	})
	w.ledger.SetAway(nil)
	if got := len(w.book("n1").Entries); got != 3 {
		t.Errorf("the ledger has %d entries when it comes back, want the 3 that it could not be told of", got)
	}
	w.proof(w.ends(later, job.Done))
	w.settles("n1")
}

// A ledger that forgot everything, or went back in time, grants nothing until the nodes have declared what they hold.
func TestALedgerThatForgotIsRebuiltFromTheNodes(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(*world) func(){
		"wiped": func(w *world) func() { return w.ledger.Wipe },
		"rolled back": func(w *world) func() {
			old := w.ledger.Snapshot()
			return func() { w.ledger.RollBack(old) }
		},
		"restarted from an old state": func(w *world) func() {
			old := w.ledger.Snapshot()
			return func() { w.ledger.Restart(old) }
		},
	} {
		t.Run(name, func(t *testing.T) {
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
			w.until("the node has declared", func() bool { return w.book("n1").Epoch != "" })
			do := harm(w)
			id := w.submit(6)
			w.until("two run", func() bool { return len(n.attempts()) == 2 })
			do()
			w.until("what runs is booked again", func() bool {
				b := w.book("n1")
				return b.Closed == "" && len(b.Entries) == 2
			})
			close(gate)
			r := w.ends(id, job.Done)
			w.proof(r)
			if n.most > 2 {
				t.Errorf("%d attempts were booked at once where 2 fit (invariant 1)", n.most)
			}
			for i := range r.Partitions {
				if p := &r.Partitions[i]; p.LostCount+p.FailedCount > 0 {
					t.Errorf("partition %d: %d lost, %d failed", i, p.LostCount, p.FailedCount)
				}
			}
			w.settles("n1")
		})
	}
}

// NATS stops and comes back on the same store: leads are lost and taken again, running work ends once.
func TestNATSGoesAwayAndComesBack(t *testing.T) {
	t.Parallel()
	w := newNATSWorld(t)
	w.start()
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
	w.nats.Stop()
	close(gate) // both end while nobody can be told
	time.Sleep(2 * leaderLease)
	w.check(w.nats.Start())
	r := w.ends(id, job.Done)
	w.proof(r)
	for i := range r.Partitions {
		if r.Partitions[i].FailedCount > 0 {
			t.Errorf("partition %d failed", i)
		}
	}
	w.settles("n1")
}

// A task that no worker ever settles is taken out of the queue when its attempt is given up, and the job ends (B52).
func TestB52ATaskThatNobodySettlesIsRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *coordinator.Config) { c.Attempts.LostMax = 2 })
	w.start()
	release := make(chan struct{})
	n := w.node("n1", 3, sticks(release))
	id := w.submit(1)
	r := w.ends(id, job.Failed)
	if !strings.Contains(r.Fault.Message, "worker died 2 times") {
		t.Errorf("message %q", r.Fault.Message)
	}
	for _, stream := range []string{wire.StreamSynth, wire.StreamProve} {
		log, err := w.bus.Log(t.Context(), stream)
		w.check(err)
		w.until(stream+" is empty though nobody acked", func() bool {
			state, err := log.State(t.Context())
			return err == nil && state.Messages == 0
		})
	}
	reply, err := ask[wire.DLQReply](w, wire.AdminSubject(wire.AdminDLQ), &wire.DLQRequest{Job: id})
	if err != nil || len(reply.Letters) != 1 || reply.Letters[0].Record == nil {
		t.Errorf("dead letter: %v, %+v", err, reply)
	}
	if b := w.book("n1"); len(b.Entries) != 2 {
		t.Errorf("%d reservations: bytes of frozen workers count until they are gone", len(b.Entries))
	}
	close(release)
	w.settles("n1")
	_ = n
}

// A full queue refuses; what was booked for the refused is undone, and they run later (B58).
func TestB58AFullQueueUndoesTheClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *coordinator.Config) { c.Streams.QueueBytes = bytesize.MiB })
	w.start()
	w.leads()
	topology := w.config()
	streams := topology.Streams.Topology()
	for i := range streams.Streams {
		if streams.Streams[i].Name == wire.StreamSynth {
			streams.Streams[i].MessagesMax = 1
		}
	}
	w.check(w.bus.Setup(t.Context(), streams))
	gate := make(chan struct{})
	n := w.node("n1", 4, func(ctx context.Context, n *node, task *wire.SynthTask) {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		prove(ctx, n, task)
	}, func(n *node) { n.slots = 1 })
	id := w.submit(4)
	w.until("one runs", func() bool { return len(n.attempts()) == 1 })
	w.until("others were handed back", func() bool {
		for _, p := range w.record(id).Partitions {
			if last := p.Last(); last != nil && last.Outcome == job.OutcomeHandedBack {
				return strings.Contains(last.Fault.Message, "queue full")
			}
		}
		return false
	})
	close(gate)
	w.proof(w.ends(id, job.Done))
	w.settles("n1")
}

// A node that dies: its jobs go back and run elsewhere; jobs and nodes tell the same story all the time (B105).
func TestB105ADeadNodeAndItsJobsAreSeenAlike(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	dying := w.node("n1", 2, hangs)
	id := w.submit(2)
	w.until("both run", func() bool { return len(dying.attempts()) == 2 })
	dying.crash()
	began := time.Now()
	w.until("the node is off the list", func() bool {
		reply, err := ask[wire.NodesReply](w, wire.AdminSubject(wire.AdminNodes), &wire.Empty{})
		if err != nil {
			return false
		}
		subject := wire.ClientSubject(wire.VerbStatus, job.MainTenant)
		status, err := ask[wire.StatusReply](w, subject, &wire.JobRequest{Job: id})
		if err != nil {
			return false
		}
		running := 0
		for _, p := range status.Record.Partitions {
			if p.Stage.Running() {
				running++
			}
		}
		for _, node := range reply.Nodes {
			if node.Running < running {
				t.Errorf("the node has %d, the job %d running", node.Running, running)
			}
		}
		return len(reply.Nodes) == 0
	})
	w.until("its partitions wait again", func() bool {
		for _, p := range w.record(id).Partitions {
			if p.Stage != job.Waiting || p.Last().Outcome != job.OutcomeLost || p.Last().EndedAt == nil {
				return false
			}
		}
		return true
	})
	if took := time.Since(began); took > 5*lease+slack {
		t.Errorf("seen after %s", took)
	}
	if b := w.book("n1"); len(b.Entries) != 2 {
		t.Errorf("%d entries: time freed bytes", len(b.Entries))
	}
	w.node("n2", 2, nil)
	w.proof(w.ends(id, job.Done))
	// The node comes back, without what its processes held: only now its bytes are free.
	dying.start()
	w.settles("n1", "n2")
}

// B24: a device that makes bad proofs is taken out, kept out over a change of leader, and let back by an operator; no
// bad proof counts (invariant 4).
func TestB24ADeviceWithBadProofsIsTakenOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *coordinator.Config) {
		c.Attempts.FailedMax, c.Schedule.QuarantineAfter = 20, 2
	})
	first := w.start()
	lie := func(ctx context.Context, n *node, task *wire.SynthTask) {
		for digest, proof := range n.w.made.proofs { // one of another partition: well formed, and wrong
			if digest != task.Slice.SHA256 {
				n.publish(ctx, &wire.Result{Attempt: task.Attempt, Outcome: job.OutcomeOK, Proof: proof})
				break
			}
		}
		n.free(ctx, task.Attempt)
	}
	liar := w.node("n1", 2, lie)
	id := w.submit(2)
	w.until("the device is in quarantine", func() bool {
		reply, err := ask[wire.NodesReply](w, wire.AdminSubject(wire.AdminNodes), &wire.Empty{})
		return err == nil && len(reply.Nodes) == 1 && len(reply.Nodes[0].Devices) == 1 &&
			reply.Nodes[0].Devices[0].Quarantined
	})
	w.until("the record has both failures", func() bool { // as the test sees it, which may be later than the leader
		r := w.record(id)
		return r.Partitions[0].FailedCount+r.Partitions[1].FailedCount >= 2
	})
	if r := w.record(id); r.VerifiedCount() != 0 {
		t.Errorf("%d partitions are verified", r.VerifiedCount())
	}
	w.node("n2", 1, nil)
	r := w.ends(id, job.Done)
	w.proof(r)
	before := len(liar.attempts())
	first.stop()
	w.start()
	w.proof(w.ends(w.submit(2), job.Done))
	if got := len(liar.attempts()); got != before {
		t.Errorf("a device in quarantine got %d attempts", got-before)
	}
	reply, err := ask[wire.Reply](w, wire.AdminSubject(wire.AdminRelease), &wire.ReleaseRequest{Node: "n1", Device: "cpu"})
	if err != nil || reply.Fault != nil {
		t.Fatalf("release: %v, %+v", err, reply)
	}
	w.settles("n1", "n2")
}

// A device that was taken out is let back by itself when it proves a known answer (settings schedule.quarantine_min and
// quarantine_max).
func TestADeviceThatProvesAKnownAnswerIsLetBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *coordinator.Config) {
		c.Attempts.FailedMax, c.Schedule.QuarantineAfter = 20, 2
		c.Schedule.QuarantineMin, c.Schedule.QuarantineMax = 200*time.Millisecond, time.Second
	})
	w.start()
	bad := fails(fault.Device, "device error", true)
	w.node("n1", 2, each(bad, bad, prove))
	id := w.submit(2)
	w.until("the device is in quarantine", func() bool { return len(w.store.Mark("n1").Quarantined) == 1 })
	w.proof(w.ends(id, job.Done))
	if m := w.store.Mark("n1"); len(m.Quarantined) != 0 || len(m.Paroled) != 1 {
		t.Errorf("at the end: %+v", m)
	}
	w.settles("n1")
}

// Input that is gone fails the job with that reason, at once.
func TestAJobWhoseSliceIsGoneFails(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	id := w.submit(1)
	w.check(w.store.DeleteInput(t.Context(), wire.SliceName(id, 0)))
	w.node("n1", 1, fails(fault.NotFound, "no slice", false))
	r := w.ends(id, job.Failed)
	if r.Fault.Kind != fault.NotFound || len(r.Partitions[0].Attempts) != 1 {
		t.Errorf("fault %+v after %d attempts", r.Fault, len(r.Partitions[0].Attempts))
	}
	w.settles("n1")
}
