package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// The ledger goes back by a second under the same epoch, while one partition is proved and others are sealed: what was
// booked in that second is not in it any more. It grants nothing until the node has declared again what it holds; what
// runs goes on, and its bytes are booked again. Three ways: Redis is restarted on an older log; its keys are put back
// beneath it, so that only the counter of operations tells; that while the leader changes, so that nobody knows a
// count.
func TestLedgerIsRolledBackByASecondUnderTheSameEpoch(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		save       func(*rack) (restore func())
		killLeader bool
		barrier    func(logLine) bool
	}{
		"restarted on an older log": {(*rack).savedLog, false, func(l logLine) bool {
			return l.Message == declaredMessage && l.Why == ledger.ClosedRestarted
		}},
		"put back beneath it": {savedAll, false, func(l logLine) bool {
			return l.Message == declaredMessage && l.Why == ledger.ClosedRolledBack
		}},
		"put back while nobody leads": {savedAll, true, func(l logLine) bool {
			return l.Message == "node holds other bytes than the ledger had" && len(l.Drift.Unknown) > 0
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			r.calm()
			r.room = 3
			leader := r.startCoordinator()
			n := r.addNode("n1")
			n.startSynth()
			n.startGPU(r.hooked("pause@gpu.mid-proof")...)
			r.ready()
			first := r.submit(1)
			r.reached("gpu.mid-proof#1")
			running := r.record(first).Attempt(0)
			r.untilBooked(running)
			restore := test.save(r)
			before := r.book("n1")
			second := r.submit(2)
			until(t, "the second job is sealed", func() bool { return r.record(second).Partitions[0].Stage == job.Sealed })
			sealed := r.record(second).Attempt(0)
			r.untilBooked(sealed)
			mark := len(leader.log.String())

			if test.killLeader {
				leader.kill()
			}
			restore()
			if test.killLeader {
				leader, mark = r.startCoordinator(), 0
			}
			third := r.submit(3)
			r.untilBooked(sealed)
			after := r.book("n1")
			if after.Entry(running) == nil || after.Epoch != before.Epoch || before.Epoch == "" {
				t.Errorf("before %+v, afterwards %+v", before, after)
			}
			until(t, "the third job is granted", func() bool { return len(r.record(third).Partitions[0].Attempts) > 0 })
			r.wantBarrier(leader.log.String()[mark:], third.id, test.barrier)

			r.letGo("gpu.mid-proof#1")
			r.waitDone()
			for _, j := range r.jobs {
				if p := r.record(j).Partitions[0]; len(p.Attempts) != 1 {
					t.Errorf("job %s was disturbed: %+v", j.id, p.Attempts)
				}
			}
			r.checkQuiet()
		})
	}
}

func savedAll(r *rack) (restore func()) { return r.savedKeys() }

// logLine is what tests read of a coordinator's log.
type logLine struct {
	Message, Why, Decision string
	Node                   job.Node `json:"c2.node.id"`
	Drift                  struct{ Unknown []job.Attempt }
}

const declaredMessage = "node has declared what it holds"

func logLines(text string) (lines []logLine) {
	for _, line := range strings.Split(text, "\n") {
		var l logLine
		if json.Unmarshal([]byte(line), &l) == nil {
			lines = append(lines, l)
		}
	}
	return lines
}

// wantBarrier reads the leader's log: the barrier was noticed, and nothing of the job was admitted for good before
// that.
func (r *rack) wantBarrier(log string, id job.ID, barrier func(logLine) bool) {
	r.t.Helper()
	seen, admitted := -1, -1
	for i, l := range logLines(log) {
		if seen < 0 && barrier(l) {
			seen = i
		}
		if strings.HasPrefix(l.Decision, "admit "+string(id)) {
			admitted = i // the last counts: what was refused at the barrier is asked for again
		}
	}
	if seen < 0 || admitted < seen {
		r.t.Errorf("the barrier is in line %d, job %s was admitted in line %d of\n%s", seen, id, admitted, log)
	}
}

// One node's book goes back: it alone has to declare again, the other one goes on.
func TestOnlyTheNodeWhoseBookWentBackIsClosed(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.calm()
	r.room = 2
	leader := r.startCoordinator()
	add := func(name job.Node) {
		n := r.addNode(name)
		n.startSynth()
		n.startGPU()
		r.ready()
	}
	add("n1")
	restore := r.savedKeys("n1")
	many := []uint64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	r.done(many...) // by n1, it is alone
	add("n2")
	mark := len(leader.log.String())
	restore()
	r.done(many...)
	closed := false
	until(t, "n1 has declared again", func() bool {
		for _, l := range logLines(leader.log.String()[mark:]) {
			if l.Message == declaredMessage {
				closed = closed || l.Node == "n1" && l.Why == ledger.ClosedRolledBack
				if l.Node != "n1" {
					t.Fatalf("node %s had to declare again: %s", l.Node, l.Why)
				}
			}
		}
		return closed
	})
	r.checkQuiet()
}

// done submits a job and waits until it is done.
func (r *rack) done(seeds ...uint64) *submitted {
	r.t.Helper()
	j := r.submit(seeds...)
	r.waitDone(j)
	return j
}

// savedLog copies the log of Redis once all is in it; restore starts Redis anew on the copy.
func (r *rack) savedLog() (restore func()) {
	r.t.Helper()
	time.Sleep(1200 * time.Millisecond) // appendfsync everysec
	old := filepath.Join(r.t.TempDir(), "aof")
	if out, err := exec.Command("cp", "-a", r.redis.aof(), old).CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	return func() {
		r.redis.kill()
		r.check(os.RemoveAll(r.redis.aof()))
		r.check(os.Rename(old, r.redis.aof()))
		r.redis.start(r.t)
	}
}

// savedKeys dumps all keys of Redis, or those of some nodes; restore puts them back at one moment, while Redis runs.
func (r *rack) savedKeys(nodes ...string) (restore func()) {
	r.t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: r.redis.listen, Protocol: 2})
	r.t.Cleanup(func() { _ = rdb.Close() })
	ctx := r.t.Context()
	saved := map[string]string{}
	keys, err := rdb.Keys(ctx, "*").Result()
	r.check(err)
	keys = slices.DeleteFunc(keys, func(key string) bool {
		return len(nodes) > 0 && !slices.ContainsFunc(nodes, func(n string) bool { return strings.Contains(key, "{"+n+"}") })
	})
	if len(keys) == 0 {
		r.t.Fatalf("no keys of %v", nodes)
	}
	var dumps []*redis.StringCmd
	_, err = rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range keys {
			dumps = append(dumps, p.Dump(ctx, key))
		}
		return nil
	})
	r.check(err)
	for i, key := range keys {
		saved[key] = dumps[i].Val()
	}
	return func() {
		_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
			if len(nodes) == 0 {
				p.FlushAll(ctx)
			}
			for key, value := range saved {
				p.RestoreReplace(ctx, key, 0, value)
			}
			return nil
		})
		r.check(err)
	}
}

// B72: Redis is frozen while jobs start and end. What is booked goes on and ends, nothing new starts, and afterwards
// the ledger is what is true.
func TestB72RedisIsFrozenWhileJobsRun(t *testing.T) {
	t.Parallel()
	r, running := pausedInProof(t)
	r.redis.signal(syscall.SIGSTOP)
	var starting []*submitted
	for i := range uint64(3) {
		starting = append(starting, r.submit(10+i))
	}
	r.letGo(heldProof)
	r.waitDone(running) // its partitions end while Redis is frozen
	until(t, "the jobs say that the ledger is away", func() bool {
		w, err := r.client.Why(t.Context(), starting[2].id)
		return err == nil && len(w.Reasons) == 1 && strings.Contains(w.Reasons[0].Text, "the ledger is away")
	})
	time.Sleep(lease)
	for _, j := range starting {
		if p := r.record(j).Partitions[0]; p.Stage != job.Waiting || len(p.Attempts) > 0 || r.watch.published(j.id) > 0 {
			t.Errorf("job %s was started without a stored reservation: %+v", j.id, p)
		}
	}
	r.redis.signal(syscall.SIGCONT)
	r.waitDone()
	for _, p := range r.record(running).Partitions {
		if len(p.Attempts) != 1 {
			t.Errorf("what was booked was disturbed: %+v", p.Attempts)
		}
	}
	r.checkQuiet()
}
