package handoff

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Segment is a sealed segment, mapped read-only. Its memory may be read from several goroutines until it is closed.
type Segment struct {
	folder *folder // nil when it came by a file descriptor
	header Header

	mu     sync.Mutex
	file   *os.File
	data   []byte
	buffer *flight.Buffer
	// passed tells that somebody else may have a copy of the file.
	passed bool
}

// How often a reader looks whether a segment is sealed.
const (
	pollMin = 200 * time.Microsecond
	pollMax = 10 * time.Millisecond
)

// Open maps the sealed segment of an attempt, waiting for the seal up to the limit. Errors: ErrAbsent, ErrNotSealed,
// ErrRefused (see there for their kinds), the context's.
func (s *Spill) Open(ctx context.Context, want Want) (*Segment, error) {
	seg, err := s.open(ctx, want)
	if err != nil {
		return nil, fmt.Errorf("open segment %s: %w", want.Attempt, err)
	}
	return seg, nil
}

func (s *Spill) open(ctx context.Context, want Want) (*Segment, error) {
	if err := checkAttempt(want.Attempt); err != nil {
		return nil, err
	}
	folders, err := s.candidates(want.Kind)
	if err != nil {
		return nil, err
	}
	limit := want.Wait
	if limit == 0 {
		limit = s.config.SealWait
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for pause := pollMin; ; pause = min(2*pause, pollMax) {
		seg, err := s.tryOpen(ctx, folders, want)
		if err == nil || !errors.Is(err, ErrAbsent) && !errors.Is(err, ErrNotSealed) {
			return seg, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-timer.C:
			return nil, err
		case <-time.After(pause):
		}
	}
}

// tryOpen looks once in each folder.
func (s *Spill) tryOpen(ctx context.Context, folders []*folder, want Want) (*Segment, error) {
	var last error
	for _, f := range folders {
		file, err := f.find(want)
		if err == nil {
			seg, err := s.openFile(ctx, f, file, want)
			if err != nil {
				return nil, errors.Join(err, release(file))
			}
			return seg, nil
		}
		if !errors.Is(err, ErrAbsent) {
			return nil, err
		}
		last = err
	}
	return nil, last
}

// find opens the file that has the segment's name and holds it. It refuses what is not a regular file of ours.
func (f *folder) find(want Want) (*os.File, error) {
	file, stat, err := openAt(f.seg, Name(want.Attempt), unix.O_RDONLY)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fault.As(fault.NotFound, ErrAbsent)
	case errors.Is(err, unix.ELOOP):
		return nil, refuse("symbolic link")
	case errors.Is(err, unix.ENXIO):
		return nil, refuse("not a regular file: %w", err)
	case errors.Is(err, fs.ErrPermission):
		return nil, refuse("uid %d gid %d cannot read it: %w", os.Geteuid(), os.Getegid(), err)
	case err != nil:
		return nil, err
	}
	if err := f.checkOwner(&stat); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if err := lock(file, unix.LOCK_SH); err != nil { // a sweep looks at it right now
		return nil, errors.Join(fault.As(fault.Transient, ErrNotSealed), file.Close())
	}
	if !f.same(f.seg, Name(want.Attempt), file) {
		return nil, errors.Join(fault.As(fault.NotFound, ErrAbsent), release(file))
	}
	return file, nil
}

// openFile checks all that a header can tell and maps the segment. The segment owns the file only when err is nil.
func (s *Spill) openFile(ctx context.Context, f *folder, file *os.File, want Want) (*Segment, error) {
	h, err := readSealed(file, want, s.self.Boot)
	if err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return nil, fmt.Errorf("look at %s: %w", file.Name(), err)
	}
	if f.kind == SHM && stat.Blocks*512 < h.FileBytes {
		return nil, refuse("%d of %d bytes are allocated", stat.Blocks*512, h.FileBytes)
	}
	s.config.Points.Hit(ctx, PointBeforeMap)
	seg, err := mapSealed(file, h)
	if err != nil {
		return nil, err
	}
	seg.folder = f
	seg.count(s.config.Flight, f.kind.backing())
	s.config.Points.Hit(ctx, PointAfterMap)
	return seg, nil
}

// FromFile maps a segment that another process passed as an open file, after the same checks of length, header and
// seal. It does not wait. The segment owns the file from then on, also when it is refused.
func FromFile(file *os.File, want Want) (*Segment, error) {
	seg, err := fromFile(file, want)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map segment %s: %w", want.Attempt, err), file.Close())
	}
	return seg, nil
}

func fromFile(file *os.File, want Want) (*Segment, error) {
	boot, err := inventory.NewHost().BootID()
	if err != nil {
		return nil, err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, refuse("not a regular file (mode %o): %v", stat.Mode, err)
	}
	h, err := readSealed(file, want, boot)
	if err != nil {
		return nil, err
	}
	seg, err := mapSealed(file, h)
	if err != nil {
		return nil, err
	}
	seg.passed = true
	backing := flight.File
	var fs unix.Statfs_t
	if unix.Fstatfs(int(file.Fd()), &fs) == nil && fs.Type == unix.TMPFS_MAGIC {
		backing = flight.Shared
	}
	seg.count(want.Flight, backing)
	return seg, nil
}

// count has the segment counted from now to its end.
func (s *Segment) count(r *flight.Recorder, backing flight.Backing) {
	s.buffer = r.Map(ledger.ClassAssignment, s.FileBytes(), backing, s.header.Attempt.String())
}

// readSealed reads and checks the header of a sealed segment, and that the file is as long as the header says.
func readSealed(file *os.File, want Want, boot string) (*Header, error) {
	h, err := readHeader(file)
	if err != nil {
		return nil, err
	}
	if err := h.check(want, boot); err != nil {
		return nil, err
	}
	switch h.State {
	case Created:
		return nil, fault.As(fault.Transient, ErrNotSealed)
	case Void:
		return nil, fault.As(fault.NotFound, fmt.Errorf("%w: it was given back", ErrAbsent))
	case Sealed:
	}
	// What was read before the seal may be older than the seal: read it again.
	if h, err = readHeader(file); err != nil {
		return nil, err
	}
	if err := h.check(want, boot); err != nil {
		return nil, err
	}
	if h.State != Sealed {
		return nil, fault.As(fault.NotFound, fmt.Errorf("%w: it was given back", ErrAbsent))
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil {
		return nil, fmt.Errorf("look at %s: %w", file.Name(), err)
	}
	if stat.Size != h.FileBytes {
		return nil, refuse("file of %d bytes, its header says %d", stat.Size, h.FileBytes)
	}
	return h, nil
}

// readHeader reads a header page. A file without one yet is not sealed.
func readHeader(file *os.File) (*Header, error) {
	page := make([]byte, HeaderBytes)
	n, err := file.ReadAt(page, 0)
	if n < HeaderBytes || bytes.Equal(page[:offState], make([]byte, offState)) {
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read header of %s: %w", file.Name(), err)
		}
		return nil, fault.As(fault.Transient, fmt.Errorf("%w: it has no header yet", ErrNotSealed))
	}
	return decodeHeader(page)
}

// check compares a header with what is wanted.
func (h *Header) check(want Want, boot string) error {
	switch {
	case h.Attempt != want.Attempt:
		return refuse("header of attempt %s", h.Attempt)
	case h.Circuit != want.Circuit:
		return refuse("header of circuit %q, wanted %q", h.Circuit, want.Circuit)
	case h.Writer.Boot != boot:
		return refuse("written in boot %q, this is %q", h.Writer.Boot, boot)
	case want.Bytes != 0 && h.BodyBytes != int64(want.Bytes):
		return refuse("body of %d bytes, wanted %d", h.BodyBytes, int64(want.Bytes))
	}
	return nil
}

// mapSealed maps a checked file and compares the checksum of the body's ends.
func mapSealed(file *os.File, h *Header) (*Segment, error) {
	data, err := unix.Mmap(int(file.Fd()), 0, int(h.FileBytes), unix.PROT_READ, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", file.Name(), err)
	}
	if sum := edgeSum(data[HeaderBytes : HeaderBytes+h.BodyBytes]); sum != h.edgeCRC {
		return nil, errors.Join(refuse("checksum of the body's ends %08x, expected %08x", sum, h.edgeCRC), unix.Munmap(data))
	}
	return &Segment{header: *h, file: file, data: data}, nil
}

// Header is what the header page said when the segment was opened.
func (s *Segment) Header() Header { return s.header }

// Attempt is whose segment it is.
func (s *Segment) Attempt() job.Attempt { return s.header.Attempt }

// Kind is where it lies; "" when it came by a file descriptor.
func (s *Segment) Kind() Kind {
	if s.folder == nil {
		return ""
	}
	return s.folder.kind
}

// FileBytes is the space that it takes.
func (s *Segment) FileBytes() bytesize.Bytes { return bytesize.Bytes(s.header.FileBytes) }

// Memory is the body, page-aligned and read-only: a store into it ends the process. It is nil once the segment is
// closed.
func (s *Segment) Memory() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.data == nil {
		return nil
	}
	end := HeaderBytes + s.header.BodyBytes
	return s.data[HeaderBytes:end:end]
}

// OnDevice has the segment counted as one that the device has what it needs of; once.
func (s *Segment) OnDevice() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.data != nil {
		s.buffer.OnDevice()
	}
}

// File is the open file, to be passed to another process, which then holds the segment as well; nil once closed.
func (s *Segment) File() *os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.passed = true
	return s.file
}

// Close unmaps the segment and lets go of it; the file stays, sealed. Closing again does nothing.
func (s *Segment) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.close()
}

func (s *Segment) close() error {
	var err error
	if s.data != nil {
		s.buffer.Release()
		if err = unix.Munmap(s.data); err == nil {
			s.buffer.Gone()
		}
		s.data = nil
	}
	if s.file != nil {
		if s.passed { // the lock is the other process's, too
			err = errors.Join(err, s.file.Close())
		} else {
			err = errors.Join(err, release(s.file))
		}
		s.file = nil
	}
	if err != nil {
		return fmt.Errorf("close segment %s: %w", s.header.Attempt, err)
	}
	return nil
}

// GiveBack voids the segment and puts its file into the pool. It is lent again when every process that holds it has let
// go. Again it does nothing. A segment that came by a file descriptor is only closed: its owner gives it back.
func (s *Segment) GiveBack() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil || s.folder == nil {
		return s.close()
	}
	name := Name(s.header.Attempt)
	s.folder.void(s.file, name)
	err := s.folder.toPool(s.file, name, s.header.FileBytes)
	return errors.Join(err, s.close())
}

// void marks a segment's file void if its name still leads to it and we may write it. (A file of another user of the
// group can only be renamed; out of its folder it is not found any more.)
func (f *folder) void(file *os.File, name string) {
	if !f.same(f.seg, name, file) {
		return
	}
	w, _, err := openAt(f.seg, name, unix.O_WRONLY)
	if err != nil {
		return
	}
	defer w.Close()
	if f.same(f.seg, name, w) {
		_, _ = w.WriteAt(Void.bytes(), offState)
	}
}
