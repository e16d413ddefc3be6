//go:build long

package e2e_test

import (
	"testing"
	"time"
)

// B62, B106: NATS is away for ten seconds, then Redis is, under the settings as shipped, which have twice that sealed
// ahead: the device, which takes a second for a partition, is never idle for longer than that.
func TestLongB62B106NoDeviceIdlesForLongerThanAPartition(t *testing.T) {
	const away, partition = 10 * time.Second, time.Second
	r := newRack(t)
	r.startShipped()
	n := r.addNode("n1")
	n.workShipped(deviceSecond, []string{"synth.pad_bytes=1MiB"}, nil)
	r.ready()
	r.startShipped()
	r.submitMany(9)
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
	r.ended(5 * time.Minute)
	gaps := r.deviceGaps()
	longest := quantile(gaps, 1)
	t.Logf("%d gaps of the device: median %s, the longest %s", len(gaps), quantile(gaps, 0.5), longest)
	if longest > partition {
		t.Errorf("the device was idle for %s, a partition takes %s", longest, partition)
	}
	r.checkQuietLater()
}
