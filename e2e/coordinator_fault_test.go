package e2e_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// B48: the leading coordinator is killed between any two of its steps in the midst of a job that has finished
// partitions, and the other one takes over.
func TestB48LeaderIsKilledAtEachPoint(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		"coordinator.after-reserve", "coordinator.after-claim", "coordinator.after-publish", "coordinator.after-accept",
		"coordinator.before-ack", "coordinator.after-store-result", "coordinator.before-release",
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			r.calm()
			r.room = 1 // one partition after the other
			leader := r.startCoordinator(r.heldOften(point)...)
			n := r.addNode("n1")
			n.startSynth()
			n.startGPU()
			r.ready()
			first := r.view()
			r.startCoordinator()
			j := r.submit(1, 2, 3, 4)
			if pid := r.heldWithOneFinished(j, point); pid != leader.pid() {
				t.Fatalf("process %d came by %s, the leader is %d", pid, point, leader.pid())
			}
			leader.kill()
			killed := time.Now()
			until(t, "the other one leads", func() bool {
				v := r.view()
				return v != nil && v.Term > first.Term && v.Leader != first.Leader
			})
			if took := time.Since(killed); took > 5*leaderLease {
				t.Errorf("it took %s, a leader's lease is %s", took, leaderLease)
			}
			r.waitDone()
			for _, p := range r.record(j).Partitions {
				if len(p.Attempts) > 2 {
					t.Errorf("one crash cost more than an attempt: %+v", p.Attempts)
				}
			}
			r.checkQuiet()
		})
	}
}

// heldTimes is how often heldOften holds.
const heldTimes = 4

// heldOften are settings that hold a process each of the first times it comes by a point.
func (r *rack) heldOften(point string) []string {
	var hooks []string
	for n := 1; n <= heldTimes; n++ {
		hooks = append(hooks, fmt.Sprintf("pause@%s#%d", point, n))
	}
	return r.hooked(hooks...)
}

// heldWithOneFinished lets a process go on until a job has a finished partition, and gives which one it is.
func (r *rack) heldWithOneFinished(j *submitted, point string) (pid int) {
	r.t.Helper()
	for n := 1; n <= heldTimes; n++ {
		at := fmt.Sprintf("%s#%d", point, n)
		pid = r.reached(at)
		if r.record(j).VerifiedCount() > 0 {
			return pid
		}
		r.letGo(at)
	}
	r.t.Fatalf("no partition was finished when a process came by %s for the last time", point)
	return 0
}

// The leader is killed while a proof is made: the worker goes on, nothing is done twice.
func TestLeaderIsKilledInMidProof(t *testing.T) {
	t.Parallel()
	r, j := pausedInProof(t)
	before := r.book("n1")
	r.coordinators[0].kill()
	r.startCoordinator()
	r.letGo(heldProof)
	r.waitDone()
	if after := r.book("n1"); after.Epoch != before.Epoch || after.Term <= before.Term {
		t.Errorf("term %d and epoch %s became %d and %s", before.Term, before.Epoch, after.Term, after.Epoch)
	}
	r.wantOneAttempt(j)
	r.checkQuiet()
}

// Every message of a job is published once more, under another id: the first copies while a proof is being made, the
// second ones between the acceptance of a result and its ack, the third ones when all is over. Nothing is done twice.
func TestDuplicateDeliveryChangesNothing(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.calm()
	r.room = 2
	const accepted = "coordinator.before-ack#1"
	r.startCoordinator(r.hooked("pause@" + accepted)...)
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU(r.hooked("pause@gpu.mid-proof")...)
	r.ready()
	var mu sync.Mutex
	seen := map[string][]bus.Message{}
	look := func(subject string) []bus.Message {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen[subject])
	}
	for _, subject := range []string{wire.AllSynth, wire.AllProve, wire.AllResult} {
		stop, err := r.bus.Subscribe(subject, func(m bus.Message) {
			mu.Lock()
			defer mu.Unlock()
			seen[subject] = append(seen[subject], m)
		})
		r.check(err)
		t.Cleanup(stop)
	}
	again := func(subjects ...string) {
		t.Helper()
		for _, subject := range subjects {
			copies := look(subject)
			if len(copies) == 0 {
				t.Fatalf("no message on %s was seen", subject)
			}
			for _, m := range copies {
				_, err := r.bus.Publish(t.Context(), bus.Message{Subject: m.Subject, Data: m.Data, Header: map[string]string{}})
				r.check(err)
			}
		}
	}
	j := r.submit(1, 2)
	r.reached("gpu.mid-proof#1")
	until(t, "both partitions have been sent to the device", func() bool { return len(look(wire.AllProve)) >= 2 })
	again(wire.AllSynth, wire.AllProve)
	until(t, "the copies for the device are fetched or gone", r.proveCopiesMet)
	r.letGo("gpu.mid-proof#1")
	r.reached(accepted)
	again(wire.AllSynth, wire.AllProve, wire.AllResult)
	r.letGo(accepted)
	r.waitDone()
	again(wire.AllSynth, wire.AllProve, wire.AllResult)
	r.checkQuiet()
	record := r.record(j)
	for _, p := range record.Partitions {
		if len(p.Attempts) != 1 {
			t.Errorf("attempts %+v", p.Attempts)
		}
	}
	if record.LateCount != 0 {
		t.Errorf("%d copies count as results that came late", record.LateCount)
	}
}

// proveCopiesMet tells that no message of the devices' queue waits to be fetched.
func (r *rack) proveCopiesMet() bool {
	met := true
	r.queues().look(wire.StreamProve, func(c *jetstream.ConsumerInfo) { met = met && c.NumPending == 0 })
	return met
}

// Two submits with one key at the same time at two coordinators are one job (invariant 7); other input is a conflict.
// Each coordinator holds what it got between its look at the key and the job's creation, until both have something.
func TestTwoSubmitsWithOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	const create, racers = "coordinator.before-create", 24
	r := newRack(t)
	r.calm()
	folders := []string{t.TempDir(), t.TempDir()}
	for _, folder := range folders {
		var hooks []string
		for n := 1; n <= racers; n++ {
			hooks = append(hooks, fmt.Sprintf("pause@%s#%d", create, n))
		}
		r.startCoordinator("test.folder="+folder, "test.hooks="+strings.Join(hooks, ","))
	}
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU()
	r.ready()
	ids, fresh := r.race(folders, create, racers)
	count := 0
	for i, id := range ids {
		if id != ids[0] {
			t.Errorf("jobs %s and %s of one key", ids[0], id)
		}
		if fresh[i] {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d of %d submits were told that theirs made the job", count, len(ids))
	}
	if _, err := r.client.Submit(t.Context(), request("one key", 7, 3)); err == nil {
		t.Error("another input under the key was accepted")
	}
	r.accepted(ids[0], 1, 2)
	r.waitDone()
	jobs, err := r.client.Jobs(t.Context(), wire.JobsRequest{})
	r.check(err)
	if len(jobs.Jobs) != 1 {
		t.Errorf("%d jobs are listed", len(jobs.Jobs))
	}
	r.checkQuiet()
}

// race submits one job again and again until each coordinator holds a submit at a point, in its own folder of hooks;
// then all go on. It gives each answer's job, and whether that was new.
func (r *rack) race(folders []string, point string, racers int) (ids []job.ID, fresh []bool) {
	r.t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	submit := func() {
		ctx, cancel := context.WithTimeout(r.t.Context(), patience)
		defer cancel()
		s, err := r.client.Submit(ctx, request("one key", 7, 1, 2))
		if err != nil {
			r.t.Errorf("submit: %v", err)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		ids, fresh = append(ids, s.Job), append(fresh, !s.Existing)
	}
	reached := func(folder string) bool {
		_, ok := hook.ReachedBy(folder, point+"#1")
		return ok
	}
	// Each request goes to either of them.
	for started := 0; !reached(folders[0]) || !reached(folders[1]); started++ {
		if started == racers {
			r.t.Fatalf("%d submits went to one coordinator", racers)
		}
		all.Go(submit)
		until(r.t, "the submit is held", func() bool { return len(holds(r.t, folders)) > started })
	}
	answered := make(chan struct{})
	go func() { defer close(answered); all.Wait() }()
	until(r.t, "all submits are answered", func() bool {
		for _, hold := range holds(r.t, folders) { // a submit that is sent again is held again
			r.check(os.Remove(hold))
		}
		select {
		case <-answered:
			return true
		default:
			return false
		}
	})
	if r.t.Failed() {
		r.t.FailNow()
	}
	return ids, fresh
}

// holds lists the files that hold somebody, in folders of hooks.
func holds(t *testing.T, folders []string) (all []string) {
	t.Helper()
	for _, folder := range folders {
		held, err := filepath.Glob(filepath.Join(folder, "*.hold"))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, held...)
	}
	return all
}

// B38: cancel at each stage really stops the work, and nothing is left of it: before any partition is admitted, while
// the first one is in its queue, at each point of the second one when the first is finished, while a result is
// accepted, and when the whole result is stored already.
func TestB38CancelAtEachStage(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		cancelWaiting, cancelQueued, "synth.after-claim#2", "synth.mid-write#2", "synth.after-publish#2", heldProof,
		"gpu.after-proof#2", "coordinator.after-accept#1", "coordinator.after-store-result#1",
	} {
		t.Run("at "+point, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			j := r.heldForCancel(point)
			r.check(r.client.Cancel(t.Context(), j.id, "not wanted any more"))
			r.check(r.client.Cancel(t.Context(), j.id, "twice does no harm"))
			switch point {
			case cancelQueued:
				r.nodes[0].synth.signal(syscall.SIGCONT)
			case cancelWaiting: // others work on
			case heldProof: // the engine is ended, nobody lets it go
			default:
				r.letGo(point)
			}
			if record := r.waitEnd(j); record.State != job.Cancelled {
				t.Fatalf("job is %s: %+v", record.State, record.Fault)
			}
			if point == cancelWaiting {
				r.letGo("gpu.mid-proof#1")
				r.waitDone(r.jobs[0])
			}
			r.checkQuiet()
			next := r.submit(2)
			r.waitDone(next)
			if record := r.record(j); record.State != job.Cancelled {
				t.Errorf("the cancelled job is %s", record.State)
			}
			r.checkQuiet()
		})
	}
}

// Stages of a job at which no process is at a point.
const cancelWaiting, cancelQueued = "waiting", "queued"

// heldForCancel adds a coordinator and a node, and has a job of three partitions held at a point.
func (r *rack) heldForCancel(point string) *submitted {
	r.t.Helper()
	r.room = 2
	settings := map[string][]string{}
	role, _, _ := strings.Cut(point, ".")
	switch role {
	case cancelQueued:
	case cancelWaiting:
		r.room, settings["gpu"] = 1, r.hooked("pause@gpu.mid-proof#1")
	case "gpu":
		settings["synth"], settings["gpu"] = r.hooked("pause@"+secondClaim), r.hooked("pause@"+point)
	default:
		settings[role] = r.hooked("pause@" + point)
	}
	r.startCoordinator(settings["coordinator"]...)
	n := r.addNode("n1")
	n.startSynth(settings["synth"]...)
	n.startGPU(settings["gpu"]...)
	r.ready()
	switch role {
	case cancelQueued:
		n.synth.signal(syscall.SIGSTOP) // the task stays in its queue
		j := r.submit(1, 2, 3)
		until(r.t, "a task is in the queue", func() bool { return r.watch.published(j.id) > 0 })
		return j
	case cancelWaiting:
		r.submit(9)
		r.reached("gpu.mid-proof#1") // it has all the room there is
		j := r.submit(1, 2, 3)
		until(r.t, "the job says that there is no room", func() bool {
			w, err := r.client.Why(r.t.Context(), j.id)
			return err == nil && len(w.Reasons) > 0
		})
		for i, p := range r.record(j).Partitions {
			if p.Stage != job.Waiting || len(p.Attempts) > 0 {
				r.t.Fatalf("partition %d was admitted: %+v", i, p)
			}
		}
		return j
	}
	j := r.submit(1, 2, 3)
	if role == "gpu" {
		r.firstAlone(j)
	}
	r.reached(point)
	r.oneFinished(j)
	return j
}
