package e2e_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// queues looks at the consumers of the work queues: no worker holds more messages than it has slots for, and how often
// messages were delivered.
type queues struct {
	r  *rack
	js jetstream.JetStream
}

func (r *rack) queues() *queues {
	r.t.Helper()
	js, err := jetstream.New(r.raw())
	r.check(err)
	return &queues{r, js}
}

// look calls see with each consumer of a work queue.
func (q *queues) look(stream string, see func(*jetstream.ConsumerInfo)) {
	q.r.t.Helper()
	s, err := q.js.Stream(q.r.t.Context(), stream)
	q.r.check(err)
	list := s.ListConsumers(q.r.t.Context())
	for info := range list.Info() {
		see(info)
	}
	q.r.check(list.Err())
}

// wantDeliveredOnce says that every message that was published was delivered once.
func (q *queues) wantDeliveredOnce() {
	q.r.t.Helper()
	for _, name := range []string{wire.StreamSynth, wire.StreamProve} {
		s, err := q.js.Stream(q.r.t.Context(), name)
		q.r.check(err)
		info, err := s.Info(q.r.t.Context())
		q.r.check(err)
		delivered := uint64(0)
		q.look(name, func(c *jetstream.ConsumerInfo) { delivered += c.Delivered.Consumer })
		if delivered != info.State.LastSeq || delivered == 0 {
			q.r.t.Errorf("stream %s had %d messages, and delivered %d", name, info.State.LastSeq, delivered)
		}
	}
}

// B54: two nodes share ten jobs that each take half of the ack wait: each is computed once, about five on each node,
// and no worker holds more messages than it has slots for.
func TestB54TwoNodesShareTheWork(t *testing.T) {
	t.Parallel()
	const ackWait, jobs = 5 * time.Second, 10
	r := newRack(t)
	r.calm()
	r.startCoordinator()
	for _, name := range []job.Node{"n1", "n2"} {
		n := r.addNode(name)
		settings := []string{"worker.ack_wait=" + ackWait.String(), "worker.keep_every=500ms"}
		n.startSynth(settings...)
		settings = append(settings, "prove.ahead=1")
		n.startGPU(append(settings, simulated(ackWait/2-200*time.Millisecond, 200*time.Millisecond)...)...)
	}
	r.ready()
	q := r.queues()
	for i := range uint64(jobs) {
		r.submit(i)
	}
	until(t, "all jobs are done", func() bool {
		for stream, slots := range map[string]int{wire.StreamSynth: 1, wire.StreamProve: 3} {
			q.look(stream, func(c *jetstream.ConsumerInfo) {
				if c.NumAckPending > slots {
					t.Errorf("%s holds %d messages, it has %d slots", c.Name, c.NumAckPending, slots)
				}
			})
		}
		return r.record(r.jobs[0]).State.Ended() && r.record(r.jobs[jobs-1]).State.Ended()
	})
	r.waitDone()
	share := map[job.Node]int{}
	for _, j := range r.jobs {
		p := r.record(j).Partitions[0]
		share[p.Node]++
		if len(p.Attempts) != 1 || r.watch.published(j.id) != 1 {
			t.Errorf("%d tasks, attempts %+v", r.watch.published(j.id), p.Attempts)
		}
	}
	if share["n1"] < 3 || share["n2"] < 3 {
		t.Errorf("shares %v", share)
	}
	q.wantDeliveredOnce()
	r.checkQuiet()
}

// soon is a lease and a good while, in which a crowded machine starts a process.
const soon = lease + 30*time.Second

// B55: a job that takes longer than a lease and is healthy is delivered once. When its worker is killed, another begins
// it a lease and a few seconds later at most, however long it takes.
func TestB55KilledWorkersWorkIsSoonTaken(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.startCoordinator()
	for _, name := range []job.Node{"n1", "n2"} {
		n := r.addNode(name)
		n.startSynth()
		n.startGPU(simulated(lease/2+time.Second, lease/2)...)
	}
	r.ready()
	q := r.queues()
	healthy := r.submit(1)
	begun := time.Now()
	r.waitDone()
	if took := time.Since(begun); took < lease {
		t.Errorf("the job took %s only, the lease is %s", took, lease)
	}
	if p := r.record(healthy).Partitions[0]; len(p.Attempts) != 1 {
		t.Errorf("a healthy job was begun again: %+v", p.Attempts)
	}
	q.wantDeliveredOnce()

	j := r.submit(2)
	r.proving(j)
	victim := r.nodes[0]
	if r.record(j).Partitions[0].Node != victim.name {
		victim = r.nodes[1]
	}
	victim.gpu.kill()
	killed := time.Now()
	until(t, "another attempt begins", func() bool { return len(r.record(j).Partitions[0].Attempts) == 2 })
	if took := time.Since(killed); took > soon {
		t.Errorf("it took %s, the lease is %s", took, lease)
	}
	victim.startGPU()
	r.waitDone()
	if p := r.record(j).Partitions[0]; lost(&p) != 1 {
		t.Errorf("attempts %+v", p.Attempts)
	}
	r.checkQuiet()
}

// B32: a busy worker is killed and started again at once, fifteen times at random moments: all jobs end, each worker is
// listed once, and once the last one is back nothing waits for long while nobody works.
func TestB32WorkerIsKilledAndRestartedAgainAndAgain(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.room = 2
	r.add("n1", "n2")
	for i := range uint64(20) {
		r.submit(2*i, 2*i+1)
	}
	random := rand.New(rand.NewPCG(32, 0))
	for range 15 {
		time.Sleep(time.Duration(random.IntN(200)) * time.Millisecond)
		n := r.nodes[random.IntN(2)]
		if random.IntN(2) == 0 {
			n.synth.kill()
			n.startSynth()
		} else {
			n.gpu.kill()
			n.startGPU()
		}
	}
	worked := time.Now()
	longest := time.Duration(0)
	untilWithin(t, 2*patience, "nothing waits any more", func() bool {
		v := r.view()
		if v == nil {
			return false
		}
		running := 0
		for _, n := range v.Nodes {
			running += n.Running
		}
		if running > 0 || v.Waiting == 0 {
			worked = time.Now()
		}
		longest = max(longest, time.Since(worked))
		return running == 0 && v.Waiting == 0
	})
	t.Logf("jobs waited for at most %s while nobody worked", longest)
	if longest > soon {
		t.Errorf("jobs waited for %s while nobody worked, the lease is %s", longest, lease)
	}
	r.waitDone()
	until(t, "each worker is listed once", func() bool {
		v := r.view()
		if v == nil || len(v.Nodes) != 2 {
			return false
		}
		for _, n := range v.Nodes {
			if len(n.Processes) != 2 || !n.Ready {
				return false
			}
		}
		return true
	})
	r.checkQuiet()
}

// B45: a job that gets the engine killed by signal 9 each time ends as a dead letter that says how often, and by which
// signal; another one is cancelled in between; the jobs behind them are done.
func TestB45PoisonJobEndsAsADeadLetter(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.room = 2
	r.startCoordinator("attempts.failed_max=3", "attempts.lost_max=3", "schedule.quarantine_after=10")
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU(`simulate={cpu='{"failures":["kill@start#1","kill@start#2","kill@start#3","kill@start#4"]}'}`,
		"engine.faults_max=100", "engine.pause_max=100ms")
	r.ready()
	poison := r.submit(1)
	record := r.waitEnd(poison)
	if record.State != job.Failed || record.Fault == nil || len(record.Partitions[0].Attempts) != 3 {
		t.Fatalf("the poison job is %s: %+v", record.State, record.Fault)
	}
	for _, want := range []string{"3 times", "signal", "killed"} {
		if !strings.Contains(record.Fault.Message, want) {
			t.Errorf("%q lacks %q", record.Fault.Message, want)
		}
	}
	until(t, "it is a dead letter", func() bool { return r.messages(wire.StreamDLQ) == "1 messages" })

	other := r.submit(2)
	until(t, "the other one killed its engine too", func() bool {
		a := r.record(other).Partitions[0].Attempts
		return len(a) > 0 && a[0].Fault != nil && strings.Contains(a[0].Fault.Message, "killed")
	})
	r.check(r.client.Cancel(t.Context(), other.id, "poison"))
	if record := r.waitEnd(other); record.State != job.Cancelled {
		t.Errorf("the cancelled job is %s", record.State)
	}
	for i := range uint64(5) {
		r.submit(10 + i)
	}
	r.waitDone(r.jobs[2:]...)
	r.checkQuiet()
}

// B45: a job that kills the synthesis worker itself each time: nobody is left who could name the signal, but it ends as
// a dead letter that says how often, and other jobs are done.
func TestB45JobThatKillsSynthesisWorkersEndsAsADeadLetter(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.room = 2
	r.startCoordinator("attempts.lost_max=3")
	n := r.addNode("n1")
	n.startGPU()
	n.startSynth(r.hooked("kill@synth.mid-write")...)
	r.ready()
	poison := r.submit(1)
	deaths := 0
	until(t, "the poison job ends", func() bool {
		select {
		case <-n.synth.done:
			n.synth.killed()
			deaths++
			r.hooks = t.TempDir() // hooks fire once for each folder
			n.startSynth(r.hooked("kill@synth.mid-write")...)
		default:
		}
		return r.record(poison).State.Ended()
	})
	record := r.record(poison)
	if record.State != job.Failed || record.Fault == nil || record.Partitions[0].LostCount != 3 || deaths > 6 ||
		!strings.Contains(record.Fault.Message, "worker died 3 times (") {
		t.Errorf("after %d deaths the poison job is %s: %+v", deaths, record.State, record.Fault)
	}
	n.synth.kill()
	n.startSynth()
	for i := range uint64(5) {
		r.submit(10 + i)
	}
	r.waitDone(r.jobs[1:]...)
	r.checkQuiet()
}
