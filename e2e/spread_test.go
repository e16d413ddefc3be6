package e2e_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Segments of the burst, and for how many each node has room. A toy segment is a little larger than its pad.
const (
	burstPad     = 8 * bytesize.MiB
	burstSegment = 9 * bytesize.MiB
	burstPause   = 500 * time.Millisecond
)

func burstRooms() map[job.Node]int { return map[job.Node]int{"n1": 2, "n2": 4, "n3": 6} }

// B44: twelve jobs come in one burst to three nodes with room for two, four and six, whose devices are held until all
// have begun. They spread by free budget. The node with most jobs crashes: its jobs come back after a pause and spread
// over the others. No node ever holds more than its budget (invariant 1), which is compared with the book here and all
// through the test.
func TestB44BurstAndCrashSpreadByFreeBudget(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.lease = 15 * time.Second
	r.startCoordinator("schedule.work_ahead=30s", "schedule.sealed_ahead=30s", "schedule.synth_queue_max=12",
		"attempts.backoff_min="+burstPause.String(), "attempts.backoff_max=1s")
	holds := map[job.Node]string{} // folders of hooks: each node's device is held once
	for _, name := range slices.Sorted(maps.Keys(burstRooms())) {
		holds[name] = t.TempDir()
		r.addNode(name).workInBurst(holds[name])
	}
	r.ready()
	for i := range uint64(12) {
		r.submit(i + 1)
	}
	until(t, "each of the twelve has begun", func() bool {
		return !slices.ContainsFunc(r.firsts(), func(p job.Partition) bool { return len(p.Attempts) == 0 })
	})
	until(t, "each node's device is held", func() bool {
		for _, folder := range holds {
			if _, ok := hook.ReachedBy(folder, "gpu.mid-proof#1"); !ok {
				return false
			}
		}
		return true
	})
	held := r.wantSpread()
	fullest := slices.MaxFunc(r.nodes, func(a, b *node) int { return held[a.name] - held[b.name] })
	fullest.gpu.kill()
	fullest.synth.kill()
	for name, folder := range holds {
		if name != fullest.name {
			r.check(hook.LetGo(folder, "gpu.mid-proof#1"))
		}
	}
	until(t, "what the crashed node had has begun elsewhere", func() bool {
		return !slices.ContainsFunc(r.firsts(), func(p job.Partition) bool {
			return p.Attempts[0].Node == fullest.name && p.Stage != job.Verified && len(p.Attempts) < 2
		})
	})
	back := r.wantPauses()
	t.Logf("%s crashed with %d; they went to %v", fullest.name, held[fullest.name], back)
	if len(back) != len(r.nodes)-1 || back[fullest.name] > 0 {
		t.Errorf("what %s had did not spread over the other two: %v", fullest.name, back)
	}
	fullest.workInBurst(holds[fullest.name])
	r.waitDone()
	r.checkQuiet()
}

// workInBurst starts a node whose room is bounded and whose device takes a second, but for the first proof, which a
// hook in a folder holds.
func (n *node) workInBurst(hold string) {
	n.rack.t.Helper()
	budget := fmt.Sprintf("memory.shm_max=%d", bytesize.Bytes(burstRooms()[n.name])*burstSegment)
	n.startSynth(fmt.Sprintf("synth.pad_bytes=%d", burstPad), budget)
	n.startGPU(append(simulated(time.Second, 0), "prove.ahead=6", budget,
		"test.folder="+hold, "test.hooks=pause@gpu.mid-proof")...)
}

// wantSpread says that the burst went to the nodes by their room, and gives how many of it each node has now.
func (r *rack) wantSpread() (held map[job.Node]int) {
	r.t.Helper()
	share := map[job.Node]int{}
	held = map[job.Node]int{}
	for _, p := range r.firsts() {
		share[p.Attempts[0].Node]++
		if p.Stage.Running() {
			held[p.Node]++
		}
	}
	r.t.Logf("first attempts by node: %v, running: %v", share, held)
	for name, room := range burstRooms() {
		if share[name] != room || held[name] != room {
			r.t.Errorf("%s has room for %d, got %d of 12 and has %d", name, room, share[name], held[name])
		}
		b := r.book(name)
		if most := bytesize.Bytes(room) * burstSegment; b == nil || b.Used[ledger.PoolSHM] > most {
			r.t.Errorf("%s may hold %s and has the book %+v", name, most, b)
		}
	}
	return held
}

// wantPauses says that each job that was lost came back once and after a pause, and gives where to.
func (r *rack) wantPauses() (back map[job.Node]int) {
	r.t.Helper()
	back = map[job.Node]int{}
	for i, p := range r.firsts() {
		a := p.Attempts
		if len(a) < 2 {
			continue
		}
		back[a[1].Node]++
		if pause := a[1].StartedAt.Sub(*a[0].EndedAt); pause < burstPause {
			r.t.Errorf("job %d came back after %s, without a pause", i, pause)
		}
		if len(a) > 2 {
			r.t.Errorf("one crash cost job %d more than an attempt: %+v", i, a)
		}
	}
	return back
}

// firsts are the first partitions of all jobs.
func (r *rack) firsts() (list []job.Partition) {
	r.t.Helper()
	for _, j := range r.jobs {
		list = append(list, r.record(j).Partitions[0])
	}
	return list
}
