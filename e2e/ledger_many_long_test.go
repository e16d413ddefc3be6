//go:build long

package e2e_test

import (
	"net"
	"os/exec"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/job"
)

// Twenty jobs run on two nodes with room for three segments each; in the midst of them the ledger is emptied, goes back
// by a second beneath its Redis, and then by a restart on an older log. All jobs end, no node ever holds more than
// there is, nor does its book but for what it gave back since the ledger's older state (watched all the while), and the
// books end as what the nodes hold.
func TestLongLedgerIsLostAmongTwentyJobs(t *testing.T) {
	r := newRack(t)
	r.room = 3
	r.startCoordinator()
	for _, name := range []job.Node{"n1", "n2"} {
		n := r.addNode(name)
		n.startSynth()
		n.startGPU(simulated(500*time.Millisecond, 100*time.Millisecond)...)
	}
	r.ready()
	for i := range uint64(20) {
		r.submit(3*i+1, 3*i+2, 3*i+3)
	}
	ended := func(count int) {
		t.Helper()
		until(t, "some jobs have ended", func() bool {
			n := 0
			for _, j := range r.jobs {
				if r.record(j).State.Ended() {
					n++
				}
			}
			return n >= count
		})
		if r.record(r.jobs[len(r.jobs)-1]).State.Ended() {
			t.Fatal("all jobs have ended, and nothing happened in their midst")
		}
	}
	ended(2)
	_, port, err := net.SplitHostPort(r.redis.listen)
	r.check(err)
	if out, err := exec.Command("redis-cli", "-p", port, "flushall").CombinedOutput(); err != nil {
		t.Fatalf("flushall: %v: %s", err, out)
	}
	ended(5)
	r.watch.backwards.Store(true)
	restore := r.savedKeys()
	time.Sleep(time.Second)
	restore()
	ended(9)
	restore = r.savedLog()
	restore()
	r.waitDone()
	again := 0
	for _, j := range r.jobs {
		for _, p := range r.record(j).Partitions {
			again += len(p.Attempts) - 1
		}
	}
	t.Logf("%d attempts beyond the first ones", again)
	if again > 0 {
		t.Errorf("running work was disturbed: %d attempts beyond the first ones", again)
	}
	r.checkQuiet()
}
