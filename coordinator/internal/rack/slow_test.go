package rack_test

import (
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/wire"
)

// A worker whose heartbeat is longer than the rack can wait is shown as not ready with the reason, and does not come
// and go between its beats; one with the rack's heartbeat, and one of an older build that does not say its own, work.
func TestAWorkerThatBeatsTooSeldomIsGivenNoWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		every time.Duration
		slow  bool
	}{
		"as the rack": {5 * time.Second, false}, "not told": {0, false}, "a little slower": {8 * time.Second, false},
		"twice": {10 * time.Second, true}, "longer than the lease": {40 * time.Second, true}, "a day": {24 * time.Hour, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry(t)
			host := func(b *wire.Beat) { b.Host = &wire.HostReport{BookComplete: true} }
			slowed := func(b *wire.Beat) { b.HeartbeatMS = c.every.Milliseconds() }
			r.Beat(beat("a", wire.RoleSynth, 1, host, slowed), at(0))
			n, _ := r.Node("n1")
			v := n.View(store.NodeMark{})
			if v.Ready == c.slow || c.slow && !strings.Contains(v.Reason, "worker.heartbeat") {
				t.Errorf("ready %v: %s", v.Ready, v.Reason)
			}
			if slow := n.Processes[0].Slow != ""; slow != c.slow {
				t.Errorf("slow: %q", n.Processes[0].Slow)
			}
			silent := 15.1
			if c.slow {
				silent = max(silent, min(c.every.Seconds(), 590)+1)
			}
			gone := len(r.Expire(at(silent))) > 0
			if gone == c.slow {
				t.Errorf("gone after %.1f s: %v", silent, gone)
			}
			r.Expire(at(1300))
			if len(r.Nodes()) != 0 {
				t.Error("it is remembered for ever")
			}
		})
	}
}
