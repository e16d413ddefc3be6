package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
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
// runs goes on, and its bytes are booked again. Two ways: Redis is restarted on an older log, or its keys are put back
// beneath it, so that only the counter of operations tells.
func TestLedgerIsRolledBackByASecondUnderTheSameEpoch(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		save    func(*rack) (restore func())
		barrier string
	}{
		"restarted on an older log": {(*rack).savedLog, ledger.ClosedRestarted},
		"put back beneath it":       {(*rack).savedKeys, ledger.ClosedRolledBack},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
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

			restore()
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

// wantBarrier reads the leader's log: the node's book was found closed for that reason, and nothing of the job was
// admitted before the node had declared what it holds.
func (r *rack) wantBarrier(log string, id job.ID, why string) {
	r.t.Helper()
	declared, admitted := -1, -1
	for i, line := range strings.Split(log, "\n") {
		var entry struct{ Message, Why, Decision string }
		if json.Unmarshal([]byte(line), &entry) != nil {
			continue
		}
		switch {
		case entry.Message == "node has declared what it holds" && entry.Why == why && declared < 0:
			declared = i
		case strings.HasPrefix(entry.Decision, "admit "+string(id)):
			admitted = i // the last counts: what was refused at the barrier is asked for again
		}
	}
	if declared < 0 || admitted < declared {
		r.t.Errorf("declared after %q in line %d, job %s admitted in line %d of\n%s", why, declared, id, admitted, log)
	}
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

// savedKeys dumps all keys of Redis; restore puts them back at one moment, while Redis runs.
func (r *rack) savedKeys() (restore func()) {
	r.t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: r.redis.listen, Protocol: 2})
	r.t.Cleanup(func() { _ = rdb.Close() })
	ctx := r.t.Context()
	saved := map[string]string{}
	keys, err := rdb.Keys(ctx, "*").Result()
	r.check(err)
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
			p.FlushAll(ctx)
			for key, value := range saved {
				p.Restore(ctx, key, 0, value)
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
	until(t, "all of the job is booked", func() bool {
		for _, p := range r.record(running).Partitions {
			if p.Fence == 0 {
				return false
			}
		}
		return true
	})
	r.redis.signal(syscall.SIGSTOP)
	var starting []*submitted
	for i := range uint64(3) {
		starting = append(starting, r.submit(10+i))
	}
	r.letGo("gpu.mid-proof#1")
	r.waitDone(running) // its three partitions end while Redis is frozen
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
