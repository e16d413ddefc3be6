package generate

import (
	"fmt"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sys/unix"
)

// vector is a list of field elements outside the Go heap, zero at first.
type vector struct {
	elements []fr.Element
	memory   []byte
}

// newVector maps a list of n zeros.
func newVector(n int) (*vector, error) {
	if n == 0 {
		return &vector{}, nil
	}
	memory, err := unix.Mmap(-1, 0, n*fr.Bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("map %d field elements: %w", n, err)
	}
	first := (*fr.Element)(unsafe.Pointer(unsafe.SliceData(memory)))
	return &vector{elements: unsafe.Slice(first, n), memory: memory}, nil
}

// free gives the memory back; the elements must not be used any more. It may be called again, and on nil.
func (v *vector) free() {
	if v == nil || v.memory == nil {
		return
	}
	// Nothing can be done about a failure: the memory stays until the process ends.
	_ = unix.Munmap(v.memory)
	v.memory, v.elements = nil, nil
}

// freeBytes is how much an unprivileged process may still write to the file system of a folder.
func freeBytes(folder string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(folder, &s); err != nil {
		return 0, fmt.Errorf("ask free space of %s: %w", folder, err)
	}
	return int64(min(s.Bavail, 1<<62/uint64(s.Bsize))) * s.Bsize, nil
}
