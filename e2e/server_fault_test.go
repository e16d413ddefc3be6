package e2e_test

import (
	"os"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// longLease is that of racks in which running work must go on: no crowded machine is late by that much.
const longLease = 3 * lease

// heldProof is where the second proof of a job stays in pausedInProof.
const heldProof = "gpu.mid-proof#2"

// pausedInProof is a rack with a job of three partitions: one is finished, one is in mid-proof and stays there, one is
// sealed. The node has room for three segments.
func pausedInProof(t *testing.T) (*rack, *submitted) {
	t.Helper()
	r := newRack(t)
	r.pausedInProof()
	return r, r.jobs[0]
}

// pausedInProof adds a coordinator and a node to servers, and has a job held there.
func (r *rack) pausedInProof() *submitted {
	r.t.Helper()
	r.room = 3
	r.lease = longLease
	r.startCoordinator()
	n := r.addNode("n1")
	n.startSynth(r.hooked("pause@" + secondClaim)...)
	n.startGPU(r.hooked("pause@" + heldProof)...)
	r.ready()
	j := r.submit(1, 2, 3)
	r.holding(j)
	return j
}

// secondClaim is where the second synthesis of a job waits until the first partition is finished: a device that is held
// finishes no proof.
const secondClaim = "synth.after-claim#2"

// firstAlone lets a job's second synthesis go on once the first partition is finished. What strikes from now on must
// not have that computed again, which is watched (invariant 6).
func (r *rack) firstAlone(j *submitted) {
	r.t.Helper()
	r.reached(secondClaim)
	r.oneFinished(j)
	r.letGo(secondClaim)
}

// oneFinished waits until a partition of a job is finished, while a hook holds another one.
func (r *rack) oneFinished(j *submitted) {
	r.t.Helper()
	until(r.t, "a partition is finished", func() bool { return r.record(j).VerifiedCount() > 0 })
}

// holding has the second proof of a job held: one partition is finished, all else is sealed.
func (r *rack) holding(j *submitted) {
	r.t.Helper()
	r.firstAlone(j)
	r.reached(heldProof)
	until(r.t, "one partition is finished, one held, all else sealed", func() bool {
		count := map[job.Stage]int{}
		for i, p := range r.record(j).Partitions {
			count[p.Stage]++
			if p.Stage == job.Proving {
				j.held = i
			}
		}
		return count[job.Verified] == 1 && count[job.Proving] == 1 && count[job.Sealed] == len(j.public)-2
	})
}

// wantOneAttempt says that nothing of a job that was held was begun again: neither what was finished, which is watched,
// nor what was in mid-proof; what was sealed may have been handed back, no more.
func (r *rack) wantOneAttempt(j *submitted) {
	r.t.Helper()
	for i, p := range r.record(j).Partitions {
		for _, a := range p.Attempts {
			if a.Outcome != job.OutcomeOK && (a.Outcome != job.OutcomeHandedBack || i == j.held) {
				r.t.Errorf("running work did not go on: partition %d of job %s: %+v", i, j.id, p.Attempts)
			}
		}
	}
}

// NATS is killed and comes back on the same store; meanwhile the proof that was being made is finished and kept.
// Then consumers are deleted by hand, too (B62).
func TestB62NATSIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	r, j := pausedInProof(t)
	r.nats.kill()
	r.letGo(heldProof)
	time.Sleep(longLease + lease) // an outage, not a moment
	r.nats.start(t)
	r.waitDone()
	r.wantOneAttempt(j)
	r.deleteConsumers()
	r.submit(4, 5)
	r.waitDone()
	r.checkQuiet()
}

// raw is a plain connection to the server, as an operator's tool has it.
func (r *rack) raw() *nats.Conn {
	r.t.Helper()
	conn, err := nats.Connect(r.nats.url())
	r.check(err)
	r.t.Cleanup(conn.Close)
	return conn
}

// deleteConsumers deletes the consumers of all work queues, as by hand.
func (r *rack) deleteConsumers() {
	r.t.Helper()
	js, err := jetstream.New(r.raw())
	r.check(err)
	count := 0
	for _, name := range []string{wire.StreamSynth, wire.StreamProve, wire.StreamResult} {
		stream, err := js.Stream(r.t.Context(), name)
		r.check(err)
		for consumer := range stream.ConsumerNames(r.t.Context()).Name() {
			r.check(stream.DeleteConsumer(r.t.Context(), consumer))
			count++
		}
	}
	if count < 3 {
		r.t.Fatalf("only %d consumers were there to be deleted", count)
	}
}

// Redis is killed and comes back: running work goes on, nothing is granted before nodes have declared again. Its
// scripts are gone, which nobody notices (B74).
func TestB74RedisIsKilledAndComesBack(t *testing.T) {
	t.Parallel()
	r, j := pausedInProof(t)
	r.redis.kill()
	r.letGo(heldProof)
	more := r.submit(4)
	time.Sleep(lease / 2)
	if got := r.record(more).Partitions[0]; got.Stage != job.Waiting || len(got.Attempts) > 0 {
		t.Errorf("work was granted without the ledger: %+v", got)
	}
	r.redis.start(t)
	r.waitDone()
	r.wantOneAttempt(j)
	rdb := redis.NewClient(&redis.Options{Addr: r.redis.listen, Protocol: 2})
	defer rdb.Close()
	r.check(rdb.ScriptFlush(t.Context()).Err())
	r.submit(5, 6)
	r.waitDone()
	r.checkQuiet()
}

// Redis comes back empty: the books are made again from what nodes declare, with the bytes of running work.
func TestRedisComesBackEmpty(t *testing.T) {
	t.Parallel()
	r, j := pausedInProof(t)
	r.redis.kill()
	r.check(os.RemoveAll(r.redis.aof()))
	r.redis.start(t)
	r.untilBooked(r.record(j).Attempt(j.held))
	r.letGo(heldProof)
	r.waitDone()
	r.wantOneAttempt(j)
	r.checkQuiet()
}

// proving is the partition of a job that is in mid-proof.
func (r *rack) proving(j *submitted) int {
	r.t.Helper()
	at := -1
	until(r.t, "a partition is proving", func() bool {
		for i, p := range r.record(j).Partitions {
			if p.Stage == job.Proving {
				at = i
			}
		}
		return at >= 0
	})
	return at
}

// untilBooked waits until an attempt is in the book of the first node.
func (r *rack) untilBooked(a job.Attempt) {
	r.t.Helper()
	until(r.t, "attempt "+a.String()+" is booked", func() bool {
		b := r.book(r.nodes[0].name)
		if b == nil || b.Closed != "" {
			return false
		}
		for _, e := range b.Entries {
			if e.Attempt == a {
				return true
			}
		}
		return false
	})
}

// All disks of NATS and Redis are lost: the rack comes back empty, and what is submitted again is done.
func TestAllDisksAreLost(t *testing.T) {
	t.Parallel()
	r, j := pausedInProof(t)
	before := r.book("n1")
	r.nats.kill()
	r.redis.kill()
	r.check(os.RemoveAll(r.nats.dir))
	r.check(os.RemoveAll(r.redis.aof()))
	r.redis.start(t)
	r.nats.start(t)
	r.letGo(heldProof)
	r.ready()
	until(t, "the lost job is known no more", func() bool {
		_, err := r.client.Status(t.Context(), j.id)
		return err != nil && fault.KindOf(err) != fault.Transient
	})
	r.jobs = nil
	r.checkQuiet() // no old segment, booking or message is left
	// The one who led may lead on until its lease is over; nobody can renew it on empty disks.
	until(t, "the ledger has a new epoch", func() bool {
		after := r.book("n1")
		return after != nil && before.Epoch != "" && after.Epoch != before.Epoch && after.ClosedFor(after.Epoch) == ""
	})
	r.ready()
	r.submit(1, 2, 3)
	r.waitDone()
	r.checkQuiet()
}

// B106: everything is started in the wrong order; nothing ends, and all is ready once the last server is there.
func TestB106ServersComeLast(t *testing.T) {
	t.Parallel()
	r := &rack{t: t}
	r.equip()
	r.nats = &natsServer{dir: t.TempDir(), listen: freePort(t)}
	r.redis = &redisServer{dir: t.TempDir(), listen: freePort(t)}
	r.startCoordinator()
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU()
	time.Sleep(time.Second)
	r.nats.start(t)
	r.connect()
	time.Sleep(time.Second)
	r.redis.start(t)
	r.ready()
	for _, p := range []*process{r.coordinators[0], n.synth, n.gpu} {
		select {
		case <-p.done:
			t.Errorf("%s ended", p.name)
		default:
		}
	}
	r.submit(1)
	r.waitDone()
	r.checkQuiet()
}

// B105: a node whose workers are killed and its jobs are seen alike: not ready, and its attempt lost.
func TestB105ViewsAgreeAfterACrash(t *testing.T) {
	t.Parallel()
	r, j := pausedInProof(t)
	n := r.nodes[0]
	n.gpu.kill()
	n.synth.kill()
	until(t, "node and job agree", func() bool {
		v := r.view()
		if v == nil {
			return false
		}
		running := 0
		for _, p := range r.record(j).Partitions {
			if p.Stage.Running() {
				running++
			}
		}
		seen := 0
		for _, node := range v.Nodes {
			if node.Ready {
				return false
			}
			seen += node.Running
		}
		return running == 0 && seen == 0
	})
	n.startSynth()
	n.startGPU()
	r.waitDone()
	r.checkQuiet()
}
