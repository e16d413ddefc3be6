package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/hook"
)

// perPartition is how long the simulated device takes for a partition.
const perPartition = 500 * time.Millisecond

// simulated are settings of a GPU worker whose device takes some time for each partition.
func simulated(start, finish time.Duration) []string {
	return []string{fmt.Sprintf(`simulate={cpu='{"start_time_ns":%d,"finish_time_ns":%d}'}`, start, finish)}
}

// B62, B106: NATS is away, then Redis is, then the leader is killed: the device has work ahead and goes on with it, and
// nothing is begun again. (For how long it idles, with the timers as shipped, is in a long test and measured by make
// bench.)
func TestB62B106ADeviceWorksOnWhileAServerIsAway(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	settings := []string{"schedule.work_ahead=5s", "schedule.sealed_ahead=4s"}
	leader := r.startCoordinator(settings...)
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU(append(simulated(perPartition, perPartition/5), "prove.ahead=16")...)
	r.ready()
	r.startCoordinator(settings...)
	// cut kills a process when so much is sealed ahead that the device can make some proofs meanwhile.
	const meanwhile = 3
	cut := func(p *process) {
		t.Helper()
		sealed := func() bool { return len(entries(n, "seg")) >= meanwhile+4 }
		for frozen := false; !frozen; {
			until(t, "work is sealed ahead", func() bool { r.keepBusy(); return sealed() })
			n.gpu.signal(syscall.SIGSTOP)
			if frozen = sealed(); frozen {
				p.kill()
			}
			n.gpu.signal(syscall.SIGCONT)
		}
	}
	cut(r.nats.process)
	kept := len(entries(n, "outbox"))
	until(t, "the device works on without NATS", func() bool { return len(entries(n, "outbox")) >= kept+meanwhile })
	r.nats.start(t)
	cut(r.redis.process)
	before, _ := r.verified()
	until(t, "the device works on without Redis", func() bool {
		now, _ := r.verified()
		return now >= before+meanwhile
	})
	r.redis.start(t)
	cut(leader)
	r.waitDone()
	longest := time.Duration(0)
	for _, j := range r.jobs {
		for i, p := range r.record(j).Partitions {
			idle, ok := p.Last().Seconds["device_idle"]
			switch {
			case !ok:
				t.Errorf("partition %d of job %s does not say how long its device was idle: %v", i, j.id, p.Last().Seconds)
			case len(p.Attempts) != 1:
				t.Errorf("partition %d of job %s was begun again: %+v", i, j.id, p.Attempts)
			case j == r.jobs[0] && i == 0: // it waited for the first job
			default:
				longest = max(longest, time.Duration(idle*float64(time.Second)))
			}
		}
	}
	t.Logf("the device was idle for at most %s", longest)
	r.checkQuiet()
}

// verified counts the finished partitions of all jobs, and all of them.
func (r *rack) verified() (count, of int) {
	r.t.Helper()
	for _, j := range r.jobs {
		record := r.record(j)
		count, of = count+record.VerifiedCount(), of+len(record.Partitions)
	}
	return count, of
}

// keepBusy submits a job of ten partitions when no more than twenty are left to do.
func (r *rack) keepBusy() {
	r.t.Helper()
	verified, of := r.verified()
	if of-verified > 20 {
		return
	}
	var seeds []uint64
	for k := range uint64(10) {
		seeds = append(seeds, uint64(of)+k)
	}
	r.submit(seeds...)
}

// A request that a coordinator had in its hands when it was killed is made again: the client is answered.
func TestRequestsOutliveTheCoordinatorThatHadThem(t *testing.T) {
	t.Parallel()
	r := full(t, "n1")
	r.submit(1)
	r.waitDone()
	const asked = "coordinator.asked#1"
	second := r.startCoordinator(r.hooked("pause@" + asked)...)
	until(t, "the second coordinator works", func() bool {
		return strings.Contains(second.log.String(), "coordinator works")
	})
	// Each request goes to either of them: some are made until the second one holds the first that it got.
	var answers []chan error
	until(t, "the second coordinator has a request in its hands", func() bool {
		answer := make(chan error, 1)
		answers = append(answers, answer)
		go func() {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := r.client.Status(ctx, r.jobs[0].id)
			answer <- err
		}()
		_, ok := hook.ReachedBy(r.hooks, asked)
		return ok
	})
	if r.reached(asked) != second.pid() {
		t.Fatal("another process has it")
	}
	second.kill()
	for _, answer := range answers {
		r.check(<-answer)
	}
	r.checkQuiet()
}
