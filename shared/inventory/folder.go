package inventory

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// Folder is a folder and the file system it is on.
type Folder struct {
	Path       string
	Size       bytesize.Bytes // of the file system
	Free       bytesize.Bytes // for this process
	Kind       string         // "tmpfs", "hugetlbfs", "ext4", … as mountinfo says
	MountPoint string
	Huge       string         // a tmpfs's huge pages: "always", "within_size", "advise", "never"; "" elsewhere
	PageSize   bytesize.Bytes // pages that a mapped file gets without asking
	Mode       fs.FileMode
	UID, GID   int
}

// Folder reads facts about a folder; NotFound when there is none, Invalid when it is something else.
func (h *Host) Folder(name string) (Folder, error) {
	full, err := filepath.Abs(name)
	if err == nil {
		full, err = filepath.EvalSymlinks(full)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return Folder{}, fault.As(fault.NotFound, fmt.Errorf("look at folder: %w", err))
	}
	if err != nil {
		return Folder{}, fault.As(fault.Invalid, fmt.Errorf("look at folder: %w", err))
	}
	var stat unix.Stat_t
	if err := unix.Stat(full, &stat); err != nil {
		return Folder{}, fmt.Errorf("look at folder %s: %w", full, err)
	}
	if stat.Mode&unix.S_IFMT != unix.S_IFDIR {
		return Folder{}, fault.New(fault.Invalid, "look at folder %s: it is none", full)
	}
	var system unix.Statfs_t
	if err := unix.Statfs(full, &system); err != nil {
		return Folder{}, fmt.Errorf("look at folder %s: %w", full, err)
	}
	f := Folder{
		Path: full, Size: blocks(system.Blocks, system.Frsize), Free: blocks(system.Bavail, system.Frsize),
		Mode: modeOf(stat.Mode), UID: int(stat.Uid), GID: int(stat.Gid), PageSize: bytesize.Bytes(os.Getpagesize()),
	}
	mounts, err := h.mounts()
	if err != nil && !absent(err) {
		return Folder{}, err
	}
	h.describe(&f, mounts, bytesize.Bytes(system.Bsize))
	return f, nil
}

func blocks(count uint64, size int64) bytesize.Bytes {
	if size <= 0 || count > uint64(bytesize.Max)/uint64(size) {
		return bytesize.Max
	}
	return bytesize.Bytes(count) * bytesize.Bytes(size)
}

func modeOf(mode uint32) fs.FileMode {
	m := fs.FileMode(mode & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{
		unix.S_ISVTX: fs.ModeSticky, unix.S_ISGID: fs.ModeSetgid, unix.S_ISUID: fs.ModeSetuid,
	} {
		if mode&bit != 0 {
			m |= flag
		}
	}
	return m
}

// describe adds what the mount says.
func (h *Host) describe(f *Folder, mounts []mount, block bytesize.Bytes) {
	options := ""
	for _, m := range mounts { // a later mount on the same point hides the earlier one
		within := m.point == "/" || f.Path == m.point || strings.HasPrefix(f.Path, m.point+"/")
		if within && len(m.point) >= len(f.MountPoint) {
			f.MountPoint, f.Kind, options = m.point, m.kind, m.options
		}
	}
	switch f.Kind {
	case "hugetlbfs":
		f.PageSize = block
	case "tmpfs":
		f.Huge = "never"
		for option := range strings.SplitSeq(options, ",") {
			if value, ok := strings.CutPrefix(option, "huge="); ok {
				f.Huge = value
			}
		}
		const folder = "sys/kernel/mm/transparent_hugepage/"
		if all, err := h.read(folder + "shmem_enabled"); err == nil { // two of its values overrule every mount
			switch {
			case strings.Contains(all, "[force]"):
				f.Huge = "always"
			case strings.Contains(all, "[deny]"):
				f.Huge = "never"
			}
		}
		if f.Huge == "always" || f.Huge == "within_size" {
			if text, err := h.read(folder + "hpage_pmd_size"); err == nil {
				if n, err := strconv.ParseUint(text, 10, 32); err == nil && n > 0 {
					f.PageSize = bytesize.Bytes(n)
				}
			}
		}
	}
}

// Check tells whether this process can keep witness data in the folder: it can create files, and no stranger can
// replace them. The error names path, mode, owner and this process's user.
func (f Folder) Check() error {
	facts := fmt.Sprintf("folder %s: mode %04o, owner %d:%d, this process is uid %d gid %d",
		f.Path, octal(f.Mode), f.UID, f.GID, os.Geteuid(), os.Getegid())
	if err := unix.Faccessat(unix.AT_FDCWD, f.Path, unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return fault.WithHint(fault.New(fault.Invalid, "%s and cannot create files in it: %w", facts, err),
			fmt.Sprintf("give it to the program: install -d -m 0700 -o %d -g %d %s", os.Geteuid(), os.Getegid(), f.Path))
	}
	if f.Mode&0o002 != 0 && f.Mode&fs.ModeSticky == 0 {
		return fault.WithHint(fault.New(fault.Invalid, "%s: everybody can replace files in it", facts),
			fmt.Sprintf("chmod o-w %s, or name a folder of the program's own", f.Path))
	}
	return nil
}

func octal(m fs.FileMode) uint32 {
	bits := uint32(m.Perm())
	if m&fs.ModeSticky != 0 {
		bits |= 0o1000
	}
	if m&fs.ModeSetgid != 0 {
		bits |= 0o2000
	}
	if m&fs.ModeSetuid != 0 {
		bits |= 0o4000
	}
	return bits
}
