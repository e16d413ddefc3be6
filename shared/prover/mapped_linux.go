package prover

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/sys/unix"
)

// mapped is memory outside the Go heap, in huge pages where the system has them: the garbage collector must not let as
// much garbage pile up as the vectors take.
type mapped struct {
	track func(bytes int64) (released, gone func())

	mu   sync.Mutex
	ends map[*fr.Element][2]func() // of vectors that are tracked, by their start
}

func newMapped(track func(bytes int64) (released, gone func())) *mapped {
	return &mapped{track: track, ends: map[*fr.Element][2]func(){}}
}

// Allocate maps n zeros.
func (m *mapped) Allocate(n int) (fr.Vector, error) {
	memory, err := unix.Mmap(-1, 0, n*fr.Bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("map %d field elements: %w", n, err)
	}
	_ = unix.Madvise(memory, unix.MADV_HUGEPAGE) // advice only: small pages serve as well
	start := (*fr.Element)(unsafe.Pointer(unsafe.SliceData(memory)))
	if m.track != nil {
		released, gone := m.track(int64(len(memory)))
		m.mu.Lock()
		m.ends[start] = [2]func(){released, gone}
		m.mu.Unlock()
	}
	return unsafe.Slice(start, n), nil
}

// Free unmaps what Allocate gave.
func (m *mapped) Free(v fr.Vector) {
	start := unsafe.SliceData(v)
	m.mu.Lock()
	ends, tracked := m.ends[start]
	delete(m.ends, start)
	m.mu.Unlock()
	if tracked {
		ends[0]()
	}
	memory := unsafe.Slice((*byte)(unsafe.Pointer(start)), len(v)*fr.Bytes)
	// Nothing can be done about a failure: the memory stays until the process ends, and is not tracked as gone.
	if unix.Munmap(memory) == nil && tracked {
		ends[1]()
	}
}
