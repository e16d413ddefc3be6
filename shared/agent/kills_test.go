package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

const (
	roamBytes   = 300_000
	roamWorkers = 5
	roamRoom    = 7 // segments
)

func roamNeed(s *handoff.Spill) ledger.Amounts {
	file := s.FileBytes(handoff.SHM, roamBytes)
	return ledger.Amounts{ledger.PoolSHM: file, ledger.PoolRAM: file}
}

func roamCapacity(s *handoff.Spill) ledger.Amounts {
	c := capacity()
	c[ledger.PoolSHM] = roamRoom * s.FileBytes(handoff.SHM, roamBytes)
	return c
}

// roamForEver books, writes, hands over, takes, reads and gives back until it is killed.
func roamForEver(ctx context.Context, book *agent.Book, spill *handoff.Spill, n int) error {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(os.Getpid())))
	fmt.Println("ready")
	for i := 0; ; i++ {
		var err error
		if a := attempt(n, i%4, uint64(i+1)); rng.IntN(2) == 0 {
			err = roamWrite(ctx, book, spill, a)
		} else {
			err = roamRead(ctx, book, spill)
		}
		switch fault.KindOf(err) {
		case "", fault.Exhausted, fault.Conflict, fault.NotFound, fault.Transient:
		default:
			return err
		}
	}
}

func roamWrite(ctx context.Context, book *agent.Book, spill *handoff.Spill, a job.Attempt) error {
	held, err := book.Admit(ctx, agent.Request{
		Attempt: a, Circuit: circuitID, Amounts: roamNeed(spill), SegmentBytes: roamBytes, SegmentKind: handoff.SHM,
	})
	if err != nil {
		return err
	}
	d, err := spill.Create(ctx, handoff.Spec{Attempt: a, Circuit: circuitID, Bytes: roamBytes})
	if err != nil {
		return errors.Join(err, spill.Reclaim(a), held.Remove(ctx))
	}
	mark := byte(a.Fence) ^ byte(a.Job[len(a.Job)-1])
	for i := range d.Memory() {
		d.Memory()[i] = mark
	}
	return errors.Join(d.Seal(ctx), held.HandOver(ctx), d.Close())
}

func roamRead(ctx context.Context, book *agent.Book, spill *handoff.Spill) error {
	l, err := book.List(ctx)
	if err != nil {
		return err
	}
	for _, e := range l.Entries {
		if !e.Handed {
			continue
		}
		held, err := book.Take(ctx, e.Attempt)
		if err != nil {
			return err
		}
		seg, err := spill.Open(ctx, handoff.Want{Attempt: e.Attempt, Circuit: circuitID})
		if err != nil {
			return errors.Join(err, held.Remove(ctx))
		}
		mark := byte(e.Attempt.Fence) ^ byte(e.Attempt.Job[len(e.Attempt.Job)-1])
		for i, b := range seg.Memory() {
			if b != mark {
				return fault.New(fault.Internal, "byte %d of %s is of another attempt", i, e.Attempt)
			}
		}
		return errors.Join(seg.GiveBack(), held.Remove(ctx))
	}
	return nil
}

// TestKillsKeepTheBookRight: five workers book, write, hand over and read, and one of them is killed every few
// milliseconds, while this process mends and sweeps. At every instant bookings and free segments are within capacity
// (invariant 1), segments in the folder are booked or free, every body is its attempt's (invariant 5), and at the end
// nothing is left (invariants 2 and 9).
func TestKillsKeepTheBookRight(t *testing.T) {
	t.Parallel()
	killAndCheck(t, 1500*time.Millisecond)
}

func killAndCheck(t *testing.T, duration time.Duration) {
	t.Helper()
	n := newNode(t)
	n.capacity = roamCapacity(n.spill)
	room := n.capacity[ledger.PoolSHM]
	workers := make([]*worker, roamWorkers)
	for i := range workers {
		workers[i] = start(t, "roam", n.path, "roam-"+strconv.Itoa(i), i+1)
		workers[i].until(t, "ready")
	}
	rng := rand.New(rand.NewPCG(1, 2))
	kills, removed, handed := 0, 0, 0
	begun := time.Now()
	enough := func() bool { // the time, and every kind of hit however slow the machine is
		took := time.Since(begun)
		return took > duration && (removed > 0 && handed > 0 || took > duration+time.Minute)
	}
	for ; !enough(); kills++ {
		i := rng.IntN(len(workers))
		time.Sleep(time.Duration(rng.IntN(20_000)) * time.Microsecond)
		workers[i].kill(t)
		if code := workers[i].ProcessState.ExitCode(); code != -1 {
			t.Fatalf("worker %d ended by itself with %d: %s", i, code, rest(workers[i]))
		}
		workers[i] = start(t, "roam", n.path, fmt.Sprintf("roam-%d-%d", i, kills), i+1)
		workers[i].until(t, "ready")
		m := mustMend(t, n, nil)
		removed, handed = removed+len(m.Removed), handed+len(m.HandedOver)
		if _, err := n.spill.Sweep(t.Context(), n.book.Booked); err != nil {
			t.Fatal(err)
		}
		checkWithin(t, n, room)
	}
	for _, w := range workers {
		w.kill(t)
	}
	mustMend(t, n, notCurrent)
	if _, err := n.spill.Sweep(t.Context(), n.book.Booked); err != nil {
		t.Fatal(err)
	}
	usage, err := n.spill.Usage()
	if err != nil || len(n.alive(t)) != 0 || usage[0].SegmentCount != 0 {
		t.Errorf("left: %v, %+v, %v", n.alive(t), usage, err)
	}
	t.Logf("%d kills; %d bookings removed, %d handed over", kills, removed, handed)
	if removed == 0 || handed == 0 {
		t.Error("the kills hit nothing")
	}
}

func rest(w *worker) string {
	text := ""
	for w.lines.Scan() {
		text += w.lines.Text() + "\n"
	}
	return text
}

// checkWithin looks at the book and the files from outside.
func checkWithin(t *testing.T, n *node, room bytesize.Bytes) {
	t.Helper()
	var sum bytesize.Bytes
	if used := segmentBytes(t, n); used > room {
		t.Fatalf("%s in files: more than %s", used, room)
	}
	l, err := n.book.List(t.Context())
	if err != nil || !l.Complete {
		t.Fatalf("list: %v, %v", l.Complete, err)
	}
	for _, e := range l.Entries {
		sum += e.Amounts[ledger.PoolSHM]
	}
	if sum > room {
		t.Fatalf("%s booked: more than %s", sum, room)
	}
}

// segmentBytes sums up all files of the spill folder, each once although they move.
func segmentBytes(t *testing.T, n *node) bytesize.Bytes {
	t.Helper()
	unlock := holdBookLock(t, n.path) // so that none is lent or made in between
	defer unlock()
	sizes := map[uint64]int64{}
	for _, sub := range []string{"seg", "pool"} {
		entries, err := os.ReadDir(filepath.Join(n.path, sub))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil {
				continue // it moved on
			}
			stat, ok := info.Sys().(*syscall.Stat_t)
			if !ok {
				t.Fatal("no status")
			}
			sizes[stat.Ino] = stat.Blocks * 512
		}
	}
	var sum bytesize.Bytes
	for _, size := range sizes {
		sum += bytesize.Bytes(size)
	}
	return sum
}
