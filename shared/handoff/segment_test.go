package handoff_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/job"
)

func TestSegmentGoesFromWriterToReaderAndBackToThePool(t *testing.T) {
	t.Parallel()
	path, a := memoryFolder(t), attempt(1, 2, 3)
	s := newSpill(t, path)
	ctx := t.Context()
	const size = 300_001
	d, err := s.Create(ctx, handoff.Spec{Attempt: a, Circuit: circuitID, Bytes: size})
	if err != nil {
		t.Fatal(err)
	}
	if d.Reused() || d.Kind() != handoff.SHM || len(d.Memory()) != size ||
		d.FileBytes() != s.FileBytes(handoff.SHM, size) {
		t.Errorf("draft: reused %v, %s, %d bytes in %s", d.Reused(), d.Kind(), len(d.Memory()), d.FileBytes())
	}
	fillPattern(d.Memory(), a)
	_, err = s.Open(ctx, handoff.Want{Attempt: a, Circuit: circuitID, Wait: time.Millisecond})
	if !errors.Is(err, handoff.ErrNotSealed) || fault.KindOf(err) != fault.Transient {
		t.Fatalf("opened before the seal: %v", err)
	}
	if err := errors.Join(d.Seal(ctx), d.Seal(ctx), d.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	if d.Memory() != nil || !errors.Is(d.Seal(ctx), handoff.ErrClosed) {
		t.Error("a closed draft has memory or can be sealed")
	}
	info, err := os.Stat(filepath.Join(path, "seg", handoff.Name(a)))
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("file mode %v, %v", info.Mode(), err)
	}
	seg, err := s.Open(ctx, handoff.Want{Attempt: a, Circuit: circuitID, Bytes: size, Kind: handoff.SHM})
	if err != nil {
		t.Fatal(err)
	}
	if err := checkPattern(seg.Memory(), a); err != nil {
		t.Error(err)
	}
	h := seg.Header()
	if h.Attempt != a || h.State != handoff.Sealed || h.Writer.PID != os.Getpid() || seg.Kind() != handoff.SHM ||
		seg.Attempt() != a || seg.FileBytes() != d.FileBytes() || h.SealedAt.Before(h.CreatedAt) {
		t.Errorf("header %+v", h)
	}
	if err := errors.Join(seg.GiveBack(), seg.GiveBack(), seg.Close()); err != nil {
		t.Fatal(err)
	}
	if seg.Memory() != nil || seg.File() != nil {
		t.Error("a segment that was given back has memory")
	}
	if in, out := files(t, path, "seg"), files(t, path, "pool"); len(in) != 0 || len(out) != 1 {
		t.Errorf("after it was given back: %v, %v", in, out)
	}
	b := attempt(1, 3, 1)
	d, err = s.Create(ctx, handoff.Spec{Attempt: b, Circuit: circuitID, Bytes: size})
	if err != nil || !d.Reused() {
		t.Fatalf("second draft: %v", err)
	}
	fillPattern(d.Memory(), b)
	if err := errors.Join(d.Seal(ctx), d.Close()); err != nil {
		t.Fatal(err)
	}
	seg = mustOpen(t, s, b)
	if err := errors.Join(checkPattern(seg.Memory(), b), seg.Close()); err != nil {
		t.Error(err)
	}
	if _, err := s.Open(ctx, handoff.Want{Attempt: a, Circuit: circuitID, Wait: time.Millisecond}); !errors.Is(err,
		handoff.ErrAbsent) || fault.KindOf(err) != fault.NotFound {
		t.Errorf("the first attempt's segment: %v", err)
	}
}

func TestSegmentIsReadByAnotherProcessByNameAndByFile(t *testing.T) {
	t.Parallel()
	path, a := memoryFolder(t), attempt(1, 0, 1)
	s := newSpill(t, path)
	mustWrite(t, s, a, 5_000_000)
	seg := mustOpen(t, s, a)
	engine, out := child(t, "engine", envAttempt, a.String(), envBytes, "0")
	engine.ExtraFiles = []*os.File{seg.File()}
	if err := engine.Run(); err != nil {
		t.Fatalf("by file: %v %s", err, out)
	}
	wrong, out := child(t, "engine", envAttempt, attempt(1, 0, 2).String(), envBytes, "0")
	wrong.ExtraFiles = []*os.File{seg.File()}
	if err := wrong.Run(); err == nil {
		t.Errorf("another attempt's file was taken: %s", out)
	}
	if err := seg.Close(); err != nil {
		t.Fatal(err)
	}
	reader, out := child(t, "read", envPath, path, envAttempt, a.String(), envBytes, "5000000")
	if err := reader.Run(); err != nil {
		t.Fatalf("by name: %v %s", err, out)
	}
	if got := files(t, path, "pool"); len(got) != 1 {
		t.Errorf("the reader gave back %v", got)
	}
}

func TestNamesCannotEscapeTheFolder(t *testing.T) {
	t.Parallel()
	path := memoryFolder(t)
	s := newSpill(t, filepath.Join(path, "spill"))
	for _, a := range []job.Attempt{
		{Job: "../../escape", Partition: 0, Fence: 1},
		{Job: "", Partition: 0, Fence: 1},
		{Job: "01900000-0000-7000-8000-00000000000/", Partition: 0, Fence: 1},
		attempt(1, 0, 0), attempt(1, -1, 1), attempt(1, job.PartitionsMax, 1),
	} {
		_, createErr := s.Create(t.Context(), handoff.Spec{Attempt: a, Circuit: circuitID, Bytes: 1})
		_, openErr := s.Open(t.Context(), handoff.Want{Attempt: a, Circuit: circuitID, Wait: time.Millisecond})
		_, lendErr := s.Lend(a, handoff.SHM, 1)
		_, _, lookErr := s.Lookup(a)
		for what, err := range map[string]error{
			"create": createErr, "open": openErr, "lend": lendErr, "look up": lookErr, "reclaim": s.Reclaim(a),
		} {
			if fault.KindOf(err) != fault.Invalid {
				t.Errorf("%s %q: %v", what, a, err)
			}
		}
	}
	if entries, err := os.ReadDir(path); err != nil || len(entries) != 1 {
		t.Errorf("beside the spill folder: %v, %v", entries, err)
	}
}

func TestSpecAndConfigAreChecked(t *testing.T) {
	t.Parallel()
	path := memoryFolder(t)
	s := newSpill(t, path)
	long := make([]byte, 65)
	for name, spec := range map[string]handoff.Spec{
		"no circuit":   {Attempt: attempt(1, 0, 1), Bytes: 1},
		"long circuit": {Attempt: attempt(1, 0, 1), Circuit: string(long), Bytes: 1},
		"no bytes":     {Attempt: attempt(1, 0, 1), Circuit: "c"},
		"too big":      {Attempt: attempt(1, 0, 1), Circuit: "c", Bytes: bytesize.Max},
		"no disk":      {Attempt: attempt(1, 0, 1), Circuit: "c", Bytes: 1, Kind: handoff.Disk},
	} {
		if _, err := s.Create(t.Context(), spec); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, change := range map[string]func(*handoff.Config){
		"relative":  func(c *handoff.Config) { c.Path = "spill" },
		"disk":      func(c *handoff.Config) { c.DiskPath = "spill" },
		"same":      func(c *handoff.Config) { c.DiskPath = c.Path },
		"both shm":  func(c *handoff.Config) { c.DiskPath = memoryFolder(t) },
		"group":     func(c *handoff.Config) { c.Group = -2 },
		"wait":      func(c *handoff.Config) { c.SealWait = 0 },
		"idle":      func(c *handoff.Config) { c.PoolIdle = -1 },
		"no parent": func(c *handoff.Config) { c.Path = filepath.Join(path, "none", "spill") },
		"a file": func(c *handoff.Config) {
			c.Path = filepath.Join(path, "file")
			if err := os.WriteFile(c.Path, nil, 0o600); err != nil {
				t.Error(err)
			}
		},
		"a link": func(c *handoff.Config) {
			c.Path = filepath.Join(path, "link")
			if err := os.Symlink("/tmp", c.Path); err != nil {
				t.Error(err)
			}
		},
	} {
		config := handoff.NewConfig(path)
		change(&config)
		if s, err := handoff.New(config); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
}

func TestOneAttemptHasOneWriter(t *testing.T) {
	t.Parallel()
	s, a := newSpill(t, memoryFolder(t)), attempt(1, 0, 1)
	spec := handoff.Spec{Attempt: a, Circuit: circuitID, Bytes: 5000}
	d, err := s.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Create(t.Context(), spec); !errors.Is(err, handoff.ErrBusy) || fault.KindOf(err) != fault.Conflict {
		t.Errorf("second writer: %v", err)
	}
	if err := s.Reclaim(a); !errors.Is(err, handoff.ErrBusy) {
		t.Errorf("reclaimed under its writer: %v", err)
	}
	if err := d.GiveBack(); err != nil {
		t.Fatal(err)
	}
	d, err = s.Create(t.Context(), spec)
	if err != nil || !d.Reused() {
		t.Fatalf("after it was given back: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestManyAtOnce moves segments through writers, readers and a sweeper that never stop; every body must be the one of
// its attempt, and nothing is left at the end (invariant 9).
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	path := memoryFolder(t)
	s := newSpill(t, path, func(c *handoff.Config) { c.PoolIdle = 3 * time.Millisecond })
	ctx, stop := context.WithCancel(t.Context())
	var booked sync.Map
	swept := make(chan error, 1)
	go func() {
		var all error
		for ctx.Err() == nil {
			_, err := s.Sweep(context.WithoutCancel(ctx), func(a job.Attempt) bool { _, ok := booked.Load(a); return ok })
			all = errors.Join(all, err)
		}
		swept <- all
	}()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 60 {
				a := attempt(w+1, i, 1)
				booked.Store(a, true)
				size := int64(10_000 * (1 + i%3))
				if err := write(t.Context(), s, a, size); err != nil {
					t.Errorf("write: %v", err)
					return
				}
				seg, err := s.Open(t.Context(), handoff.Want{Attempt: a, Circuit: circuitID, Bytes: bytesize.Bytes(size)})
				if err != nil {
					t.Errorf("open: %v", err)
					return
				}
				if err := errors.Join(checkPattern(seg.Memory(), a), seg.GiveBack()); err != nil {
					t.Error(err)
				}
				booked.Delete(a)
			}
		})
	}
	wg.Wait()
	stop()
	if err := <-swept; err != nil {
		t.Error(err)
	}
	time.Sleep(3 * time.Millisecond)
	mustSweep(t, s)
	if in, out := files(t, path, "seg"), files(t, path, "pool"); len(in)+len(out) != 0 {
		t.Errorf("left over: %v, %v", in, out)
	}
}

func TestHugePagesAreReportedAndCounted(t *testing.T) {
	t.Parallel()
	path := inTmpfs(t, "size=64m,huge=always")
	if path == "" {
		return
	}
	s := newSpill(t, filepath.Join(path, "spill"))
	const huge = 2 * bytesize.MiB
	if got := s.PageBytes(handoff.SHM); got != huge {
		t.Fatalf("page size %s", got)
	}
	if got := s.FileBytes(handoff.SHM, 3*bytesize.MiB); got != 2*huge {
		t.Errorf("file for 3 MiB: %s", got)
	}
	a := attempt(1, 0, 1)
	mustWrite(t, s, a, int64(3*bytesize.MiB))
	if used := usedBytes(t, path); used < int64(2*huge) || used > int64(2*huge)+1<<20 {
		t.Errorf("%d bytes are used", used)
	}
	seg := mustOpen(t, s, a)
	if err := errors.Join(checkPattern(seg.Memory(), a), seg.GiveBack()); err != nil {
		t.Error(err)
	}
	if got := s.PageBytes(handoff.Disk); got != 0 {
		t.Errorf("page size of no folder: %s", got)
	}
}

func TestPageSizeOfSmallPages(t *testing.T) {
	t.Parallel()
	s := newSpill(t, memoryFolder(t), func(c *handoff.Config) { c.DiskPath = filepath.Join(t.TempDir(), "disk") })
	small := bytesize.Bytes(os.Getpagesize())
	if got := s.PageBytes(handoff.Disk); got != small {
		t.Errorf("disk: %s", got)
	}
	if got := s.FileBytes(handoff.Disk, 1); got != 2*small {
		t.Errorf("file for a byte: %s", got)
	}
	if kinds := s.Kinds(); len(kinds) != 2 || kinds[0] != handoff.SHM || kinds[1] != handoff.Disk {
		t.Errorf("kinds %v", kinds)
	}
}
