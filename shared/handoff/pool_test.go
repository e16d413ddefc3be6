package handoff_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/handoff"
)

// freed puts a segment of a size into the pool.
func freed(t *testing.T, s *handoff.Spill, n int, size int64) {
	t.Helper()
	mustWrite(t, s, attempt(n, 0, 1), size)
	if err := mustOpen(t, s, attempt(n, 0, 1)).GiveBack(); err != nil {
		t.Fatal(err)
	}
}

func freeBytes(t *testing.T, s *handoff.Spill) bytesize.Bytes {
	t.Helper()
	free, err := s.FreeBytes()
	if err != nil {
		t.Fatal(err)
	}
	return free[handoff.SHM]
}

func TestPoolLendsBySizeAndSetsAside(t *testing.T) {
	t.Parallel()
	path := memoryFolder(t)
	s := newSpill(t, path)
	freed(t, s, 1, 10_000)
	freed(t, s, 2, 50_000)
	small, large := s.FileBytes(handoff.SHM, 10_000), s.FileBytes(handoff.SHM, 50_000)
	if got := freeBytes(t, s); got != small+large {
		t.Errorf("free %s", got)
	}
	for _, c := range []struct {
		n    int
		size bytesize.Bytes
		lent bool
		free bytesize.Bytes
	}{
		{3, 20_000, false, small + large}, {3, 10_000, true, large}, {3, 10_000, true, large}, {4, 10_000, false, large},
	} {
		lent, err := s.Lend(attempt(c.n, 0, 1), handoff.SHM, c.size)
		if err != nil || lent != c.lent || freeBytes(t, s) != c.free {
			t.Errorf("lend %d for %d: %v, %v, free %s", c.size, c.n, lent, err, freeBytes(t, s))
		}
	}
	if report := mustSweep(t, s, attempt(3, 0, 1)); len(report.Removed) != 0 {
		t.Errorf("a sweep took what was lent to a booked attempt: %+v", report)
	}
	d, err := s.Create(t.Context(), handoff.Spec{Attempt: attempt(3, 0, 1), Circuit: circuitID, Bytes: 10_000})
	if err != nil || !d.Reused() {
		t.Fatalf("what was lent is not used: %v", err)
	}
	if err := d.GiveBack(); err != nil {
		t.Fatal(err)
	}
	if lent, err := s.Lend(attempt(5, 0, 1), handoff.SHM, 10_000); !lent || err != nil {
		t.Fatalf("lend: %v, %v", lent, err)
	}
	if report := mustSweep(t, s); len(report.Removed) != 1 || report.Removed[0].Why != "no owner" {
		t.Errorf("lent to nobody: %+v", report)
	}
}

func TestPoolIsTrimmedOldestFirst(t *testing.T) {
	t.Parallel()
	path := memoryFolder(t)
	s := newSpill(t, path)
	for n := range 4 {
		freed(t, s, n, int64(10_000*(n+1)))
	}
	sizes := make([]bytesize.Bytes, 4)
	for n := range sizes {
		sizes[n] = s.FileBytes(handoff.SHM, bytesize.Bytes(10_000*(n+1)))
	}
	if err := trim(s, handoff.SHM, sizes[3]+sizes[2]); err != nil {
		t.Fatal(err)
	}
	if got := freeBytes(t, s); got != sizes[3]+sizes[2] {
		t.Errorf("kept %s", got)
	}
	if err := trim(s, handoff.Disk, 0); err != nil {
		t.Error(err)
	}
	if err := trim(s, handoff.SHM, 0); err != nil || freeBytes(t, s) != 0 {
		t.Errorf("kept %s, %v", freeBytes(t, s), err)
	}
}

func TestPoolForgetsWhatLiesIdle(t *testing.T) {
	t.Parallel()
	path := memoryFolder(t)
	lasting := newSpill(t, path)
	freed(t, lasting, 1, 10_000)
	if report := mustSweep(t, lasting); len(report.Removed) != 0 {
		t.Errorf("young: %+v", report)
	}
	brief := newSpill(t, path, func(c *handoff.Config) { c.PoolIdle = time.Nanosecond })
	if report := mustSweep(t, brief); len(report.Removed) != 1 || report.Removed[0].Why != "idle" {
		t.Errorf("idle: %+v", report)
	}
}

// TestPoolFileInUseIsNotLent: a worker that was paused with a mapping of an old segment must not share its pages with
// the next attempt (invariant 5).
func TestPoolFileInUseIsNotLent(t *testing.T) {
	t.Parallel()
	s := newSpill(t, memoryFolder(t), func(c *handoff.Config) { c.PoolIdle = time.Nanosecond })
	ctx, a, b := t.Context(), attempt(1, 0, 1), attempt(2, 0, 1)
	paused, err := s.Create(ctx, handoff.Spec{Attempt: a, Circuit: circuitID, Bytes: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	fillPattern(paused.Memory(), a)
	if err := paused.Seal(ctx); err != nil {
		t.Fatal(err)
	}
	if err := mustOpen(t, s, a).GiveBack(); err != nil { // the reader is done, the writer has not let go
		t.Fatal(err)
	}
	if lent, err := s.Lend(b, handoff.SHM, 10_000); lent || err != nil {
		t.Errorf("lent although it is mapped: %v", err)
	}
	if report := mustSweep(t, s); len(report.Removed) != 0 || report.HeldCount != 1 {
		t.Errorf("sweep %+v", report)
	}
	if err := trim(s, handoff.SHM, 0); err != nil || freeBytes(t, s) == 0 {
		t.Errorf("trimmed although it is mapped: %v", err)
	}
	mustWrite(t, s, b, 10_000)
	for i := range paused.Memory() {
		paused.Memory()[i] = 0xff
	}
	seg := mustOpen(t, s, b)
	if err := errors.Join(checkPattern(seg.Memory(), b), seg.Close()); err != nil {
		t.Errorf("the paused writer reached another attempt: %v", err)
	}
	if err := paused.GiveBack(); err != nil { // its name is gone: nothing to give back
		t.Fatal(err)
	}
	if lent, err := s.Lend(attempt(3, 0, 1), handoff.SHM, 10_000); !lent || err != nil {
		t.Errorf("free at last, but: %v, %v", lent, err)
	}
}

func TestReclaimKeepsPagesForReuse(t *testing.T) {
	t.Parallel()
	path := memoryFolder(t)
	s := newSpill(t, path)
	mustWrite(t, s, attempt(1, 0, 1), 10_000)
	mustWrite(t, s, attempt(1, 1, 1), 10_000)
	if err := errors.Join(s.Reclaim(attempt(1, 0, 1)), s.Reclaim(attempt(7, 0, 1))); err != nil {
		t.Fatal(err)
	}
	if in, out := files(t, path, "seg"), files(t, path, "pool"); len(in) != 1 || len(out) != 1 {
		t.Errorf("after reclaim: %v, %v", in, out)
	}
	d, err := s.Create(t.Context(), handoff.Spec{Attempt: attempt(1, 2, 1), Circuit: circuitID, Bytes: 10_000})
	if err != nil || !d.Reused() {
		t.Fatalf("not reused: %v", err)
	}
	if err := d.GiveBack(); err != nil {
		t.Fatal(err)
	}
}

func TestForeignFilesInThePoolAreLeftAlone(t *testing.T) {
	t.Parallel()
	path := memoryFolder(t)
	s := newSpill(t, path, func(c *handoff.Config) { c.PoolIdle = time.Nanosecond })
	freed(t, s, 1, 10_000)
	name := files(t, path, "pool")[0]
	if err := os.Remove(filepath.Join(path, "pool", name)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(path, "pool", name)); err != nil {
		t.Fatal(err)
	}
	if lent, err := s.Lend(attempt(2, 0, 1), handoff.SHM, 10_000); lent || err != nil {
		t.Errorf("a link was lent: %v", err)
	}
	if report := mustSweep(t, s); len(report.Removed) != 0 || report.ForeignCount != 1 {
		t.Errorf("sweep %+v", report)
	}
}

// TestSweepOnDiskRemovesAnEarlierBoot: a disk keeps its files over a restart of the host, even those of attempts that
// somebody still wants.
func TestSweepOnDiskRemovesAnEarlierBoot(t *testing.T) {
	t.Parallel()
	path, a := filepath.Join(t.TempDir(), "spill"), attempt(1, 0, 1)
	s := newSpill(t, path)
	if s.Kinds()[0] != handoff.Disk {
		t.Fatalf("the folder for temporary files is %s; this test needs one on disk", s.Kinds()[0])
	}
	mustWrite(t, s, a, 10_000)
	if report := mustSweep(t, s, a); len(report.Removed) != 0 {
		t.Errorf("of this boot: %+v", report)
	}
	at := filepath.Join(path, "seg", handoff.Name(a))
	content, err := os.ReadFile(at)
	if err != nil {
		t.Fatal(err)
	}
	content[152] ^= 1 // boot id
	if err := os.WriteFile(at, resum(content), 0o600); err != nil {
		t.Fatal(err)
	}
	if report := mustSweep(t, s, a); len(report.Removed) != 1 || report.Removed[0].Why != "left by an earlier boot" {
		t.Errorf("of an earlier boot: %+v", report)
	}
}

// TestVoidSegmentIsNotReadAgain: whoever got the file before it was given back finds the mark.
func TestVoidSegmentIsNotReadAgain(t *testing.T) {
	t.Parallel()
	s, a := newSpill(t, memoryFolder(t)), attempt(1, 0, 1)
	mustWrite(t, s, a, 10_000)
	seg := mustOpen(t, s, a)
	fd, err := unix.Dup(int(seg.File().Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if err := seg.GiveBack(); err != nil {
		t.Fatal(err)
	}
	if lent, err := s.Lend(attempt(2, 0, 1), handoff.SHM, 10_000); lent || err != nil {
		t.Errorf("lent while somebody has the file: %v", err)
	}
	want := handoff.Want{Attempt: a, Circuit: circuitID}
	if _, err := handoff.FromFile(os.NewFile(uintptr(fd), "copy"), want); !errors.Is(err, handoff.ErrAbsent) {
		t.Errorf("read again: %v", err)
	}
	if lent, err := s.Lend(attempt(2, 0, 1), handoff.SHM, 10_000); !lent || err != nil {
		t.Errorf("not lent when everybody has let go: %v", err)
	}
}

// TestSweepTakesHalfMadeFilesOfWantedAttempts: the worker died while it made the file, its attempt is booked again.
func TestSweepTakesHalfMadeFilesOfWantedAttempts(t *testing.T) {
	t.Parallel()
	path, hooks, a := memoryFolder(t), t.TempDir(), attempt(1, 0, 1)
	killed, out := child(t, "write", envPath, path, envAttempt, a.String(), envBytes, "10000",
		envHook, "kill@"+handoff.PointAfterSize, envHooks, hooks)
	diedBySignal(t, killed.Run(), out)
	report := mustSweep(t, newSpill(t, path), a)
	if len(report.Removed) != 1 || report.Removed[0].Why != "left while it was made" {
		t.Errorf("sweep %+v, folder %v", report, files(t, path, "seg"))
	}
}

// trim trims and gives the memory back.
func trim(s *handoff.Spill, kind handoff.Kind, keep bytesize.Bytes) error {
	free, err := s.Trim(kind, keep)
	free()
	return err
}

// The memory of what is trimmed is given back apart, so that nobody waits for it under a lock; the names are gone.
func TestTrimUnlinksFirstAndFreesLater(t *testing.T) {
	t.Parallel()
	path := memoryFolder(t)
	s := newSpill(t, path)
	freed(t, s, 1, 1<<20)
	before := openFiles(t, path)
	free, err := s.Trim(handoff.SHM, 0)
	if err != nil || freeBytes(t, s) != 0 {
		t.Fatalf("trim: %v, %s in the pool", err, freeBytes(t, s))
	}
	if n := openFiles(t, path); n != before+1 {
		t.Errorf("%d files are open, want the %d of before and the unlinked one", n, before)
	}
	free()
	free()
	if n := openFiles(t, path); n != before {
		t.Errorf("%d files are open after the memory was given back, want %d", n, before)
	}
}

// openFiles counts the open files of this process that are or were below a folder.
func openFiles(t *testing.T, folder string) (n int) {
	t.Helper()
	all, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && strings.HasPrefix(to, folder) {
			n++
		}
	}
	return n
}
