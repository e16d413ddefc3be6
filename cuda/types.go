package cuda

import (
	"fmt"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
)

// abi is PRCUDA_ABI of include/proofrack_cuda.h.
const abi = 1

// Version says what a library is and what it found.
type Version struct {
	Host            bool // its device code runs on the processor
	Runtime, Driver int  // 1000·major + 10·minor of the one linked in, of the newest that the driver serves; 0: none
	Architectures   string
}

// Release prints a runtime's or driver's number: 13050 is "13.5", 0 is "none".
func Release(n int) string {
	if n <= 0 {
		return "none"
	}
	return fmt.Sprintf("%d.%d", n/1000, n%1000/10)
}

// Needs says which driver a runtime needs.
func (v Version) Needs() string {
	switch {
	case v.Host || v.Runtime == 0:
		return "no driver"
	case v.Runtime >= 13000:
		return "a driver of the 580 series or newer"
	case v.Runtime >= 12000:
		return "a driver of the 525 series or newer"
	}
	return "a driver of the 450 series or newer"
}

// DeviceInfo is a device that the library can open.
type DeviceInfo struct {
	UUID            string // "GPU-…", "MIG-…", or "host" of the host-compiled library
	Name            string
	PCI             string // "0000:17:00.0", "" for unknown
	MemoryBytes     uint64
	Major, Minor    int // compute capability
	Multiprocessors int
	ClockKHz        int
}

// Options are what a device is opened with.
type Options struct {
	ArenaBytes  uint64 // device memory to take, and the most that is ever taken; 0 takes all that is free
	PinnedBytes uint64 // host memory to pin, and the most that is ever pinned
	Threads     int    // of the processor, for the host-compiled library; less than 1 means all
}

// Memory is what a device has and what of it is used, bytes.
type Memory struct {
	FreeBytes, TotalBytes            uint64 // as the driver tells
	ArenaBytes, ArenaUsed, ArenaPeak uint64
	PinnedBytes                      uint64
}

// Shape is what is the same for all proofs of a circuit.
type Shape struct {
	Rows, Inputs, Aux     int // rows without the appended input rows, inputs with ONE
	FullA, FullB, FullAux int // full elements; those of the appended input rows are not counted
	H, L, A, B            int // points of each list
}

// Plan is what a circuit takes, bytes.
type Plan struct {
	PeakBytes    uint64 // of the device's memory, with Pending proofs
	SharedBytes  uint64 // of that: as long as the parameters are loaded
	PendingBytes uint64 // of that: for each proof from its start to its finish
	PinnedBytes  uint64 // of the host's memory
	Pending      int    // proofs that may be pending at once
	Resident     bool   // the points stay on the device; else they are streamed for each proof
}

// Points are the lists of a parameter file, decoded, and which variables have points in them. The memory stays as it is
// until Params.Close.
type Points struct {
	H, L, A, B1 []bls12381.G1Affine
	B2          []bls12381.G2Affine
	AAux, BAux  []uint64 // bit i: auxiliary i has a point in A, in B1 and B2
	BInputs     []uint64 // bit i: input i has a point in B1 and B2
}

// Layout is where the parts of a segment begin, bytes from its start (docs/formats.md, "Segment").
type Layout struct {
	Inputs              int
	A0, A1, B0          int
	AFull, BFull        int
	X0, XFull           int
	RankA, RankB, RankX int
	ListA, ListB, ListX int
}

// Sums are those over the lists of a parameter file: C is over H and L.
type Sums struct {
	A, B1, C bls12381.G1Affine
	B2       bls12381.G2Affine
}

// Timings are seconds by the device's clock, and bytes moved.
type Timings struct {
	Upload, Quotient, H, L, A, B1, B2 float64
	Busy                              float64 // all of them together, overlaps counted once
	UploadedBytes, StreamedBytes      uint64  // of the segment, and of points
	PeakBytes                         uint64  // of the device's memory since the parameters were loaded
}
