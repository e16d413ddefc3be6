package handoff

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/internal/groupdir"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/job"
)

// Names within a folder. Hidden names in seg are files on their way: being made, or lent to an attempt.
const (
	segFolder  = "seg"
	poolFolder = "pool"
	segSuffix  = ".seg"
	tmpSuffix  = ".tmp"
	lentSuffix = ".lent"
)

// folder is one spill folder. Files in it are reached by its open directories, never by a path.
type folder struct {
	path      string
	kind      Kind
	group     int
	pageBytes int64
	seg, pool *os.File
}

// openFolder creates what is missing and checks that segments can be made here.
func openFolder(path string, group int) (*folder, error) {
	f := &folder{path: filepath.Clean(path), group: group}
	if err := f.makeFolder(f.path); err != nil {
		return nil, err
	}
	var err error
	for _, sub := range []struct {
		name string
		dir  **os.File
	}{{segFolder, &f.seg}, {poolFolder, &f.pool}} {
		if err = f.makeFolder(filepath.Join(f.path, sub.name)); err != nil {
			break
		}
		if *sub.dir, err = openDirectory(filepath.Join(f.path, sub.name)); err != nil {
			break
		}
	}
	if err == nil {
		err = f.findOut()
	}
	if err != nil {
		return nil, errors.Join(err, f.close())
	}
	return f, nil
}

func openDirectory(path string) (*os.File, error) {
	d, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("open spill folder: %w", err)
	}
	return d, nil
}

// makeFolder creates a folder unless it exists, and refuses one that others could tamper with or that we cannot write.
func (f *folder) makeFolder(path string) error {
	if err := groupdir.Make(path, f.group); err != nil {
		return f.denied(filepath.Dir(path), err)
	}
	info, err := os.Lstat(path)
	if err != nil {
		return fault.As(fault.Invalid, fmt.Errorf("look at spill folder: %w", err))
	}
	stat := statOf(info)
	if !info.IsDir() {
		return fault.New(fault.Invalid, "spill folder %s is not a folder (mode %v)", path, info.Mode())
	}
	if !f.trusts(stat.Uid, stat.Gid) && stat.Uid != 0 || info.Mode()&0o002 != 0 && info.Mode()&os.ModeSticky == 0 {
		return fault.WithHint(fault.New(fault.Invalid,
			"spill folder %s belongs to uid %d gid %d with mode %v: others than uid %d could change what is in it",
			path, stat.Uid, stat.Gid, info.Mode(), os.Geteuid()), "give it to the service's user, or set spill.group")
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return f.denied(path, err)
	}
	return nil
}

// denied says who may not write where.
func (f *folder) denied(path string, err error) error {
	var mode fs.FileMode
	owner := "?"
	if info, statErr := os.Stat(path); statErr == nil {
		mode, owner = info.Mode(), fmt.Sprintf("uid %d gid %d", statOf(info).Uid, statOf(info).Gid)
	}
	return fault.WithHint(fault.As(fault.Invalid, fmt.Errorf(
		"spill folder %s: uid %d gid %d cannot make files in %s (mode %v, of %s): %w",
		f.path, os.Geteuid(), os.Getegid(), path, mode, owner, err)),
		"create the folder for the service's user beforehand, or mount a tmpfs of its own there")
}

// trusts tells whether files of an owner are ours: of this user, or of the group that is configured.
func (f *folder) trusts(uid, gid uint32) bool {
	return int(uid) == os.Geteuid() || f.group >= 0 && int(gid) == f.group
}

// findOut learns the kind of file system and its page size.
func (f *folder) findOut() error {
	facts, err := inventory.NewHost().Folder(f.path)
	if err != nil {
		return fmt.Errorf("look at spill folder: %w", err)
	}
	f.kind, f.pageBytes = Disk, int64(os.Getpagesize())
	if facts.Kind == "tmpfs" || facts.Kind == "hugetlbfs" {
		f.kind, f.pageBytes = SHM, min(int64(facts.PageSize), pageBytesMax)
	}
	return nil
}

func (f *folder) close() error {
	var err error
	for _, d := range []*os.File{f.seg, f.pool} {
		if d != nil {
			err = errors.Join(err, d.Close())
		}
	}
	return err
}

// fileBytes is the size of the file for a body, a multiple of the page size.
func (f *folder) fileBytes(body int64) int64 {
	return (HeaderBytes + body + f.pageBytes - 1) / f.pageBytes * f.pageBytes
}

func (f *folder) fileMode() uint32 {
	if f.group >= 0 {
		return 0o640
	}
	return 0o600
}

// space is the size of the file system and what it has left for us.
func (f *folder) space() (capacity, free bytesize.Bytes, err error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(f.seg.Fd()), &s); err != nil {
		return 0, 0, fmt.Errorf("look at file system of spill folder %s: %w", f.path, err)
	}
	return bytesize.Bytes(s.Blocks) * bytesize.Bytes(s.Bsize), bytesize.Bytes(s.Bavail) * bytesize.Bytes(s.Bsize), nil
}

// list reads the names in one of the folder's directories, at most filesMax.
func list(dir *os.File) ([]string, error) {
	again, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(dir.Fd())), os.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir.Name(), err)
	}
	defer again.Close()
	names, err := again.Readdirnames(filesMax)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("list %s: %w", dir.Name(), err)
	}
	return names, nil
}

// openAt opens a file in a directory without following links or waiting for pipes, and tells what it is.
func openAt(dir *os.File, name string, flags int) (*os.File, unix.Stat_t, error) {
	var stat unix.Stat_t
	fd, err := unix.Openat(int(dir.Fd()), name, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, stat, &fs.PathError{Op: "open", Path: filepath.Join(dir.Name(), name), Err: err}
	}
	file := os.NewFile(uintptr(fd), filepath.Join(dir.Name(), name))
	if err := unix.Fstat(fd, &stat); err != nil {
		return nil, stat, errors.Join(&fs.PathError{Op: "stat", Path: file.Name(), Err: err}, file.Close())
	}
	return file, stat, nil
}

// checkOwner refuses what is not a regular file of ours that only we and our group can read.
func (f *folder) checkOwner(stat *unix.Stat_t) error {
	switch {
	case stat.Mode&unix.S_IFMT != unix.S_IFREG:
		return refuse("not a regular file (mode %o)", stat.Mode)
	case !f.trusts(stat.Uid, stat.Gid):
		return refuse("file of uid %d gid %d, this is uid %d", stat.Uid, stat.Gid, os.Geteuid())
	case stat.Mode&0o007 != 0:
		return refuse("file that everybody can open (mode %o)", stat.Mode&0o7777)
	}
	return nil
}

// errHeld: somebody else holds a lock that is not compatible.
var errHeld = errors.New("held by another process")

// lock takes a flock without waiting.
func lock(file *os.File, how int) error {
	for {
		err := unix.Flock(int(file.Fd()), how|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return errHeld
		case err != nil:
			return &fs.PathError{Op: "flock", Path: file.Name(), Err: err}
		default:
			return nil
		}
	}
}

// release lets go of a file and closes it. The lock is dropped explicitly: between fork and exec, a child process has a
// copy of every open file, which would keep it a little longer.
func release(file *os.File) error {
	if file == nil {
		return nil
	}
	err := unix.Flock(int(file.Fd()), unix.LOCK_UN)
	return errors.Join(err, file.Close())
}

// attemptOf reads whose segment a name in the seg folder is of.
func attemptOf(name string) (job.Attempt, string, bool) {
	rest, suffix := name, ""
	switch {
	case strings.HasPrefix(name, ".") && strings.HasSuffix(name, lentSuffix):
		rest, suffix = name[1:len(name)-len(lentSuffix)], lentSuffix
	case strings.HasPrefix(name, ".") && strings.HasSuffix(name, tmpSuffix):
		parts := strings.Split(name[1:len(name)-len(tmpSuffix)], ".")
		if len(parts) != 5 {
			return job.Attempt{}, "", false
		}
		rest, suffix = strings.Join(parts[:3], "."), tmpSuffix
	case strings.HasSuffix(name, segSuffix):
		rest, suffix = strings.TrimSuffix(name, segSuffix), segSuffix
	}
	a, err := job.ParseAttempt(rest)
	return a, suffix, err == nil && suffix != ""
}

func lentName(a job.Attempt) string { return "." + a.String() + lentSuffix }
