package e2e_test

import (
	"context"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// B48: the leading coordinator is killed between any two of its steps, and the other one takes over.
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
			settings := r.hooked("kill@" + point)
			r.startCoordinator(settings...)
			r.startCoordinator(settings...)
			n := r.addNode("n1")
			n.startSynth()
			n.startGPU()
			r.ready()
			first := r.view()
			j := r.submit(1, 2)
			pid := r.reached(point + "#1")
			at := slices.IndexFunc(r.coordinators, func(p *process) bool { return p.pid() == pid })
			if at < 0 {
				t.Fatalf("process %d is no coordinator", pid)
			}
			r.coordinators[at].killed()
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

// The leader is killed while a proof is made: the worker goes on, nothing is done twice.
func TestLeaderIsKilledInMidProof(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.calm()
	r.startCoordinator()
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU(r.hooked("pause@gpu.mid-proof")...)
	r.ready()
	j := r.submit(1)
	r.reached("gpu.mid-proof#1")
	before := r.book("n1")
	r.coordinators[0].kill()
	r.startCoordinator()
	r.letGo("gpu.mid-proof#1")
	r.waitDone()
	if after := r.book("n1"); after.Epoch != before.Epoch || after.Term <= before.Term {
		t.Errorf("term %d and epoch %s became %d and %s", before.Term, before.Epoch, after.Term, after.Epoch)
	}
	if p := r.record(j).Partitions[0]; len(p.Attempts) != 1 {
		t.Errorf("the proof was begun again: %+v", p.Attempts)
	}
	r.checkQuiet()
}

// Every message of a job is published once more, under another id and after it was handled: nothing is done twice.
func TestDuplicateDeliveryChangesNothing(t *testing.T) {
	t.Parallel()
	r := full(t, "n1")
	var mu sync.Mutex
	var seen []bus.Message
	for _, subject := range []string{wire.AllSynth, wire.AllProve, wire.AllResult} {
		stop, err := r.bus.Subscribe(subject, func(m bus.Message) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, m)
		})
		r.check(err)
		t.Cleanup(stop)
	}
	j := r.submit(1, 2)
	again := func() {
		mu.Lock()
		copies := slices.Clone(seen)
		mu.Unlock()
		for _, m := range copies {
			_, err := r.bus.Publish(t.Context(), bus.Message{Subject: m.Subject, Data: m.Data, Header: map[string]string{}})
			r.check(err)
		}
	}
	until(t, "the job begins", func() bool { mu.Lock(); defer mu.Unlock(); return len(seen) > 0 })
	again()
	r.waitDone()
	again()
	mu.Lock()
	count := len(seen)
	mu.Unlock()
	if count < 6 {
		t.Fatalf("only %d messages were seen", count)
	}
	r.checkQuiet()
	for _, p := range r.record(j).Partitions {
		if len(p.Attempts) != 1 {
			t.Errorf("attempts %+v", p.Attempts)
		}
	}
}

// Two submits with one key at the same time at two coordinators are one job (invariant 7); other input is a conflict.
func TestTwoSubmitsWithOneKeyAtOnce(t *testing.T) {
	t.Parallel()
	r := full(t, "n1")
	r.startCoordinator()
	const racers = 8
	ids := make([]job.ID, racers)
	fresh := make([]bool, racers)
	var all sync.WaitGroup
	for i := range racers {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			s, err := r.client.Submit(ctx, request("one key", 7, 1, 2))
			if err != nil {
				t.Errorf("submit: %v", err)
				return
			}
			ids[i], fresh[i] = s.Job, !s.Existing
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
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
		t.Errorf("%d of %d submits were told that theirs made the job", count, racers)
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

// B38: cancel at each stage really stops the work, and nothing is left of it.
func TestB38CancelAtEachStage(t *testing.T) {
	t.Parallel()
	for _, point := range []string{
		"", "synth.after-claim", "synth.mid-write", "synth.after-publish", "gpu.mid-proof", "gpu.after-proof",
	} {
		t.Run("at "+point, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			r.startCoordinator()
			n := r.addNode("n1")
			var hooks []string
			if point != "" {
				hooks = r.hooked("pause@" + point)
			}
			n.startSynth(hooks...)
			n.startGPU(hooks...)
			r.ready()
			if point == "" {
				n.synth.signal(syscall.SIGSTOP) // the task stays in its queue
			}
			j := r.submit(1)
			if point != "" {
				r.reached(point + "#1")
			}
			r.check(r.client.Cancel(t.Context(), j.id, "not wanted any more"))
			r.check(r.client.Cancel(t.Context(), j.id, "twice does no harm"))
			switch point {
			case "":
				n.synth.signal(syscall.SIGCONT)
			case "gpu.mid-proof": // the engine is ended, nobody lets it go
			default:
				r.letGo(point + "#1")
			}
			if record := r.waitEnd(j); record.State != job.Cancelled {
				t.Fatalf("job is %s: %+v", record.State, record.Fault)
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
