package prover

import (
	"fmt"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sys/unix"
)

// mapped is memory outside the Go heap, in huge pages where the system has them: the garbage collector must not let as
// much garbage pile up as the vectors take.
type mapped struct{}

// Allocate maps n zeros.
func (mapped) Allocate(n int) (fr.Vector, error) {
	memory, err := unix.Mmap(-1, 0, n*fr.Bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("map %d field elements: %w", n, err)
	}
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE) // advice only: small pages serve as well
	return unsafe.Slice((*fr.Element)(unsafe.Pointer(unsafe.SliceData(memory))), n), nil
}

// Free unmaps what Allocate gave.
func (mapped) Free(v fr.Vector) {
	memory := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*fr.Bytes)
	// Nothing can be done about a failure: the memory stays until the process ends.
	_ = unix.Munmap(memory)
}
