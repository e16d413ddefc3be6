package handoff_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/hook"
)

// TestB81ShortMemoryIsRefusedWithBothNumbers: a segment of 80 MB meets a tmpfs of 64 MiB. Nothing dies, nothing is
// left, and what fits goes on.
func TestB81ShortMemoryIsRefusedWithBothNumbers(t *testing.T) {
	t.Parallel()
	path := inTmpfs(t, "size=64m")
	if path == "" {
		return
	}
	s := newSpill(t, filepath.Join(path, "spill"))
	before := usedBytes(t, path)
	_, err := s.Create(t.Context(), handoff.Spec{Attempt: attempt(1, 0, 1), Circuit: circuitID, Bytes: 80_000_000})
	var short *handoff.Shortage
	if !errors.As(err, &short) || fault.KindOf(err) != fault.Exhausted {
		t.Fatalf("80 MB into 64 MiB: %v", err)
	}
	if short.NeedBytes != s.FileBytes(handoff.SHM, 80_000_000) || short.HasBytes < 63*bytesize.MiB ||
		short.HasBytes > 64*bytesize.MiB || short.Kind != handoff.SHM {
		t.Errorf("shortage %+v", short)
	}
	if text := err.Error(); !strings.Contains(text, "needs 76.3 MiB") || !strings.Contains(text, short.HasBytes.String()) {
		t.Errorf("text %q", text)
	}
	if used := usedBytes(t, path); used != before || len(files(t, path, "spill/seg")) != 0 {
		t.Errorf("%d bytes are used, before %d", used, before)
	}
	if err := s.Check(handoff.SHM, 80_000_000); !errors.As(err, &short) {
		t.Errorf("check: %v", err)
	}
	// A free segment of another size gives way; one in use does not.
	mustWrite(t, s, attempt(1, 1, 1), 30<<20)
	if err := mustOpen(t, s, attempt(1, 1, 1)).GiveBack(); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(handoff.SHM, 50<<20); err != nil {
		t.Errorf("check beside a free segment: %v", err)
	}
	mustWrite(t, s, attempt(1, 2, 1), 50<<20)
	if got := files(t, path, "spill/pool"); len(got) != 0 {
		t.Errorf("free segments %v did not give way", got)
	}
	if err := write(t.Context(), s, attempt(1, 3, 1), 30<<20); !errors.As(err, &short) {
		t.Errorf("beside a segment in use: %v", err)
	}
	seg := mustOpen(t, s, attempt(1, 2, 1))
	if err := errors.Join(checkPattern(seg.Memory(), attempt(1, 2, 1)), seg.Close()); err != nil {
		t.Error(err)
	}
}

// TestB82FullFolderIsNoCrash: a foreign file fills the tmpfs. The folder opens, says who uses how much, leaves the file
// alone, and works as soon as there is room.
func TestB82FullFolderIsNoCrash(t *testing.T) {
	t.Parallel()
	path := inTmpfs(t, "size=32m")
	if path == "" {
		return
	}
	foreign := filepath.Join(path, "of-somebody-else")
	if err := os.WriteFile(foreign, make([]byte, 32<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSpill(t, filepath.Join(path, "spill"))
	// Files with our folder's name that are not ours are left alone, too.
	stranger := filepath.Join(path, "spill", "seg", "notes.txt")
	if err := os.WriteFile(stranger, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var short *handoff.Shortage
	for range 3 {
		err := s.Check(handoff.SHM, 1<<20)
		if !errors.As(err, &short) || short.HasBytes != 0 {
			t.Fatalf("check of a full folder: %v", err)
		}
		if !strings.Contains(err.Error(), foreign+" 32 MiB uid 0") {
			t.Errorf("text %q does not name the user", err)
		}
		if err := write(t.Context(), s, attempt(1, 0, 1), 1<<20); !errors.As(err, &short) {
			t.Fatalf("write into a full folder: %v", err)
		}
		if report := mustSweep(t, s); len(report.Removed) != 0 || report.ForeignCount != 1 {
			t.Errorf("sweep %+v", report)
		}
	}
	usage, err := s.Usage()
	if err != nil || len(usage) != 1 || usage[0].ForeignBytes != 32*bytesize.MiB {
		t.Errorf("usage %+v, %v", usage, err)
	}
	if users := s.Foreign(handoff.SHM); len(users) != 1 || users[0].Path != foreign || users[0].UID != 0 {
		t.Errorf("users %+v", users)
	}
	for _, f := range []string{foreign, stranger} {
		if _, err := os.Lstat(f); err != nil {
			t.Errorf("foreign file was touched: %v", err)
		}
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	if err := s.Check(handoff.SHM, 1<<20); err != nil {
		t.Errorf("with room again: %v", err)
	}
	mustWrite(t, s, attempt(1, 0, 1), 1<<20)
}

// TestB83KilledWriterLeavesNoClash: a writer is killed at each point of its way, with a segment so large that no second
// one fits. The same attempt runs again at once; a sweep frees everything for others.
func TestB83KilledWriterLeavesNoClash(t *testing.T) {
	t.Parallel()
	path := inTmpfs(t, "size=64m")
	if path == "" {
		return
	}
	spill := filepath.Join(path, "spill")
	const size = 40 << 20
	for i, point := range []string{
		handoff.PointAfterCreate, handoff.PointAfterSize, handoff.PointBeforeLastByte, handoff.PointBeforeSeal,
		handoff.PointAfterSeal,
	} {
		a, hooks := attempt(1, i, 1), t.TempDir()
		killed, out := child(t, "write", envPath, spill, envAttempt, a.String(), envBytes, strconv.Itoa(size),
			envHook, "kill@"+point, envHooks, hooks)
		diedBySignal(t, killed.Run(), out)
		if _, ok := hook.ReachedBy(hooks, point+"#1"); !ok {
			t.Fatalf("%s was not reached", point)
		}
		if got := files(t, spill, "seg"); len(got) != 1 {
			t.Fatalf("%s: left %v", point, got)
		}
		again, out := child(t, "write", envPath, spill, envAttempt, a.String(), envBytes, strconv.Itoa(size))
		if err := again.Run(); err != nil {
			t.Fatalf("%s: same attempt again: %v %s", point, err, out)
		}
		if got := files(t, spill, "seg"); len(got) != 1 || got[0] != handoff.Name(a) {
			t.Errorf("%s: then %v", point, got)
		}
		s := newSpill(t, spill)
		seg := mustOpen(t, s, a)
		if err := errors.Join(checkPattern(seg.Memory(), a), seg.Close()); err != nil {
			t.Errorf("%s: %v", point, err)
		}
		if report := mustSweep(t, s); len(report.Removed) != 1 {
			t.Errorf("%s: sweep %+v", point, report)
		}
		if used := usedBytes(t, path); used > 1<<20 {
			t.Errorf("%s: %d bytes are used after the sweep", point, used)
		}
	}
}

// TestB84KillsLeakNothing: writer and reader are killed by turns over 30 jobs; a sweep runs in a process that lives.
// The space in use is bounded at all times and zero at the end, and a clean job runs.
func TestB84KillsLeakNothing(t *testing.T) {
	t.Parallel()
	path := inTmpfs(t, "size=24m")
	if path == "" {
		return
	}
	spill := filepath.Join(path, "spill")
	s := newSpill(t, spill, func(c *handoff.Config) { c.PoolIdle = time.Nanosecond })
	const size = 6 << 20
	points := []string{
		handoff.PointAfterSize, handoff.PointBeforeMap, handoff.PointBeforeSeal, handoff.PointAfterMap,
		handoff.PointAfterSeal,
	}
	for i := range 30 {
		point := points[i%len(points)]
		a, hooks := attempt(i, 0, 1), t.TempDir()
		role := "write"
		if point == handoff.PointBeforeMap || point == handoff.PointAfterMap {
			role = "read"
			mustWrite(t, s, a, size)
		}
		killed, out := child(t, role, envPath, spill, envAttempt, a.String(), envBytes, strconv.Itoa(size),
			envHook, "kill@"+point, envHooks, hooks)
		diedBySignal(t, killed.Run(), out)
		if used := usedBytes(t, path); used > size+1<<20 {
			t.Fatalf("round %d: %d bytes are used, more than one segment", i, used)
		}
		mustSweep(t, s)
	}
	if used, in := usedBytes(t, path), files(t, spill, "seg"); used > 64<<10 || len(in) != 0 {
		t.Errorf("after 30 kills %d bytes are used, by %v", used, in)
	}
	a := attempt(99, 0, 1)
	mustWrite(t, s, a, size)
	seg := mustOpen(t, s, a)
	if err := errors.Join(checkPattern(seg.Memory(), a), seg.GiveBack()); err != nil {
		t.Error(err)
	}
	mustSweep(t, s)
	if got := files(t, spill, "pool"); len(got) != 0 {
		t.Errorf("idle segments are kept: %v", got)
	}
}

// TestB88RightsOfTheFolder: a folder for root only, then writer and reader as different users.
func TestB88RightsOfTheFolder(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs root, to become other users")
	}
	if os.Getuid() != 0 {
		t.Fatal("needs root, to become other users; -short leaves it out")
	}
	path := memoryFolder(t)
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	binary := publicBinary(t)
	as := func(uid, gid uint32, role string, env ...string) (string, error) {
		c, out := child(t, role, env...)
		c.Path, c.Args[0], c.Dir = binary, binary, "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid, Groups: []uint32{}}}
		err := c.Run()
		return out.String(), err
	}
	a := attempt(1, 0, 1)
	common := []string{envAttempt, a.String(), envBytes, "100000"}
	out, err := as(1000, 1000, "write", append(common, envPath, filepath.Join(path, "spill"))...)
	if err == nil || !strings.Contains(out, path+" (mode drwxr-xr-x, of uid 0 gid 0)") ||
		!strings.Contains(out, "uid 1000") || !strings.Contains(out, "spill") {
		t.Errorf("folder of root: %v: %s", err, out)
	}
	if err := os.Chmod(path, 0o1777); err != nil {
		t.Fatal(err)
	}

	// Without a group, another user's reader is refused, and learns nothing.
	alone := append(common, envPath, filepath.Join(path, "alone"))
	if out, err := as(1000, 1000, "write", alone...); err != nil {
		t.Fatalf("writer: %v: %s", err, out)
	}
	info, err := os.Stat(filepath.Join(path, "alone", "seg", handoff.Name(a)))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("mode without a group: %v, %v", info.Mode(), err)
	}
	if out, err := as(1001, 1001, "read", alone...); err == nil || !strings.Contains(out, "uid 1000") {
		t.Errorf("reader of another user: %v: %s", err, out)
	}

	// In a common group it works, and the next writer may be either.
	shared := append(common, envPath, filepath.Join(path, "shared"), envGroup, "1002")
	if out, err := as(1000, 1002, "write", shared...); err != nil {
		t.Fatalf("writer in the group: %v: %s", err, out)
	}
	info, err = os.Stat(filepath.Join(path, "shared", "seg", handoff.Name(a)))
	if err != nil || info.Mode() != 0o640 || info.Sys().(*syscall.Stat_t).Gid != 1002 {
		t.Errorf("mode with a group: %v, %v", info.Mode(), err)
	}
	if out, err := as(1001, 1002, "read", shared...); err != nil {
		t.Errorf("reader of the group: %v: %s", err, out)
	}
	if out, err := as(1003, 1003, "read", shared...); err == nil {
		t.Errorf("reader outside the group: %s", out)
	}
	for _, uid := range []uint32{1001, 1000} {
		if out, err := as(uid, 1002, "write", shared...); err != nil {
			t.Errorf("next writer, uid %d: %v: %s", uid, err, out)
		}
	}
}

// publicBinary is a copy of this test binary that every user can run.
func publicBinary(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("/dev/shm", "handoff-binary-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	path := filepath.Join(folder, "handoff.test")
	syscall.ForkLock.RLock() // a child that is forked meanwhile would keep the file open for writing: "text file busy"
	err = os.WriteFile(path, content, 0o755)
	syscall.ForkLock.RUnlock()
	if err := errors.Join(err, os.Chmod(folder, 0o755)); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestB90FallbackIsTold: memory is too small, the disk is allowed: the segment says where it lies, and the reader finds
// it there. Where the disk is not allowed it is a refusal.
func TestB90FallbackIsTold(t *testing.T) {
	t.Parallel()
	path := inTmpfs(t, "size=4m")
	if path == "" {
		return
	}
	disk := t.TempDir()
	config := handoff.NewConfig(filepath.Join(path, "spill"))
	config.DiskPath = filepath.Join(disk, "spill")
	s, err := handoff.New(config)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	a := attempt(1, 0, 1)
	d, err := s.Create(t.Context(), handoff.Spec{Attempt: a, Circuit: circuitID, Bytes: 8 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if d.Kind() != handoff.Disk {
		t.Errorf("8 MiB in a tmpfs of 4: %s", d.Kind())
	}
	fillPattern(d.Memory(), a)
	if err := errors.Join(d.Seal(t.Context()), d.Close()); err != nil {
		t.Fatal(err)
	}
	if h, kind, err := s.Lookup(a); err != nil || kind != handoff.Disk || h.State != handoff.Sealed {
		t.Errorf("look up: %s, %s, %v", h.State, kind, err)
	}
	seg := mustOpen(t, s, a)
	if seg.Kind() != handoff.Disk {
		t.Errorf("reader: %s", seg.Kind())
	}
	if err := errors.Join(checkPattern(seg.Memory(), a), seg.GiveBack()); err != nil {
		t.Error(err)
	}
	var short *handoff.Shortage
	_, err = s.Create(t.Context(), handoff.Spec{Attempt: a, Circuit: circuitID, Bytes: 8 << 20, Kind: handoff.SHM})
	if !errors.As(err, &short) || short.Kind != handoff.SHM {
		t.Errorf("in memory only: %v", err)
	}
	if _, err := s.Open(t.Context(), handoff.Want{Attempt: a, Circuit: circuitID, Kind: handoff.SHM,
		Wait: time.Millisecond}); !errors.Is(err, handoff.ErrAbsent) {
		t.Errorf("looked for in memory: %v", err)
	}
	mustWrite(t, s, attempt(1, 1, 1), 1<<20)
	if got := fmt.Sprint(files(t, path, "spill/seg")); got != "["+handoff.Name(attempt(1, 1, 1))+"]" {
		t.Errorf("what fits is not in memory: %s", got)
	}
}
