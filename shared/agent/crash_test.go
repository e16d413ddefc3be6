package agent_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
)

// holdBookLock holds the lock of a book as another process would.
func holdBookLock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(path, "book", "lock"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // a child that is being started has a copy of the file
		_ = f.Close()
	}
}

func mustMend(t *testing.T, n *node, current func(context.Context, job.Attempt) (bool, error)) agent.Mended {
	t.Helper()
	m, err := n.book.Mend(t.Context(), current)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestBookingOfAKilledWorkerGoesWhenItIsGone: kill -9 of a worker that holds a booking, with nothing, with half a
// segment. A worker that is only stopped keeps its bytes (time never frees them).
func TestBookingOfAKilledWorkerGoesWhenItIsGone(t *testing.T) {
	t.Parallel()
	for i, role := range []string{"hold", "write"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			n, a := newNode(t), attempt(i+1, 0, 1)
			w := start(t, role, n.path, "dying", i+1)
			w.until(t, "ready")
			if err := w.Process.Signal(syscall.SIGSTOP); err != nil {
				t.Fatal(err)
			}
			if m := mustMend(t, n, notCurrent); m.Changed() || !n.alive(t)[a] {
				t.Errorf("a stopped worker lost its booking: %+v", m)
			}
			w.kill(t)
			if n.alive(t)[a] {
				t.Error("a dead worker's booking is alive")
			}
			m := mustMend(t, n, nil)
			if diff := cmp.Diff([]job.Attempt{a}, m.Removed); diff != "" || n.book.Booked(a) {
				t.Errorf("mended: %s", diff)
			}
			if left, err := os.ReadDir(filepath.Join(n.path, "seg")); err != nil || len(left) != 0 {
				t.Errorf("segments left: %v, %v", left, err)
			}
			if _, err := os.Lstat(filepath.Join(n.path, "book", "proc.dying")); err == nil {
				t.Error("the lock of the dead worker is left")
			}
		})
	}
}

func notCurrent(context.Context, job.Attempt) (bool, error) { return false, nil }

// TestSealedSegmentOfAKilledWorkerIsNotLost: the work is done, so it is kept until somebody takes it, or until nobody
// wants it any more.
func TestSealedSegmentOfAKilledWorkerIsNotLost(t *testing.T) {
	t.Parallel()
	n, a, ctx := newNode(t), attempt(1, 0, 1), t.Context()
	w := start(t, "seal", n.path, "dying", 1)
	w.until(t, "ready")
	orphans := func() (found []job.Attempt) {
		all, err := n.book.Orphans(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range all {
			if o.Segment != handoff.SHM {
				t.Errorf("segment of %s lies on %q", o.Attempt, o.Segment)
			}
			found = append(found, o.Attempt)
		}
		return found
	}
	if got := orphans(); len(got) != 0 {
		t.Errorf("orphans while their worker lives: %v", got)
	}
	w.kill(t)
	if got := orphans(); len(got) != 1 || got[0] != a {
		t.Errorf("orphans %v, want %v", got, a)
	}
	if m := mustMend(t, n, nil); len(m.HandedOver) != 1 || len(m.Removed) != 0 || !n.alive(t)[a] {
		t.Errorf("mended %+v", m)
	}
	if m := mustMend(t, n, nil); m.Changed() {
		t.Errorf("mended again: %+v", m)
	}
	if _, err := n.book.Admit(ctx, agent.Request{Attempt: a, Amounts: gib(1)}); !errors.Is(err, agent.ErrHandedOver) {
		t.Errorf("the task again: %v", err)
	}
	if got := orphans(); len(got) != 1 || got[0] != a {
		t.Errorf("orphans after mending %v, want %v", got, a)
	}
	unsure := func(context.Context, job.Attempt) (bool, error) { return false, errors.New("away") }
	if m := mustMend(t, n, unsure); m.Changed() {
		t.Errorf("removed although nobody knows: %+v", m)
	}
	if m := mustMend(t, n, notCurrent); len(m.Removed) != 1 || n.book.Booked(a) {
		t.Errorf("not wanted: %+v", m)
	}
	if _, _, err := n.spill.Lookup(a); !errors.Is(err, handoff.ErrAbsent) {
		t.Errorf("its segment: %v", err)
	}
}

// TestSegmentInUseKeepsItsBooking: the attempt is over, but a process still maps the segment.
func TestSegmentInUseKeepsItsBooking(t *testing.T) {
	t.Parallel()
	n, a := newNode(t), attempt(1, 0, 1)
	w := start(t, "seal", n.path, "dying", 1)
	w.until(t, "ready")
	w.kill(t)
	seg, err := n.spill.Open(t.Context(), handoff.Want{Attempt: a, Circuit: circuitID})
	if err != nil {
		t.Fatal(err)
	}
	if m := mustMend(t, n, notCurrent); len(m.Busy) != 1 || m.Changed() || !n.book.Booked(a) {
		t.Errorf("mended %+v", m)
	}
	if err := seg.Close(); err != nil {
		t.Fatal(err)
	}
	if m := mustMend(t, n, notCurrent); len(m.Removed) != 1 {
		t.Errorf("mended %+v", m)
	}
}

// TestEngineOfAKilledWorkerStillHoldsItsBytes: an engine that inherited the evidence outlives its worker.
func TestEngineOfAKilledWorkerStillHoldsItsBytes(t *testing.T) {
	t.Parallel()
	n, a := newNode(t), attempt(1, 0, 1)
	w := start(t, "with-engine", n.path, "dying", 1)
	pid, err := strconv.Atoi(w.until(t, "engine"))
	if err != nil {
		t.Fatal(err)
	}
	w.until(t, "ready")
	if err := w.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Process.Wait(); err != nil {
		t.Fatal(err)
	}
	if m := mustMend(t, n, nil); m.Changed() || !n.alive(t)[a] {
		t.Errorf("the engine lives, but: %+v", m)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	limit := time.Now().Add(time.Minute)
	for n.alive(t)[a] {
		if time.Now().After(limit) {
			t.Fatal("the engine is dead, its booking is not")
		}
		time.Sleep(time.Millisecond)
	}
	if m := mustMend(t, n, nil); len(m.Removed) != 1 {
		t.Errorf("mended %+v", m)
	}
}

// TestKillsAtAnyMomentLeaveAWholeBook: a worker is killed while it writes the book as fast as it can.
func TestKillsAtAnyMomentLeaveAWholeBook(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	for i := range 25 {
		w := start(t, "churn", n.path, "churn-"+strconv.Itoa(i), i+1)
		w.until(t, "ready")
		time.Sleep(time.Duration(i*37%11) * 100 * time.Microsecond)
		w.kill(t)
		if alive, ok := n.alive(t)[attempt(i+1, 0, 1)]; alive || !ok {
			t.Fatalf("round %d: booked %v, alive %v", i, ok, alive)
		}
		if m := mustMend(t, n, nil); len(m.Removed) != 1 {
			t.Fatalf("round %d: mended %+v", i, m)
		}
	}
	entries, err := os.ReadDir(filepath.Join(n.path, "book"))
	if err != nil || len(entries) != 2 { // the lock and our own
		t.Errorf("left in the book: %v, %v", entries, err)
	}
}

func TestHalfWrittenFilesAreSwept(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	if err := os.WriteFile(filepath.Join(n.path, "book", ".tmp-1-dead"), []byte(`{"v":`), 0o600); err != nil {
		t.Fatal(err)
	}
	n.mustAdmitAndRemove(t, attempt(1, 0, 1))
	if m := mustMend(t, n, nil); m.HalvesRemoved != 1 || m.Changed() {
		t.Errorf("mended %+v", m)
	}
}

func TestTaskOfADeadWorkerIsTakenOverAtOnce(t *testing.T) {
	t.Parallel()
	n, a := newNode(t), attempt(1, 0, 1)
	w := start(t, "hold", n.path, "dying", 1)
	w.until(t, "ready")
	w.kill(t)
	// 2 GiB of the dead worker do not stand in the way of the same attempt.
	held := n.mustAdmit(t, a, gib(40))
	if m := mustMend(t, n, nil); m.Changed() || !n.alive(t)[a] {
		t.Errorf("mended %+v", m)
	}
	if err := held.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestNextProcessTakesTheHostLockOfAKilledOne(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	w := start(t, "lock", n.path, "", 0)
	w.until(t, "ready")
	if lock, err := agent.TryHostLock(n.path, -1); lock != nil || err != nil {
		t.Fatalf("taken from a live process: %v", err)
	}
	w.kill(t)
	lock, err := agent.TryHostLock(n.path, -1)
	if lock == nil || err != nil {
		t.Fatalf("not taken from a dead process: %v", err)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
}

// TestBookingOfAnEarlierBootIsDead: a folder on disk survives a restart of the host.
func TestBookingOfAnEarlierBootIsDead(t *testing.T) {
	t.Parallel()
	n, a := newNode(t), attempt(1, 0, 1)
	n.mustAdmit(t, a, gib(1))
	at := filepath.Join(n.path, "book", a.String())
	text, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	self, err := handoff.Self()
	if err != nil {
		t.Fatal(err)
	}
	earlier := []byte(self.Boot)
	earlier[0] ^= 1
	changed := []byte(string(text))
	copy(changed[indexOf(t, text, self.Boot):], earlier)
	if err := os.WriteFile(at, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	if n.alive(t)[a] {
		t.Error("a booking of an earlier boot is alive")
	}
	if m := mustMend(t, n, nil); len(m.Removed) != 1 {
		t.Errorf("mended %+v", m)
	}
}

func indexOf(t *testing.T, text []byte, part string) int {
	t.Helper()
	for i := range len(text) - len(part) {
		if string(text[i:i+len(part)]) == part {
			return i
		}
	}
	t.Fatalf("%q is not in %s", part, text)
	return 0
}
