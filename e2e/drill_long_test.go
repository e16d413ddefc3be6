//go:build long

package e2e_test

import (
	"maps"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// The drills are faults of the field reports that last: a minute, three, ten. DRILL_SCALE divides their
// durations; at 1 (make drill-long) the rack's timers are the shipped ones, else those of all other tests.
const drillScaleDefault = 30

// drill is a rack whose fault lasts.
type drill struct {
	*rack

	scale float64
}

func newDrill(t *testing.T) *drill {
	t.Helper()
	t.Parallel()
	return newDrillAlone(t)
}

// newDrillAlone is a drill beside which no other one runs.
func newDrillAlone(t *testing.T) *drill {
	t.Helper()
	return &drill{rack: newRack(t), scale: drillScale(t)}
}

func drillScale(t *testing.T) float64 {
	t.Helper()
	text := os.Getenv("DRILL_SCALE")
	if text == "" {
		return drillScaleDefault
	}
	scale, err := strconv.ParseFloat(text, 64)
	if err != nil || scale < 1 {
		t.Fatalf("DRILL_SCALE is %q, not a number from 1 on", text)
	}
	return scale
}

// of is the duration of a fault in this drill.
func (d *drill) of(full time.Duration) time.Duration { return time.Duration(float64(full) / d.scale) }

// lasts lets a fault last.
func (d *drill) lasts(full time.Duration) { time.Sleep(d.of(full)) }

// lease is how long a silent worker counts as there.
func (d *drill) lease() time.Duration {
	if d.scale == 1 {
		return 15 * time.Second
	}
	return lease
}

// coordinator starts one.
func (d *drill) coordinator(settings ...string) *process {
	d.t.Helper()
	if d.scale > 1 {
		return d.startCoordinator(settings...)
	}
	return d.startCoordinator(append([]string{
		"times.heartbeat=5s", "times.lease=15s", "times.leader_lease=2s", "times.tick=1s", "times.sweep=30s",
		"times.result_wait=10s", "times.call=5s", "schedule.ageing=60s", "attempts.hand_back_pause=1s",
		"nats.reconnect_wait=100ms", "nats.reconnect_max=5s", "nats.ping_interval=10s", "nats.guard_interval=30s",
	}, settings...)...)
}

// timers are the shipped ones of workers, in a full drill.
func (d *drill) timers(settings ...string) []string {
	if d.scale > 1 {
		return settings
	}
	return append([]string{
		"worker.heartbeat=5s", "worker.ack_wait=30s", "worker.keep_every=10s", "worker.stall_max=2m", "worker.retry_max=5s",
		"worker.settle_max=5s", "worker.fence_max=1s", "spill.sweep_every=30s", "spill.pool_idle=30s", "spill.seal_wait=5s",
		"nats.reconnect_wait=100ms", "nats.reconnect_max=5s", "nats.pull_wait=5s", "nats.ping_interval=10s",
		"nats.guard_interval=30s",
	}, settings...)
}

// node starts a node; settings are of its GPU worker.
func (d *drill) node(name job.Node, settings ...string) *node {
	d.t.Helper()
	n := d.addNode(name)
	n.startSynth(d.timers()...)
	n.startGPU(d.timers(settings...)...)
	return n
}

// pausedDrill is a drill with a job of three partitions: one is finished, one is in mid-proof and stays there, one is
// sealed.
func pausedDrill(t *testing.T) (*drill, *submitted) {
	t.Helper()
	d := newDrill(t)
	d.coordinator()
	n := d.addNode("n1")
	n.startSynth(d.timers(d.hooked("pause@" + secondClaim)...)...)
	n.startGPU(d.timers(d.hooked("pause@" + heldProof)...)...)
	d.ready()
	j := d.submit(1, 2, 3)
	d.holding(j)
	return d, j
}

// done waits until all jobs are done, within a time, and until free segments are swept.
func (d *drill) done(within time.Duration) {
	d.t.Helper()
	untilWithin(d.t, within, "all jobs end", func() bool {
		for _, j := range d.jobs {
			if !d.record(j).State.Ended() {
				return false
			}
		}
		return true
	})
	d.waitDone()
	for _, n := range d.nodes {
		untilWithin(d.t, 3*time.Minute, "free segments are swept", func() bool { return namesIn(n, "pool") == "" })
	}
	d.checkQuiet()
}

// B31: jobs are accepted, everything stops, and a coordinator is alone for a minute before a worker comes.
func TestDrillB31CoordinatorIsAloneForAMinute(t *testing.T) {
	d := newDrill(t)
	c := d.coordinator()
	for i := range uint64(3) {
		d.submit(i)
	}
	c.kill()
	d.nats.kill()
	d.nats.start(t)
	d.coordinator()
	d.lasts(time.Minute)
	d.node("n1")
	d.done(2 * time.Minute)
}

// B34: the worker that has the job is frozen for twice the lease, and goes on when another has proved it.
func TestDrillB34WorkerIsFrozenForTwiceTheLease(t *testing.T) {
	d, j := pausedDrill(t)
	frozen := d.nodes[0].gpu
	frozen.signal(syscall.SIGSTOP)
	begun := time.Now()
	d.node("n2")
	untilWithin(t, d.lease()+2*patience, "the other node proves the job", func() bool {
		return d.record(j).State.Ended()
	})
	time.Sleep(time.Until(begun.Add(2 * d.lease())))
	before := d.record(j)
	frozen.signal(syscall.SIGCONT)
	d.letGo(heldProof)
	d.done(2 * time.Minute)
	if after := d.record(j); after.Result == nil || before.Result == nil || *after.Result != *before.Result {
		t.Errorf("the result changed after the job was done: %+v, %+v", before.Result, after.Result)
	}
}

// B62: NATS is away for five minutes while a proof is made; the work goes on, and all take jobs within half a minute.
func TestDrillB62NATSIsAwayForFiveMinutes(t *testing.T) {
	d, j := pausedDrill(t)
	d.nats.kill()
	d.letGo(heldProof)
	d.lasts(5 * time.Minute)
	d.nats.start(t)
	back := time.Now()
	next := d.submit(4)
	untilWithin(t, patience, "a new job is taken", func() bool {
		s, err := d.client.Status(t.Context(), next.id)
		return err == nil && (s.Record.State.Ended() || s.Record.Partitions[0].Stage.Running())
	})
	if took := time.Since(back); took > 30*time.Second {
		t.Errorf("a job was taken %s after NATS had come back", took)
	}
	d.done(2 * time.Minute)
	d.wantOneAttempt(j)
}

// B65: fifty jobs are queued while workers start and stop thirty times in five minutes. The queues' consumers are the
// same before and after: one for each worker, and nobody who leaves deletes one.
func TestDrillB65WorkersStartAndStop(t *testing.T) {
	d := newDrill(t)
	d.coordinator()
	n := d.node("n1")
	d.ready()
	before := d.consumers()
	for i := range uint64(50) {
		d.submit(i)
	}
	const turns = 30
	for i := range turns {
		begun := time.Now()
		old, anew := n.synth, func() { n.startSynth(d.timers()...) }
		if i%2 == 1 {
			old, anew = n.gpu, func() { n.startGPU(d.timers()...) }
		}
		if i%3 == 2 {
			old.kill()
		} else {
			old.signal(syscall.SIGTERM)
			old.ends()
		}
		anew()
		time.Sleep(time.Until(begun.Add(d.of(5*time.Minute) / turns)))
	}
	d.done(10 * time.Minute)
	if after := d.consumers(); !maps.Equal(before, after) || len(before) < 3 {
		t.Errorf("consumers before %v, after %v", before, after)
	}
}

// consumers are the consumers of all work queues with the moments at which they were made.
func (r *rack) consumers() map[string]time.Time {
	r.t.Helper()
	all := map[string]time.Time{}
	for _, stream := range []string{wire.StreamSynth, wire.StreamProve, wire.StreamResult} {
		for _, info := range r.consumersOf(stream) {
			if info.Config.Durable == "" {
				r.t.Errorf("consumer %s of %s is not durable", info.Name, stream)
			}
			all[stream+" "+info.Name] = info.Created
		}
	}
	return all
}

// B79: Redis is frozen for three minutes with jobs at work; a worker and the coordinator that are asked to stop
// meanwhile do, and others take their place.
func TestDrillB79RedisIsFrozenForThreeMinutes(t *testing.T) {
	d, j := pausedDrill(t)
	d.redis.signal(syscall.SIGSTOP)
	d.lasts(90 * time.Second)
	d.letGo(heldProof)
	n := d.nodes[0]
	n.gpu.stops()
	d.coordinators[0].stops()
	d.coordinator()
	n.startGPU(d.timers()...)
	d.lasts(90 * time.Second)
	d.redis.signal(syscall.SIGCONT)
	d.submit(4)
	d.done(3 * time.Minute)
	d.wantOneAttempt(j)
}

// B103: a rack has nothing to do for ten minutes; then it is as ready as before.
func TestDrillB103NothingToDoForTenMinutes(t *testing.T) {
	d := newDrill(t)
	d.coordinator()
	n := d.node("n1")
	d.ready()
	d.lasts(10 * time.Minute)
	v := d.view()
	if v == nil || !v.Ready || len(v.Nodes) != 1 || !v.Nodes[0].Ready {
		t.Errorf("the idle rack is %+v", v)
	}
	for _, p := range []*process{d.coordinators[0], n.synth, n.gpu} {
		select {
		case <-p.done:
			t.Errorf("%s ended", p.name)
		default:
		}
	}
	d.submit(1)
	d.done(2 * time.Minute)
}

// B106: NATS comes half a minute after everybody else, Redis a minute after; all is ready 15 s later.
func TestDrillB106ServersComeLate(t *testing.T) {
	t.Parallel()
	d := &drill{rack: &rack{t: t}, scale: drillScale(t)}
	d.equip()
	d.nats = &natsServer{dir: t.TempDir(), listen: freePort(t)}
	d.redis = &redisServer{dir: t.TempDir(), listen: freePort(t)}
	d.coordinator()
	d.node("n1")
	d.lasts(30 * time.Second)
	d.nats.start(t)
	d.connect()
	d.lasts(30 * time.Second)
	d.redis.start(t)
	last := time.Now()
	d.ready()
	if took := time.Since(last); took > 15*time.Second {
		t.Errorf("ready %s after the last server", took)
	}
	d.submit(1)
	d.done(2 * time.Minute)
}
