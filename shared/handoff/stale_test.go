package handoff_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sealedFile is the file of a sealed segment as this build writes it.
func sealedFile(t *testing.T, a job.Attempt, size int64) []byte {
	t.Helper()
	path := memoryFolder(t)
	mustWrite(t, newSpill(t, path), a, size)
	content, err := os.ReadFile(filepath.Join(path, "seg", handoff.Name(a)))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// resum makes the checksums of head and seal right again after a test has changed fields.
func resum(file []byte) []byte {
	le := binary.LittleEndian
	le.PutUint32(file[220:], crc32.Checksum(file[:220], castagnoli))
	sum := crc32.Update(crc32.Checksum(file[220:224], castagnoli), castagnoli, file[256:268])
	le.PutUint32(file[268:], sum)
	return file
}

func edit(file []byte, change func([]byte)) []byte {
	c := bytes.Clone(file)
	change(c)
	return c
}

// staleFile is something that lies under the next segment's name.
type staleFile struct {
	place func(t *testing.T, at string)
	// want is what opening it must be; "" is any refusal.
	want error
	// soon tells that no waiting can help, so that the refusal must come at once.
	soon bool
}

// staleFiles are F19 and F20 of the field reports and a few more.
func staleFiles(t *testing.T, a job.Attempt, size int64) map[string]staleFile {
	t.Helper()
	right := sealedFile(t, a, size)
	earlier := sealedFile(t, attempt(77, a.Partition, a.Fence), size)
	other := sealedFile(t, attempt(77, a.Partition+1, a.Fence), size)
	lower := sealedFile(t, job.Attempt{Job: a.Job, Partition: a.Partition, Fence: a.Fence - 1}, size)
	random := make([]byte, 4096)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range random {
		random[i] = byte(rng.Uint32())
	}
	le := binary.LittleEndian
	content := func(b []byte) func(*testing.T, string) {
		return func(t *testing.T, at string) {
			t.Helper()
			if err := os.WriteFile(at, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	refused := func(b []byte) staleFile { return staleFile{content(b), handoff.ErrRefused, true} }
	state := func(text string) []byte { return edit(right, func(b []byte) { copy(b[512:520], text) }) }
	target := filepath.Join(memoryFolder(t), "target")
	content(right)(t, target)
	t.Cleanup(func() {
		if left, err := os.ReadFile(target); err != nil || !bytes.Equal(left, right) {
			t.Errorf("the target of a link was changed: %v", err)
		}
	})
	return map[string]staleFile{
		"F19a header of an earlier job":  refused(earlier[:4096]),
		"F19a segment of an earlier job": refused(earlier),
		"F19a segment of a lower fence":  refused(lower),
		"F19b length of ten times the file": refused(resum(edit(right[:4096], func(b []byte) {
			le.PutUint64(b[136:], uint64(10*size))
			le.PutUint64(b[144:], uint64(10*size)+4096)
		}))),
		"F19b file cut short":          refused(right[:len(right)-4096]),
		"F19b file too long":           refused(append(bytes.Clone(right), make([]byte, 4096)...)),
		"F19c checksum of the header":  refused(edit(right, func(b []byte) { b[220] ^= 1 })),
		"F19c checksum of the seal":    refused(edit(right, func(b []byte) { b[268] ^= 1 })),
		"F19c body of another attempt": refused(append(bytes.Clone(right[:4096]), other[4096:]...)),
		"F19c start of the body":       refused(edit(right, func(b []byte) { b[4096] ^= 1 })),
		"F19d random bytes":            refused(random),
		"F19e symbolic link": {func(t *testing.T, at string) {
			t.Helper()
			if err := os.Symlink(target, at); err != nil {
				t.Fatal(err)
			}
		}, handoff.ErrRefused, true},
		"F19f another uid": {func(t *testing.T, at string) {
			t.Helper()
			content(right)(t, at)
			if err := os.Chown(at, 1001, 1001); err != nil && os.Getuid() == 0 {
				t.Fatal(err)
			} else if err != nil { // not root: a file that everybody can read is refused just the same
				content(right)(t, at)
				if err := os.Chmod(at, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}, handoff.ErrRefused, true},
		"readable by everybody": {func(t *testing.T, at string) {
			t.Helper()
			content(right)(t, at)
			if err := os.Chmod(at, 0o644); err != nil {
				t.Fatal(err)
			}
		}, handoff.ErrRefused, true},
		"F20 no bytes": {content(nil), handoff.ErrNotSealed, false},
		"F20 named pipe": {func(t *testing.T, at string) {
			t.Helper()
			if err := unix.Mkfifo(at, 0o600); err != nil {
				t.Fatal(err)
			}
		}, handoff.ErrRefused, true},
		"zeros":           {content(make([]byte, len(right))), handoff.ErrNotSealed, false},
		"half a header":   {content(right[:2048]), handoff.ErrNotSealed, false},
		"not sealed":      {content(state("created\x00")), handoff.ErrNotSealed, false},
		"given back":      {content(state("void\x00\x00\x00\x00")), handoff.ErrAbsent, false},
		"unknown state":   refused(state("SEALED!!")),
		"another version": refused(resum(edit(right, func(b []byte) { b[8]++ }))),
		"another circuit": refused(resum(edit(right, func(b []byte) { b[72]++ }))),
		"another boot":    refused(resum(edit(right, func(b []byte) { b[152] ^= 1 }))),
		"holes": {func(t *testing.T, at string) {
			t.Helper()
			content(right[:4096])(t, at)
			if err := os.Truncate(at, int64(len(right))); err != nil {
				t.Fatal(err)
			}
		}, handoff.ErrRefused, true},
	}
}

// TestB85StaleFileIsRefusedAndReplaced puts F19 and F20 in the segment's place before the job starts.
func TestB85StaleFileIsRefusedAndReplaced(t *testing.T) {
	t.Parallel()
	const size, limit = 20_000, 30 * time.Millisecond
	a := attempt(5, 4, 3)
	for name, stale := range staleFiles(t, a, size) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := memoryFolder(t)
			s := newSpill(t, path)
			stale.place(t, filepath.Join(path, "seg", handoff.Name(a)))
			want := handoff.Want{Attempt: a, Circuit: circuitID, Bytes: size, Wait: limit}
			if stale.soon {
				want.Wait = time.Minute
			}
			start := time.Now()
			seg, err := s.Open(t.Context(), want)
			if took := time.Since(start); took > 30*time.Second {
				t.Errorf("took %s", took)
			}
			if seg != nil || !errors.Is(err, stale.want) {
				t.Fatalf("opened: %v, want %v", err, stale.want)
			}
			if kind := fault.KindOf(err); errors.Is(err, handoff.ErrRefused) && kind != fault.Corrupt {
				t.Errorf("kind %s", kind)
			}
			mustWrite(t, s, a, size)
			seg, err = s.Open(t.Context(), want)
			if err != nil {
				t.Fatalf("after it was replaced: %v", err)
			}
			if err := errors.Join(checkPattern(seg.Memory(), a), seg.GiveBack()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestB85FolderInTheSegmentsPlaceIsAClearError(t *testing.T) {
	t.Parallel()
	path, a := memoryFolder(t), attempt(5, 4, 3)
	s := newSpill(t, path)
	if err := os.Mkdir(filepath.Join(path, "seg", handoff.Name(a)), 0o700); err != nil {
		t.Fatal(err)
	}
	want := handoff.Want{Attempt: a, Circuit: circuitID}
	if _, err := s.Open(t.Context(), want); !errors.Is(err, handoff.ErrRefused) {
		t.Errorf("opened: %v", err)
	}
	if err := write(t.Context(), s, a, 5000); !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EEXIST) {
		t.Errorf("written: %v", err)
	}
	if got := files(t, path, "seg"); len(got) != 1 {
		t.Errorf("left %v", got)
	}
}

// TestB86ReaderWaitsForTheSeal: the writer is held at each point (H7) while the reader is there already. The reader
// maps nothing before the seal, waits with a limit, and gets the whole body when the writer goes on.
func TestB86ReaderWaitsForTheSeal(t *testing.T) {
	t.Parallel()
	const size = 100_000
	for i, point := range []string{
		handoff.PointAfterCreate, handoff.PointAfterSize, handoff.PointBeforeLastByte, handoff.PointBeforeSeal,
	} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			path, hooks, a := memoryFolder(t), t.TempDir(), attempt(6, i, 1)
			s := newSpill(t, path)
			writer, out := child(t, "write", envPath, path, envAttempt, a.String(), envBytes, strconv.Itoa(size),
				envHook, "pause@"+point, envHooks, hooks)
			if err := writer.Start(); err != nil {
				t.Fatal(err)
			}
			waitReached(t, hooks, point+"#1")
			want := handoff.Want{Attempt: a, Circuit: circuitID, Bytes: size, Wait: 20 * time.Millisecond}
			_, err := s.Open(t.Context(), want)
			if !errors.Is(err, handoff.ErrNotSealed) && !errors.Is(err, handoff.ErrAbsent) {
				t.Errorf("opened before the seal: %v", err)
			}
			if report := mustSweep(t, s); len(report.Removed) != 0 {
				t.Errorf("a sweep took the writer's file: %+v", report)
			}
			type opened struct {
				seg *handoff.Segment
				err error
			}
			got := make(chan opened, 1)
			want.Wait = time.Minute
			go func() {
				seg, err := s.Open(t.Context(), want)
				got <- opened{seg, err}
			}()
			if err := hook.LetGo(hooks, point+"#1"); err != nil {
				t.Fatal(err)
			}
			o := <-got
			if err := writer.Wait(); err != nil || o.err != nil {
				t.Fatalf("writer: %v %s; reader: %v", err, out, o.err)
			}
			if err := errors.Join(checkPattern(o.seg.Memory(), a), o.seg.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestReaderEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := newSpill(t, memoryFolder(t))
	ctx, cancel := contextEndingSoon(t)
	defer cancel()
	_, err := s.Open(ctx, handoff.Want{Attempt: attempt(1, 0, 1), Circuit: circuitID, Wait: time.Hour})
	if fault.KindOf(err) != fault.Transient || errors.Is(err, handoff.ErrAbsent) {
		t.Errorf("ended with %v", err)
	}
}

func TestHeaderBoundsWhatItSays(t *testing.T) {
	t.Parallel()
	path, a := memoryFolder(t), attempt(9, 1, 2)
	s := newSpill(t, path)
	right := sealedFile(t, a, 5000)
	le := binary.LittleEndian
	for name, change := range map[string]func([]byte){
		"no job":          func(b []byte) { clear(b[16:52]) },
		"partition":       func(b []byte) { le.PutUint32(b[56:], job.PartitionsMax) },
		"no fence":        func(b []byte) { le.PutUint64(b[64:], 0) },
		"no circuit":      func(b []byte) { clear(b[72:136]) },
		"circuit padding": func(b []byte) { b[135] = 'x' },
		"no body":         func(b []byte) { le.PutUint64(b[136:], 0) },
		"negative body":   func(b []byte) { le.PutUint64(b[136:], 1<<63) },
		"huge body":       func(b []byte) { le.PutUint64(b[136:], 1<<50); le.PutUint64(b[144:], 1<<51) },
		"file too small":  func(b []byte) { le.PutUint64(b[144:], 4096) },
		"no boot":         func(b []byte) { clear(b[152:188]) },
		"edges":           func(b []byte) { le.PutUint32(b[216:], 1) },
		"header size":     func(b []byte) { le.PutUint32(b[12:], 8192) },
	} {
		file := resum(edit(right, change))
		if err := os.WriteFile(filepath.Join(path, "seg", handoff.Name(a)), file, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Lookup(a); !errors.Is(err, handoff.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Open(t.Context(), handoff.Want{Attempt: a, Circuit: circuitID, Bytes: bytesize.MiB}); !errors.Is(err,
		handoff.ErrRefused) {
		t.Errorf("wrong body size: %v", err)
	}
}

// TestFileWithHolesIsNotMapped: both ends are right, the middle has no memory behind it: reading it could end in SIGBUS
// when the tmpfs is full.
func TestFileWithHolesIsNotMapped(t *testing.T) {
	t.Parallel()
	const size, edge = 1_000_000, 64 << 10
	path, a := memoryFolder(t), attempt(5, 4, 3)
	s := newSpill(t, path)
	right := sealedFile(t, a, size)
	f, err := os.OpenFile(filepath.Join(path, "seg", handoff.Name(a)), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, headErr := f.WriteAt(right[:4096+edge], 0)
	_, tailErr := f.WriteAt(right[4096+size-edge:4096+size], 4096+size-edge)
	if err := errors.Join(headErr, tailErr, f.Truncate(int64(len(right))), f.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Open(t.Context(), handoff.Want{Attempt: a, Circuit: circuitID}); !errors.Is(err, handoff.ErrRefused) {
		t.Errorf("opened: %v", err)
	}
	mustWrite(t, s, a, size)
	if err := mustOpen(t, s, a).Close(); err != nil {
		t.Error(err)
	}
}
