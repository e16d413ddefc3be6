package handoff

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// poolFile is a free segment: its name tells its size and when it came, so that names sort by both.
type poolFile struct {
	name  string
	bytes int64
	since time.Time
}

func poolName(bytes int64, at time.Time) string {
	return fmt.Sprintf("%016x-%016x-%s%s", bytes, at.UnixNano(), uuid.NewString(), segSuffix)
}

func parsePoolName(name string) (poolFile, bool) {
	parts := strings.SplitN(name, "-", 3)
	if len(parts) != 3 || len(parts[0]) != 16 || len(parts[1]) != 16 || !strings.HasSuffix(name, segSuffix) {
		return poolFile{}, false
	}
	size, err1 := strconv.ParseUint(parts[0], 16, 63)
	at, err2 := strconv.ParseUint(parts[1], 16, 63)
	return poolFile{name: name, bytes: int64(size), since: time.Unix(0, int64(at))}, err1 == nil && err2 == nil
}

// free lists the pool, those that came last first.
func (f *folder) free() ([]poolFile, error) {
	names, err := list(f.pool)
	if err != nil {
		return nil, err
	}
	var files []poolFile
	for _, name := range names {
		if p, ok := parsePoolName(name); ok {
			files = append(files, p)
		}
	}
	slices.SortFunc(files, func(a, b poolFile) int { return b.since.Compare(a.since) })
	return files, nil
}

// claim opens a file that nobody holds and moves it to a hidden name in the seg folder; nil when that cannot be done
// (somebody was faster, another size, not ours). The file comes with a shared lock.
func (f *folder) claim(dir *os.File, name string, size int64, hidden string) (*os.File, error) {
	file, stat, err := openAt(dir, name, unix.O_RDWR)
	if err != nil {
		return nil, nil //nolint:nilerr // gone, or not to be opened by us: not a candidate
	}
	if f.checkOwner(&stat) != nil || stat.Size != size || f.kind == SHM && stat.Blocks*512 < size ||
		lock(file, unix.LOCK_EX) != nil {
		return nil, release(file)
	}
	if !f.same(dir, name, file) {
		return nil, release(file)
	}
	err = unix.Renameat(int(dir.Fd()), name, int(f.seg.Fd()), hidden)
	if err != nil {
		err = errors.Join(err, release(file))
		if errors.Is(err, unix.ENOENT) {
			return nil, nil
		}
		return nil, &fs.PathError{Op: "rename", Path: file.Name(), Err: err}
	}
	if lock(file, unix.LOCK_SH) != nil || !f.same(f.seg, hidden, file) { // a sweep came between
		return nil, release(file)
	}
	return file, nil
}

// same tells whether a name still leads to an open file.
func (f *folder) same(dir *os.File, name string, file *os.File) bool {
	var a, b unix.Stat_t
	return unix.Fstat(int(file.Fd()), &a) == nil &&
		unix.Fstatat(int(dir.Fd()), name, &b, unix.AT_SYMLINK_NOFOLLOW) == nil && a.Ino == b.Ino && a.Dev == b.Dev
}

// reuse finds a file for an attempt whose pages were touched before and moves it to a hidden name: what an earlier try
// of the same attempt left, what was lent to it, or a free one. It removes all else that the attempt left here. It is
// nil when there is none. ErrBusy: a process holds a segment of this attempt.
func (f *folder) reuse(a job.Attempt, size int64, hidden string) (*os.File, error) {
	names, err := list(f.seg)
	if err != nil {
		return nil, err
	}
	var found *os.File
	for _, name := range names {
		if whose, _, ok := attemptOf(name); !ok || whose != a {
			continue
		}
		if found == nil {
			if found, err = f.claim(f.seg, name, size, hidden); err != nil {
				return nil, err
			}
			if found != nil {
				continue
			}
		}
		if err := f.removeIdle(f.seg, name); errors.Is(err, errHeld) {
			return nil, errors.Join(fault.As(fault.Conflict, ErrBusy), release(found))
		} else if err != nil && !errors.Is(err, ErrRefused) { // what is not ours is replaced by the rename, or that fails
			return nil, errors.Join(err, release(found))
		}
	}
	if found != nil {
		return found, nil
	}
	files, err := f.free()
	if err != nil {
		return nil, err
	}
	for _, p := range files {
		if p.bytes != size {
			continue
		}
		if found, err = f.claim(f.pool, p.name, size, hidden); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// removeIdle unlinks a file of ours that nobody holds. errHeld: somebody does. ErrRefused: it is not ours. A file that
// is gone is no error.
func (f *folder) removeIdle(dir *os.File, name string) error {
	file, err := f.unlinkIdle(dir, name)
	if file != nil {
		release(file) //nolint:errcheck // it was only looked at
	}
	return err
}

// unlinkIdle is removeIdle, but its bytes stay until the file that it gives is released: to free gigabytes takes a
// while. There is none when there was nothing to unlink.
func (f *folder) unlinkIdle(dir *os.File, name string) (*os.File, error) {
	var stat unix.Stat_t
	if err := unix.Fstatat(int(dir.Fd()), name, &stat, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		if errors.Is(err, unix.ENOENT) {
			return nil, nil
		}
		return nil, &fs.PathError{Op: "stat", Path: dir.Name() + "/" + name, Err: err}
	}
	if err := f.checkOwner(&stat); err != nil {
		return nil, err
	}
	file, _, err := openAt(dir, name, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	err = lock(file, unix.LOCK_EX)
	if err == nil && f.same(dir, name, file) {
		if err = unlinkAt(dir, name); err == nil {
			return file, nil
		}
	}
	release(file) //nolint:errcheck // it was only looked at
	return nil, err
}

// toPool moves the file of a segment into the pool, unless its name leads to another file by now.
func (f *folder) toPool(file *os.File, name string, size int64) error {
	if !f.same(f.seg, name, file) {
		return nil
	}
	err := unix.Renameat(int(f.seg.Fd()), name, int(f.pool.Fd()), poolName(size, time.Now()))
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("give back segment %s: %w", name, err)
	}
	return nil
}

// dropOldest unlinks the free segment that came first and nobody holds, and tells whether there was one.
func (f *folder) dropOldest() (bool, error) {
	files, err := f.free()
	if err != nil {
		return false, err
	}
	for _, p := range slices.Backward(files) {
		err := f.removeIdle(f.pool, p.name)
		if err == nil {
			return true, nil
		}
		if !errors.Is(err, errHeld) && !errors.Is(err, ErrRefused) {
			return false, err
		}
	}
	return false, nil
}

// Lend sets a free segment of the right size aside for an attempt, so that it is no longer in the pool, and tells
// whether there was one. The agent's book does this while it admits the attempt; Create finds it.
func (s *Spill) Lend(a job.Attempt, kind Kind, body bytesize.Bytes) (bool, error) {
	if err := (Spec{Attempt: a, Circuit: "-", Bytes: body}).check(); err != nil {
		return false, err
	}
	folders, err := s.candidates(kind)
	if err != nil {
		return false, err
	}
	f := folders[0]
	file, err := f.reuse(a, f.fileBytes(int64(body)), lentName(a))
	if err != nil || file == nil {
		return false, err
	}
	return true, release(file)
}

// FreeBytes is what lies in the pool, by kind.
func (s *Spill) FreeBytes() (map[Kind]bytesize.Bytes, error) {
	sums := map[Kind]bytesize.Bytes{}
	for _, f := range s.folders {
		files, err := f.free()
		if err != nil {
			return nil, err
		}
		for _, p := range files {
			sums[f.kind] += bytesize.Bytes(p.bytes)
		}
	}
	return sums, nil
}

// Trim unlinks free segments, those that came first first, until the pool of a kind holds no more than keep. Their
// memory is given back when free is called, which takes a while; it must be called, an error or not.
func (s *Spill) Trim(kind Kind, keep bytesize.Bytes) (free func(), err error) {
	var unlinked []*os.File
	free = func() {
		for _, file := range unlinked {
			release(file) //nolint:errcheck // nothing was written
		}
		unlinked = nil
	}
	f := s.folder(kind)
	if f == nil {
		return free, nil
	}
	files, err := f.free()
	if err != nil {
		return free, err
	}
	var kept bytesize.Bytes
	for _, p := range files {
		if kept += bytesize.Bytes(p.bytes); kept <= keep {
			continue
		}
		kept -= bytesize.Bytes(p.bytes)
		file, err := f.unlinkIdle(f.pool, p.name)
		if err != nil && !errors.Is(err, errHeld) && !errors.Is(err, ErrRefused) {
			return free, err
		}
		if file != nil {
			unlinked = append(unlinked, file)
		}
	}
	return free, nil
}
