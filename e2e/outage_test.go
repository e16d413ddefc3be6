package e2e_test

import (
	"context"
	"fmt"
	"strings"
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

// B62, B106: NATS is away, then Redis is, then the leader is killed: the device has work ahead and goes on with it,
// and nothing is begun again. Each time the device is held at a job's first proof until enough is sealed and fetched
// and the server is gone. (For how long it idles is in a long test and measured by make bench.)
func TestB62B106ADeviceWorksOnWhileAServerIsAway(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.calm()
	settings := []string{"schedule.work_ahead=5s", "schedule.sealed_ahead=4s"}
	leader := r.startCoordinator(settings...)
	n := r.addNode("n1")
	n.startSynth()
	const perJob, meanwhile = 10, 3
	var holds, aheads, hooks []string // of each phase
	for phase := range 3 {
		holds = append(holds, fmt.Sprintf("gpu.mid-proof#%d", phase*perJob+1))
		aheads = append(aheads, fmt.Sprintf("gpu.after-fetch#%d", phase*perJob+1+meanwhile))
		hooks = append(hooks, "pause@"+holds[phase], "mark@"+aheads[phase])
	}
	n.startGPU(append(simulated(perPartition, perPartition/5), append(r.hooked(hooks...), "prove.ahead=16")...)...)
	r.ready()
	r.startCoordinator(settings...)
	// cut has a job at work, and a process killed when the worker has some of the job ahead.
	cut := func(phase int, p *process) *submitted {
		t.Helper()
		var seeds []uint64
		for k := range uint64(perJob) {
			seeds = append(seeds, uint64(phase*perJob)+k)
		}
		j := r.submit(seeds...)
		r.reached(holds[phase])
		r.reached(aheads[phase])
		p.kill()
		r.letGo(holds[phase])
		return j
	}
	cut(0, r.nats.process)
	until(t, "the device works on without NATS", func() bool { return len(entries(n, "outbox")) > meanwhile })
	r.nats.start(t)
	r.waitDone()
	j := cut(1, r.redis.process)
	until(t, "the device works on without Redis", func() bool { return r.record(j).VerifiedCount() > meanwhile })
	r.redis.start(t)
	r.waitDone()
	cut(2, leader)
	r.waitDone()
	for _, j := range r.jobs {
		for i, p := range r.record(j).Partitions {
			if _, ok := p.Last().Seconds["device_idle"]; !ok {
				t.Errorf("partition %d of job %s does not say how long its device was idle: %v", i, j.id, p.Last().Seconds)
			}
			if len(p.Attempts) != 1 {
				t.Errorf("partition %d of job %s was begun again: %+v", i, j.id, p.Attempts)
			}
		}
	}
	r.checkQuiet()
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
