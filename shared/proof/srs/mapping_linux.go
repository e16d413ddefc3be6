package srs

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapFile maps a whole file, read-only and shared.
func mapFile(f *os.File, size int64) ([]byte, error) {
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", f.Name(), err)
	}
	return data, nil
}

// Expect tells the kernel that the points from..to-1 will be read soon, in order. It is a hint: errors are of no
// consequence.
func (s Section) Expect(from, to int) {
	if !s.decoded { // an image is in memory
		advise(s.Points(from, to), unix.MADV_WILLNEED)
	}
}

// Release gives back the pages that lie wholly in the points from..to-1, so that they no longer count as resident.
// Reading them again maps them again. An image is not given back before it is closed.
func (s Section) Release(from, to int) {
	if !s.decoded {
		advise(s.Points(from, to), unix.MADV_DONTNEED)
	}
}

// advise applies to the whole pages inside b: a page shared with a neighbour is left alone.
func advise(b []byte, advice int) {
	page := uintptr(os.Getpagesize())
	if len(b) == 0 {
		return
	}
	start := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	skip := int((page - start%page) % page)
	if skip >= len(b) {
		return
	}
	whole := (len(b) - skip) &^ int(page-1)
	if whole > 0 {
		// The pages belong to a file mapping: a failure leaves them as they are.
		_ = unix.Madvise(b[skip:skip+whole], advice)
	}
}

// errIdentity says that the system gave no inode for a file.
var errIdentity = errors.New("no inode information")

// identityOf tells one state of a file from every other.
func identityOf(path string, info os.FileInfo) (identity, error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, fmt.Errorf("identify %s: %w", path, errIdentity)
	}
	return identity{
		Path: path, Device: stat.Dev, Inode: stat.Ino, Bytes: info.Size(),
		ModifiedNanos: stat.Mtim.Nano(), ChangedNanos: stat.Ctim.Nano(),
	}, nil
}
