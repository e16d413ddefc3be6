package handoff

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Swept is a file that a sweep removed.
type Swept struct {
	Name  string
	Kind  Kind
	Bytes bytesize.Bytes
	Why   string
}

// SweepReport is what one sweep found.
type SweepReport struct {
	Removed []Swept
	// HeldCount are files that nobody wants but some process still holds: their bytes are in use.
	HeldCount int
	HeldBytes bytesize.Bytes
	// ForeignCount are files in our folders that are not ours; they are never touched.
	ForeignCount int
}

// Sweep removes the segments of attempts that are not wanted and that no process holds, those of an earlier boot, and
// free ones that lay idle. It asks wanted about each attempt after it has listed the files, so an attempt that is
// booked before its segment is made is safe. Errors of single files do not end it; they are joined.
func (s *Spill) Sweep(ctx context.Context, wanted func(job.Attempt) bool) (SweepReport, error) {
	var report SweepReport
	var all error
	for _, f := range s.folders {
		names, err := list(f.seg)
		if err != nil {
			return report, errors.Join(all, err)
		}
		for _, name := range names {
			if err := ctx.Err(); err != nil {
				return report, errors.Join(all, err)
			}
			all = errors.Join(all, s.sweepOne(f, name, wanted, &report))
		}
		all = errors.Join(all, s.sweepPool(f, &report))
	}
	return report, all
}

func (s *Spill) sweepOne(f *folder, name string, wanted func(job.Attempt) bool, report *SweepReport) error {
	a, suffix, ok := attemptOf(name)
	if !ok {
		report.ForeignCount++
		return nil
	}
	why := "no owner"
	switch {
	case f.kind == Disk && s.otherBoot(f, name, suffix):
		why = "left by an earlier boot"
	case suffix == tmpSuffix:
		why = "left while it was made" // whoever makes one holds it
	case wanted(a):
		return nil
	}
	return f.sweepFile(f.seg, name, why, report)
}

// sweepFile removes one file and notes it.
func (f *folder) sweepFile(dir *os.File, name, why string, report *SweepReport) error {
	var stat unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return nil //nolint:nilerr // gone
	}
	size := bytesize.Bytes(stat.Blocks * 512)
	err := f.removeIdle(dir, name)
	switch {
	case errors.Is(err, errHeld):
		report.HeldCount++
		report.HeldBytes += size
	case errors.Is(err, ErrRefused):
		report.ForeignCount++
	case err != nil:
		return fmt.Errorf("sweep %s: %w", name, err)
	default:
		report.Removed = append(report.Removed, Swept{Name: name, Kind: f.kind, Bytes: size, Why: why})
	}
	return nil
}

// otherBoot tells whether a named segment was written in another boot of the host.
func (s *Spill) otherBoot(f *folder, name, suffix string) bool {
	if suffix != segSuffix {
		return false
	}
	file, stat, err := openAt(f.seg, name, unix.O_RDONLY)
	if err != nil {
		return false
	}
	defer file.Close()
	if f.checkOwner(&stat) != nil {
		return false
	}
	h, err := readHeader(file)
	return err == nil && h.Writer.Boot != s.self.Boot
}

func (s *Spill) sweepPool(f *folder, report *SweepReport) error {
	files, err := f.free()
	if err != nil {
		return err
	}
	var all error
	for _, p := range files {
		if time.Since(p.since) >= s.config.PoolIdle {
			all = errors.Join(all, f.sweepFile(f.pool, p.name, "idle", report))
		}
	}
	return all
}

// Reclaim gives back whatever an attempt has in the spill folders: finished files go to the pool, others are unlinked.
// It is called when the attempt is known to be over. ErrBusy: a process holds it, nothing of that is free.
func (s *Spill) Reclaim(a job.Attempt) error {
	if err := checkAttempt(a); err != nil {
		return err
	}
	for _, f := range s.folders {
		names, err := list(f.seg)
		if err != nil {
			return err
		}
		for _, name := range names {
			whose, suffix, ok := attemptOf(name)
			if !ok || whose != a {
				continue
			}
			err := f.reclaim(name, suffix)
			if errors.Is(err, errHeld) {
				return fault.As(fault.Conflict, fmt.Errorf("reclaim segment %s: %w", a, ErrBusy))
			}
			if err != nil && !errors.Is(err, ErrRefused) {
				return fmt.Errorf("reclaim segment %s: %w", a, err)
			}
		}
	}
	return nil
}

func (f *folder) reclaim(name, suffix string) error {
	file, stat, err := openAt(f.seg, name, unix.O_RDONLY)
	if err != nil || f.checkOwner(&stat) != nil || suffix == tmpSuffix || stat.Blocks*512 < stat.Size {
		return errors.Join(f.removeIdle(f.seg, name), release(file))
	}
	err = lock(file, unix.LOCK_EX)
	if err == nil {
		f.void(file, name)
		err = f.toPool(file, name, stat.Size)
	}
	return errors.Join(err, release(file))
}

// Lookup reads the header of an attempt's segment and tells where it lies, without waiting and without mapping.
// Errors: ErrAbsent, ErrRefused, and ErrNotSealed for a file without a header.
func (s *Spill) Lookup(a job.Attempt) (Header, Kind, error) {
	if err := checkAttempt(a); err != nil {
		return Header{}, "", err
	}
	var last error
	for _, f := range s.folders {
		file, stat, err := openAt(f.seg, Name(a), unix.O_RDONLY)
		if errors.Is(err, fs.ErrNotExist) {
			last = fault.As(fault.NotFound, ErrAbsent)
			continue
		}
		if err != nil {
			return Header{}, f.kind, refuse("%w", err)
		}
		h, err := f.lookAt(file, stat, a)
		err = errors.Join(err, file.Close())
		if err != nil {
			return Header{}, f.kind, fmt.Errorf("look at segment %s: %w", a, err)
		}
		return *h, f.kind, nil
	}
	return Header{}, "", fmt.Errorf("look at segment %s: %w", a, last)
}

func (f *folder) lookAt(file *os.File, stat unix.Stat_t, a job.Attempt) (*Header, error) {
	if err := f.checkOwner(&stat); err != nil {
		return nil, err
	}
	h, err := readHeader(file)
	if err == nil && h.Attempt != a {
		return nil, refuse("header of attempt %s", h.Attempt)
	}
	return h, err
}
