package c1

import (
	"errors"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// ErrSlice is what every refusal of DecodeSlice wraps.
var ErrSlice = errors.New("invalid slice")

// ErrPartition says that a sector has no partition with that index.
var ErrPartition = errors.New("no such partition")

// Slice is one partition's part of a checked C1 output: everything that its circuit needs (c2-circuit.md 4.4).
type Slice struct {
	// Size is the sector size, Partition the index of the partition within the sector.
	Size      sdr.SectorSize
	Partition int

	ReplicaID, CommD, CommR, CommRLast, CommC fr.Element

	// Challenges has ChallengesPerPartition entries.
	Challenges []SliceChallenge
}

// SliceChallenge is what one challenge's part of the circuit needs. Paths run from the leaf to the root; base, sub and
// top elements follow each other.
type SliceChallenge struct {
	// Challenge is the challenged node, 1 … nodes − 1.
	Challenge uint64
	// DataLeaf is the node of the data, DataPath its path in tree D.
	DataLeaf fr.Element
	DataPath []sdr.Step
	// Parents are the 6 DRG and the 8 expander parents' columns in graph order.
	Parents [sdr.Degree]SliceColumn
	// RLastPath and CPath are the challenged node's paths in trees R-last and C.
	RLastPath, CPath []sdr.Step
}

// SliceColumn is one parent's column: its number, its labels, layer 1 first, and its path in tree C.
type SliceColumn struct {
	Node uint64
	Rows []fr.Element
	Path []sdr.Step
}

// CircuitID is the name of the circuit that a sector size is proved with, as it stands in slices.
func CircuitID(size sdr.SectorSize) string { return "porep-" + size.String() }

// Layout of a slice, in bytes; docs/formats.md describes it.
const (
	sliceMagic        = "PRSLICE\x00"
	sliceVersion      = 1
	circuitIDBytes    = 32
	sliceHeaderBytes  = len(sliceMagic) + 4 + circuitIDBytes + 4*4
	sliceSharedValues = 5
	sliceDigestBytes  = 32
)

// sliceLayout is what a slice's length follows from.
type sliceLayout struct {
	shape
	// siblings is the number of siblings of a path in tree C or R-last.
	siblings int
}

func layoutOf(size sdr.SectorSize) sliceLayout {
	l := sliceLayout{shape: shapeOf(size)}
	for _, arity := range size.TreeLevels() {
		l.siblings += arity - 1
	}
	return l
}

// challengeValues is the number of 32-byte values of one challenge.
func (l sliceLayout) challengeValues() int {
	return 1 + l.dataPath + sdr.Degree*(l.layers+l.siblings) + 2*l.siblings
}

// bytes is the length of a whole slice.
func (l sliceLayout) bytes() int {
	perChallenge := 8 + 4*sdr.Degree + 32*l.challengeValues()
	return sliceHeaderBytes + 32*sliceSharedValues + l.challenges*perChallenge + sliceDigestBytes
}

func sliceError(format string, args ...any) error {
	return fmt.Errorf("decode slice: %s: %w", fmt.Sprintf(format, args...), ErrSlice)
}
