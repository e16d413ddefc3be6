//go:build long

package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/wire"
)

// B62, B106: NATS is away for ten seconds, then Redis is, then the leader is killed and the other coordinator takes
// over, under the settings as shipped, which have twice ten seconds sealed ahead: the device, which takes a second for
// a partition, is never idle for longer than that.
func TestLongB62B106NoDeviceIdlesForLongerThanAPartition(t *testing.T) {
	const away, partition = 10 * time.Second, time.Second
	r := newRack(t)
	r.startShipped()
	n := r.addNode("n1")
	n.workShipped(deviceSecond, []string{"synth.pad_bytes=1MiB"}, nil)
	r.ready()
	r.startShipped()
	r.submitMany(12)
	phase := func(name string, server *process, again func(*testing.T)) {
		t.Helper()
		untilWithin(t, time.Minute, "work is sealed ahead", func() bool { return len(entries(n, "seg")) >= 20 })
		before := len(entries(n, "seg"))
		server.kill()
		time.Sleep(away)
		t.Logf("%s: %d segments when it goes, %d when it comes back", name, before, len(entries(n, "seg")))
		again(t)
	}
	phase("NATS", r.nats.process, r.nats.start)
	phase("Redis", r.redis.process, r.redis.start)
	untilWithin(t, time.Minute, "work is sealed ahead", func() bool { return len(entries(n, "seg")) >= 20 })
	before, leader := r.leading()
	leader.kill()
	untilWithin(t, time.Minute, "the other coordinator leads", func() bool {
		v := r.view()
		return v != nil && v.Term > before.Term && v.Leader != before.Leader
	})
	if r.record(r.jobs[len(r.jobs)-1]).State.Ended() {
		t.Error("all jobs had ended before somebody else led")
	}
	r.ended(5 * time.Minute)
	gaps := r.deviceGaps()
	longest := quantile(gaps, 1)
	t.Logf("%d gaps of the device: median %s, the longest %s", len(gaps), quantile(gaps, 0.5), longest)
	if longest > partition {
		t.Errorf("the device was idle for %s, a partition takes %s", longest, partition)
	}
	r.checkQuietLater()
}

// leading is the rack as its leader sees it, and the leader's process.
func (r *rack) leading() (v *wire.NodesReply, leader *process) {
	r.t.Helper()
	until(r.t, "a coordinator leads", func() bool {
		if v = r.view(); v == nil {
			return false
		}
		for _, c := range r.coordinators {
			if strings.Contains(c.log.String(), `"instance":"`+v.Leader) {
				leader = c
			}
		}
		return leader != nil
	})
	return v, leader
}
