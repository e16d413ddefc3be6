package handoff

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Draft is a segment that is being written by this process. Its methods may be called from several goroutines; its
// memory belongs to whoever synthesizes.
type Draft struct {
	spill  *Spill
	folder *folder
	header Header
	// Reused tells that the pages were touched before.
	reused bool

	mu     sync.Mutex
	file   *os.File
	data   []byte // nil once closed
	sealed bool
	buffer *flight.Buffer
}

// Create makes the segment of an attempt: from a file lent to it or free in the pool, or a new one whose space is
// allocated before anything else. What lay under its name is replaced. Errors: *Shortage (Exhausted), ErrBusy when
// another process works on the same attempt, Invalid, the context's.
func (s *Spill) Create(ctx context.Context, spec Spec) (*Draft, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	folders, err := s.candidates(spec.Kind)
	if err != nil {
		return nil, err
	}
	var shortages error
	for _, f := range folders {
		d, err := s.createIn(ctx, f, spec)
		var short *Shortage
		if errors.As(err, &short) {
			shortages = errors.Join(shortages, err)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("create segment %s: %w", spec.Attempt, err)
		}
		return d, nil
	}
	return nil, fmt.Errorf("create segment %s: %w", spec.Attempt, fault.As(fault.Exhausted, shortages))
}

func (s *Spill) createIn(ctx context.Context, f *folder, spec Spec) (_ *Draft, err error) {
	d := &Draft{spill: s, folder: f, header: Header{
		Attempt: spec.Attempt, Circuit: spec.Circuit, BodyBytes: int64(spec.Bytes), FileBytes: f.fileBytes(int64(spec.Bytes)),
		Writer: s.self, CreatedAt: time.Now(), State: Created,
	}}
	tmp := "." + spec.Attempt.String() + "." + strconv.Itoa(s.self.PID) + "." + uuid.NewString() + tmpSuffix
	if d.file, err = f.reuse(spec.Attempt, d.header.FileBytes, tmp); err != nil {
		return nil, err
	}
	d.reused = d.file != nil
	if !d.reused {
		if d.file, err = s.newFile(ctx, f, tmp, d.header.FileBytes); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, unlinkAt(f.seg, tmp), d.Close())
		}
	}()
	if err := f.setMode(d.file); err != nil {
		return nil, err
	}
	d.data, err = unix.Mmap(int(d.file.Fd()), 0, int(d.header.FileBytes), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", d.file.Name(), err)
	}
	d.buffer = s.config.Flight.Allocate(ledger.ClassAssignment, d.FileBytes(), f.kind.backing(), spec.Attempt.String())
	atomic.StoreUint64(stateWord(d.data), Created.word())
	d.header.encodeHead(d.data[:HeaderBytes])
	if err := unix.Renameat(int(f.seg.Fd()), tmp, int(f.seg.Fd()), Name(spec.Attempt)); err != nil {
		return nil, fmt.Errorf("name %s: %w", d.file.Name(), err)
	}
	return d, nil
}

// newFile makes a file with all its space under a hidden name, held by us. When space is short, free segments give way.
func (s *Spill) newFile(ctx context.Context, f *folder, tmp string, size int64) (*os.File, error) {
	file, err := f.makeFile(tmp)
	if errors.Is(err, unix.ENOSPC) {
		return nil, s.shortage(f, size)
	}
	if err != nil {
		return nil, f.denied(f.seg.Name(), err)
	}
	s.config.Points.Hit(ctx, PointAfterCreate)
	err = s.allocate(f, int(file.Fd()), size)
	if err == nil {
		s.config.Points.Hit(ctx, PointAfterSize)
		err = f.fill(ctx, int(file.Fd()), size)
	}
	if err != nil {
		return nil, errors.Join(err, unlinkAt(f.seg, tmp), release(file))
	}
	return file, nil
}

// makeTries bounds how often a sweep may come between making a file and holding it.
const makeTries = 100

// makeFile makes an empty file and holds it.
func (f *folder) makeFile(name string) (*os.File, error) {
	for range makeTries {
		fd, err := unix.Openat(int(f.seg.Fd()), name,
			unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, f.fileMode())
		if err != nil {
			return nil, err
		}
		file := os.NewFile(uintptr(fd), f.seg.Name()+"/"+name)
		if lock(file, unix.LOCK_SH) == nil && f.same(f.seg, name, file) {
			return file, nil
		}
		if err := errors.Join(unlinkAt(f.seg, name), release(file)); err != nil {
			return nil, err
		}
	}
	return nil, errHeld
}

// allocate gives a file all its space or fails with a Shortage.
func (s *Spill) allocate(f *folder, fd int, size int64) error {
	for {
		err := unix.Fallocate(fd, 0, 0, size)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.ENOMEM):
			more, poolErr := f.dropOldest()
			if poolErr != nil {
				return poolErr
			}
			if more {
				continue
			}
			if err := unix.Ftruncate(fd, 0); err != nil { // so that what was allocated in part counts as free again
				return fmt.Errorf("give back space in %s: %w", f.path, err)
			}
			return s.shortage(f, size)
		case errors.Is(err, unix.EOPNOTSUPP):
			return fault.WithHint(fault.New(fault.Invalid, "file system of %s cannot set space aside: %w", f.path, err),
				"use a tmpfs, ext4 or xfs")
		case err != nil:
			return fmt.Errorf("allocate %s in %s: %w", bytesize.Bytes(size), f.path, err)
		}
		return nil
	}
}

// fillChunk is how much is written at once: it stays in the cache.
const fillChunk = 256 << 10

// fill touches fresh small pages by writing, which is far cheaper than by mapping.
func (f *folder) fill(ctx context.Context, fd int, size int64) error {
	if f.kind != SHM || f.pageBytes > int64(os.Getpagesize()) {
		return nil
	}
	zeros := make([]byte, min(fillChunk, size))
	for at := int64(0); at < size; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := unix.Pwrite(fd, zeros[:min(int64(len(zeros)), size-at)], at)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return fmt.Errorf("fill segment in %s: %w", f.path, err)
		}
		at += int64(max(n, 0))
	}
	return nil
}

// setMode makes sure of mode and group, whatever the umask is. A file of another user of the group stays as it is.
func (f *folder) setMode(file *os.File) error {
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return fmt.Errorf("look at %s: %w", file.Name(), err)
	}
	if int(stat.Uid) != os.Geteuid() {
		return nil
	}
	if f.group >= 0 && int(stat.Gid) != f.group {
		if err := unix.Fchown(int(file.Fd()), -1, f.group); err != nil {
			return f.denied(f.seg.Name(), err)
		}
	}
	if err := unix.Fchmod(int(file.Fd()), f.fileMode()); err != nil {
		return fmt.Errorf("set mode of %s: %w", file.Name(), err)
	}
	return nil
}

// Attempt is whose segment it is.
func (d *Draft) Attempt() job.Attempt { return d.header.Attempt }

// Kind is where it lies.
func (d *Draft) Kind() Kind { return d.folder.kind }

// Reused tells whether its pages come from the pool.
func (d *Draft) Reused() bool { return d.reused }

// FileBytes is the space that it takes.
func (d *Draft) FileBytes() bytesize.Bytes { return bytesize.Bytes(d.header.FileBytes) }

// Memory is the body, page-aligned. What it holds at first is undefined. It is nil once the draft is closed.
func (d *Draft) Memory() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.data == nil {
		return nil
	}
	end := HeaderBytes + d.header.BodyBytes
	return d.data[HeaderBytes:end:end]
}

// Seal makes the segment readable; its memory must not be written after that. Sealing again does nothing.
func (d *Draft) Seal(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.data == nil {
		return fmt.Errorf("seal segment %s: %w", d.header.Attempt, ErrClosed)
	}
	if d.sealed {
		return nil
	}
	points := d.spill.config.Points
	points.Hit(ctx, PointBeforeLastByte)
	d.header.SealedAt = time.Now()
	d.header.edgeCRC = edgeSum(d.data[HeaderBytes : HeaderBytes+d.header.BodyBytes])
	d.header.encodeSeal(d.data[:HeaderBytes])
	points.Hit(ctx, PointBeforeSeal)
	atomic.StoreUint64(stateWord(d.data), Sealed.word())
	d.sealed, d.header.State = true, Sealed
	d.buffer.Seal()
	points.Hit(ctx, PointAfterSeal)
	return nil
}

// HandOver closes a sealed segment that another process has taken over: it is counted as handed over before it is
// released.
func (d *Draft) HandOver() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.data != nil {
		d.buffer.HandOver()
	}
	return d.close()
}

// Close unmaps the segment and lets go of it; the file stays for its reader. Closing again does nothing.
func (d *Draft) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.close()
}

func (d *Draft) close() error {
	var err error
	if d.data != nil {
		d.buffer.Release()
		if err = unix.Munmap(d.data); err == nil {
			d.buffer.Gone()
		}
		d.data = nil
	}
	if d.file != nil {
		err = errors.Join(err, release(d.file))
		d.file = nil
	}
	if err != nil {
		return fmt.Errorf("close segment %s: %w", d.header.Attempt, err)
	}
	return nil
}

// GiveBack puts the file into the pool, sealed or not: nobody is going to read it. Again it does nothing.
func (d *Draft) GiveBack() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.file == nil {
		return nil
	}
	atomic.StoreUint64(stateWord(d.data), Void.word())
	err := d.folder.toPool(d.file, Name(d.header.Attempt), d.header.FileBytes)
	return errors.Join(err, d.close())
}

// stateWord is where the state of a mapped segment is. The header page is aligned.
func stateWord(data []byte) *uint64 { return (*uint64)(unsafe.Pointer(&data[offState])) }

// unlinkAt removes a file if it is there.
func unlinkAt(dir *os.File, name string) error {
	if err := unix.Unlinkat(int(dir.Fd()), name, 0); err != nil && !errors.Is(err, unix.ENOENT) {
		return &fs.PathError{Op: "unlink", Path: dir.Name() + "/" + name, Err: err}
	}
	return nil
}
