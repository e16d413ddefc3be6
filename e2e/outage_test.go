package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/hook"
)

// perPartition is how long the simulated device takes for a partition, away how long a server is away: ten seconds by
// timeScale.
const (
	perPartition = 500 * time.Millisecond
	away         = 10 * time.Second / timeScale
)

// simulated are settings of a GPU worker whose device takes some time for each partition.
func simulated(start, finish time.Duration) []string {
	return []string{fmt.Sprintf(`simulate={cpu='{"start_time_ns":%d,"finish_time_ns":%d}'}`, start, finish)}
}

// B62, B106: NATS is away, then Redis is, then the leader is killed: the device has work ahead and does not idle for
// longer than a partition takes. (The same with the timers as shipped is measured by make bench.)
func TestB62B106NoDeviceIdlesWhileAServerIsAway(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	settings := []string{"schedule.work_ahead=5s", "schedule.sealed_ahead=4s"}
	leader := r.startCoordinator(settings...)
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU(append(simulated(perPartition, perPartition/5), "prove.ahead=16")...)
	r.ready()
	r.startCoordinator(settings...)
	for i := range uint64(4) {
		var seeds []uint64
		for k := range uint64(10) {
			seeds = append(seeds, 10*i+k)
		}
		r.submit(seeds...)
	}
	ahead := func() {
		t.Helper()
		until(t, "work is sealed ahead", func() bool { return len(entries(n, "seg")) >= int(away/perPartition)+3 })
	}
	ahead()
	r.nats.kill()
	time.Sleep(away)
	r.nats.start(t)
	ahead()
	r.redis.kill()
	time.Sleep(away)
	r.redis.start(t)
	ahead()
	leader.kill()
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
	if longest > perPartition {
		t.Errorf("the device was idle for %s, a partition takes %s", longest, perPartition)
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
