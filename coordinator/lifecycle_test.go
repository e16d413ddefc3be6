package coordinator_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

func TestB31JobsWaitForTheFirstWorker(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ids := []job.ID{w.submit(1), w.submit(2), w.submit(1)}
	w.start()
	w.until("the jobs wait for a node", func() bool {
		why, err := ask[wire.WhyReply](w, wire.ClientSubject(wire.VerbWhy, job.MainTenant), &wire.JobRequest{Job: ids[2]})
		return err == nil && len(why.Reasons) == 1 && strings.Contains(why.Reasons[0].Text, "node")
	})
	time.Sleep(4 * lease) // nothing may be decided for good meanwhile
	w.node("n1", 2, nil)
	for _, id := range ids {
		w.proof(w.ends(id, job.Done))
	}
	w.settles("n1")
}

// Every read-only question is answered in time while workers come and go, and the dead leave the list (B33).
func TestB33FlappingWorkersBlockNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.node("n1", 2, nil)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	flaps := make(chan struct{})
	go func() {
		defer close(flaps)
		for i := 0; ctx.Err() == nil; i++ {
			b := &wire.Beat{
				Node: job.Node(fmt.Sprintf("flap-%d", i%50)), Boot: "b", Instance: fmt.Sprintf("i%d", i), Role: wire.RoleSynth,
				Seq: 1, WireMin: 1, WireMax: wire.Version, State: wire.StateReady, Slots: 1,
			}
			data, err := wire.Encode(b)
			if err != nil {
				t.Error(err)
				return
			}
			_ = w.bus.Send(ctx, bus.Message{Subject: wire.BeatSubject(b.Node), Data: data})
			time.Sleep(2 * time.Millisecond)
		}
	}()
	var ids []job.ID
	for range 10 {
		ids = append(ids, w.submit(1))
	}
	w.until("somebody leads", func() bool {
		_, err := ask[wire.NodesReply](w, wire.AdminSubject(wire.AdminNodes), &wire.Empty{})
		return err == nil
	})
	for range 20 {
		began := time.Now()
		if _, err := ask[wire.NodesReply](w, wire.AdminSubject(wire.AdminNodes), &wire.Empty{}); err != nil {
			t.Errorf("nodes: %v", err)
		}
		_, err := ask[wire.JobsReply](w, wire.ClientSubject(wire.VerbJobs, job.MainTenant), &wire.JobsRequest{})
		if err != nil {
			t.Errorf("jobs: %v", err)
		}
		_, err = ask[wire.WhyReply](w, wire.ClientSubject(wire.VerbWhy, job.MainTenant), &wire.JobRequest{Job: ids[9]})
		if err != nil {
			t.Errorf("why: %v", err)
		}
		if took := time.Since(began); took > slack {
			t.Errorf("answers took %s", took)
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, id := range ids {
		w.ends(id, job.Done)
	}
	cancel()
	<-flaps
	began := time.Now()
	w.until("dead workers are off the list", func() bool {
		reply, err := ask[wire.NodesReply](w, wire.AdminSubject(wire.AdminNodes), &wire.Empty{})
		return err == nil && len(reply.Nodes) == 1
	})
	if took := time.Since(began); took > 2*lease+slack {
		t.Errorf("dead workers left the list after %s", took)
	}
}

// The frozen worker's attempt is fenced out; its late result changes nothing and is counted (B34, invariants 5 and 6).
func TestB34LateResultOfAFrozenWorkerChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	release := make(chan struct{})
	frozen := w.node("n1", 1, each(sticks(release), prove))
	id := w.submit(1)
	w.until("the first worker has it", func() bool { return len(frozen.attempts()) == 1 })
	other := w.node("n2", 1, nil)
	r := w.ends(id, job.Done)
	w.proof(r)
	if p := &r.Partitions[0]; p.LostCount != 1 || p.Last().Node != "n2" || len(other.attempts()) != 1 {
		t.Errorf("%d attempts lost, the last one on %s", p.LostCount, p.Last().Node)
	}
	if b := w.book("n1"); len(b.Entries) != 1 || !b.Entries[0].Limbo {
		t.Errorf("the frozen worker's bytes do not count any more: %+v", b.Entries)
	}
	close(release)
	w.until("the late result is counted", func() bool { return w.record(id).LateCount == 1 })
	late := w.record(id)
	if !bytes.Equal(late.Partitions[0].Proof, r.Partitions[0].Proof) || late.Result.SHA256 != r.Result.SHA256 {
		t.Error("stored bytes changed after done")
	}
	w.settles("n1", "n2")
}

// A second copy of a part is ignored (B35).
func TestB35SecondCopyOfAResultIsIgnored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	gate := make(chan struct{})
	w.node("n1", 2, each(prove, func(ctx context.Context, n *node, task *wire.SynthTask) {
		<-gate
		prove(ctx, n, task)
	}))
	id := w.submit(2)
	w.until("one partition is verified", func() bool { return w.record(id).VerifiedCount() == 1 })
	first := *w.record(id)
	done := 0
	if first.Partitions[1].Stage == job.Verified {
		done = 1
	}
	for i := range 2 {
		result := &wire.Result{
			Attempt: first.Attempt(done), Node: "n1", Device: "cpu", Outcome: job.OutcomeOK,
			Proof: first.Partitions[done].Proof,
		}
		data, err := wire.Encode(result)
		w.check(err)
		_, err = w.bus.Publish(t.Context(), bus.Message{
			Subject: wire.ResultSubject("n1"), ID: fmt.Sprintf("copy-%d", i), Data: data,
		})
		w.check(err)
	}
	log, err := w.bus.Log(t.Context(), wire.StreamResult)
	w.check(err)
	w.until("both copies are looked at", func() bool {
		state, err := log.State(t.Context())
		return err == nil && state.Messages == 0
	})
	close(gate)
	r := w.ends(id, job.Done)
	w.proof(r)
	if r.LateCount != 0 || len(r.Partitions[done].Attempts) != 1 {
		t.Errorf("a copy counted: late %d, attempts %d", r.LateCount, len(r.Partitions[done].Attempts))
	}
}

// A job without progress past its deadline turns into a visible failure (B35).
func TestB35AJobThatStandsStillFailsAtItsDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	deadline := time.Now().Add(lease)
	id := w.submit(1, func(r *job.Record) { r.Deadline = &deadline })
	r := w.ends(id, job.Failed)
	if r.Fault == nil || r.Fault.Kind != fault.Exhausted || !strings.Contains(r.Fault.Message, "deadline") {
		t.Errorf("failed with %+v", r.Fault)
	}
}

// A deadline that passes during proving does not throw a good proof away (B47).
func TestB47AProofAfterTheDeadlineIsTaken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	w.leads()
	deadline := time.Now().Add(4 * lease)
	w.node("n1", 1, func(ctx context.Context, n *node, task *wire.SynthTask) {
		for time.Now().Before(deadline.Add(2 * heartbeat)) {
			time.Sleep(heartbeat / 4)
		}
		prove(ctx, n, task)
	})
	id := w.submit(1, func(r *job.Record) { r.Deadline = &deadline })
	r := w.ends(id, job.Done)
	if !r.EndedAt.After(deadline) {
		t.Fatal("the proof came before the deadline")
	}
	w.proof(r)
	w.settles("n1")
}

func TestB38CancelStopsWorkAtEachStage(t *testing.T) {
	t.Parallel()
	at := func(stages ...job.Stage) act {
		return func(ctx context.Context, n *node, task *wire.SynthTask) {
			for _, s := range stages {
				n.stage(ctx, task.Attempt, s)
			}
			hangs(ctx, n, task)
		}
	}
	for name, c := range map[string]struct {
		play  act
		stage job.Stage
	}{
		"queued":       {nil, job.Waiting},
		"in synthesis": {at(), job.Synthesizing},
		"sealed":       {at(job.Sealed), job.Sealed},
		"proving":      {at(job.Sealed, job.Proving), job.Proving},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.start()
			nodes := []job.Node{}
			var working atomic.Bool
			if c.play != nil {
				w.node("n1", 1, func(ctx context.Context, n *node, task *wire.SynthTask) {
					working.Store(true)
					defer working.Store(false)
					c.play(ctx, n, task)
				})
				nodes = append(nodes, "n1")
			}
			id := w.submit(1)
			w.until("the stage is reached", func() bool {
				return w.record(id).State != "" && w.record(id).Partitions[0].Stage == c.stage
			})
			subject := wire.ClientSubject(wire.VerbCancel, job.MainTenant)
			w.until("cancel is taken", func() bool {
				reply, err := ask[wire.StatusReply](w, subject, &wire.JobRequest{Job: id, Reason: "no longer wanted"})
				if err != nil || reply.Fault != nil {
					return false
				}
				if state := reply.Record.State; state != job.Cancelling && state != job.Cancelled {
					t.Errorf("job is %s after cancel", state)
				}
				return true
			})
			if reply, err := ask[wire.StatusReply](w, subject, &wire.JobRequest{Job: id}); err != nil || reply.Fault != nil {
				t.Errorf("cancel again: %v, %+v", err, reply)
			}
			r := w.ends(id, job.Cancelled)
			if working.Load() {
				t.Error("cancelled while a worker still works on it")
			}
			if r.Fault == nil || r.Fault.Message != "no longer wanted" {
				t.Errorf("reason %+v", r.Fault)
			}
			w.settles(nodes...)
		})
	}
}

// Other tenants' jobs do not exist for a client.
func TestACancelOfAnotherTenantFindsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	id := w.submit(1)
	w.until("the leader answers", func() bool {
		reply, err := ask[wire.StatusReply](w, wire.ClientSubject(wire.VerbCancel, "other"), &wire.JobRequest{Job: id})
		return err == nil && reply.Fault != nil && reply.Fault.Kind == fault.NotFound
	})
	reply, err := ask[wire.StatusReply](w, wire.ClientSubject(wire.VerbStatus, "other"), &wire.JobRequest{Job: id})
	if err != nil || reply.Fault == nil || reply.Fault.Kind != fault.NotFound {
		t.Errorf("status: %v, %+v", err, reply)
	}
	if w.record(id).State != job.Active {
		t.Error("it was cancelled all the same")
	}
}

// A deleted record is told as lost, its work stops and its bytes come back (B37).
func TestB37ALostRecordIsToldAndItsWorkStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	n := w.node("n1", 1, each(hangs, prove))
	id := w.submit(1)
	w.until("it runs", func() bool { return len(n.attempts()) == 1 && len(w.book("n1").Entries) == 1 })
	kv, err := w.bus.KV(t.Context(), wire.BucketJobs)
	w.check(err)
	w.check(kv.Delete(t.Context(), wire.JobKey(id), 0))
	w.settles("n1")
	reply, err := ask[wire.StatusReply](w, wire.ClientSubject(wire.VerbStatus, job.MainTenant), &wire.JobRequest{Job: id})
	if err != nil || reply.Fault == nil || !strings.Contains(reply.Fault.Message, "was lost") {
		t.Errorf("status: %v, %+v", err, reply)
	}
	w.proof(w.ends(w.submit(1), job.Done))
}

// A ledger entry that is deleted under a running attempt comes back by the node's word (B37).
func TestB37ALostLedgerEntryIsBookedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	gate := make(chan struct{})
	n := w.node("n1", 1, func(ctx context.Context, n *node, task *wire.SynthTask) {
		select {
		case <-gate:
		case <-ctx.Done():
		}
		prove(ctx, n, task)
	})
	id := w.submit(1)
	w.until("it runs", func() bool { return len(n.attempts()) == 1 && len(w.book("n1").Entries) == 1 })
	l := w.ledger.Open()
	b := w.book("n1")
	call, err := l.Begin(t.Context(), b.Term, b.Epoch)
	w.check(err)
	_, err = l.Release(t.Context(), call, "n1", n.attempts()[0])
	w.check(err)
	w.until("it is booked again", func() bool { return len(w.book("n1").Entries) == 1 })
	close(gate)
	r := w.ends(id, job.Done)
	if len(r.Partitions[0].Attempts) != 1 {
		t.Errorf("%d attempts", len(r.Partitions[0].Attempts))
	}
	w.settles("n1")
}

// A partition that kills its worker every time ends with the signal in its message; cancel works in between, and what
// waits behind it goes on (B45).
func TestB45APoisonJobEndsAsADeadLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *coordinator.Config) { c.Attempts.LostMax = 4 })
	w.start()
	poison := w.submit(1, func(r *job.Record) { r.Priority = 50 })
	play := func(ctx context.Context, n *node, task *wire.SynthTask) {
		if task.Attempt.Job != poison {
			prove(ctx, n, task)
			return
		}
		n.publish(ctx, &wire.Result{
			Attempt: task.Attempt, Outcome: job.OutcomeLost,
			Fault: &fault.Report{Kind: fault.Device, Stage: "synthesis", Message: "signal: killed"},
		})
		n.free(ctx, task.Attempt)
	}
	a, b := w.node("n1", 1, play), w.node("n2", 1, play)
	var good []job.ID
	for range 5 {
		good = append(good, w.submit(1))
	}
	for _, id := range good {
		w.proof(w.ends(id, job.Done))
	}
	r := w.ends(poison, job.Failed)
	if want := "worker died 4 times (signal: killed)"; !strings.Contains(r.Fault.Message, want) {
		t.Errorf("message %q lacks %q", r.Fault.Message, want)
	}
	runs := 0
	for _, attempt := range append(a.attempts(), b.attempts()...) {
		if attempt.Job == poison {
			runs++
		}
	}
	if runs != 4 {
		t.Errorf("it ran %d times", runs)
	}
	letters, err := w.bus.Log(t.Context(), wire.StreamDLQ)
	w.check(err)
	w.until("it is a dead letter", func() bool {
		_, err := letters.Next(t.Context(), wire.AllDLQ, 1)
		return err == nil
	})
	w.settles("n1", "n2")
}

// Every attempt's error is kept and shown, the last one in the summary (B50); between attempts status says what went
// wrong and when it goes on (B51).
func TestB50B51ErrorsOfAttemptsAreShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *coordinator.Config) {
		c.Attempts.FailedMax, c.Attempts.BackoffMin, c.Attempts.BackoffMax = 3, time.Second, 2*time.Second
	})
	w.start()
	w.node("n1", 1, each(
		fails(fault.Device, "out of memory: need 9 GiB, have 8", true),
		fails(fault.Corrupt, "segment digest differs", false),
		fails(fault.Internal, "constraint 17 does not hold", false)))
	id := w.submit(1)
	w.until("it pauses after the first failure", func() bool {
		reply, err := ask[wire.StatusReply](w, wire.ClientSubject(wire.VerbStatus, job.MainTenant), &wire.JobRequest{Job: id})
		if err != nil || reply.Record == nil {
			return false
		}
		p := &reply.Record.Partitions[0]
		return p.FailedCount == 1 && p.NotBefore != nil && p.Last() != nil && p.Last().Fault != nil &&
			strings.Contains(p.Last().Fault.Message, "out of memory")
	})
	w.until("why names the pause", func() bool {
		why, err := ask[wire.WhyReply](w, wire.ClientSubject(wire.VerbWhy, job.MainTenant), &wire.JobRequest{Job: id})
		return err == nil && len(why.Reasons) == 1 && why.Reasons[0].Until != nil
	})
	r := w.ends(id, job.Failed)
	var messages []string
	for _, a := range r.Partitions[0].Attempts {
		messages = append(messages, fmt.Sprintf("%s %s: %s", a.Node, a.Outcome, a.Fault.Message))
	}
	for i, want := range []string{"out of memory", "digest differs", "does not hold"} {
		if i >= len(messages) || !strings.Contains(messages[i], want) {
			t.Errorf("history %q lacks %q", messages, want)
		}
	}
	if !strings.Contains(r.Fault.Message, "failed 3 times, last: constraint 17") {
		t.Errorf("summary %q", r.Fault.Message)
	}
	w.settles("n1")
}

// A job that is replayed runs at once, although the ids of its first attempts are still remembered (B57).
func TestB57AReplayIsNoDuplicate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *coordinator.Config) { c.Attempts.FailedMax = 1 })
	w.start()
	w.node("n1", 2, each(prove, fails(fault.Internal, "bad luck", false), prove), func(n *node) { n.slots = 1 })
	id := w.submit(2)
	failed := w.ends(id, job.Failed)
	if failed.VerifiedCount() != 1 {
		t.Fatalf("%d partitions verified", failed.VerifiedCount())
	}
	raw := bus.Message{
		Subject: wire.DLQSubject(wire.DLQMessages), ID: "raw", Data: []byte("no task at all"),
		Header: map[string]string{wire.HeaderDeadSubject: "c2.synth.n1", wire.HeaderDeadReason: "bad input"},
	}
	if _, err := w.bus.Publish(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	list, err := ask[wire.DLQReply](w, wire.AdminSubject(wire.AdminDLQ), &wire.DLQRequest{})
	if err == nil && (len(list.Messages) != 1 || list.Messages[0].Subject != "c2.synth.n1" ||
		list.Messages[0].Reason != "bad input" || string(list.Messages[0].Start) != "no task at all") {
		t.Errorf("messages that are no tasks: %+v", list.Messages)
	}
	if err != nil || len(list.Letters) != 1 || list.Letters[0].Job != id {
		t.Fatalf("dead letters: %v, %+v", err, list)
	}
	reply, err := ask[wire.DLQReply](w, wire.AdminSubject(wire.AdminDLQ), &wire.DLQRequest{Job: id, Replay: true})
	if err != nil || reply.Fault != nil {
		t.Fatalf("replay: %v, %+v", err, reply)
	}
	r := w.ends(id, job.Done)
	w.proof(r)
	for i := range r.Partitions {
		if failed.Partitions[i].Stage == job.Verified && len(r.Partitions[i].Attempts) != len(failed.Partitions[i].Attempts) {
			t.Error("a finished partition was computed again (invariant 6)")
		}
	}
	w.settles("n1")
}
