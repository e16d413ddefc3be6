package sdr

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"
)

// NodeBytes is the size of one node of a sector.
const NodeBytes = 32

// DRGDegree, ExpDegree and Degree are the numbers of parents of a node: in its own layer, in the layer below, and both.
// LabelParents is how many parent labels a label hashes: the parents, repeated cyclically.
const (
	DRGDegree    = 6
	ExpDegree    = 8
	Degree       = DRGDegree + ExpDegree
	LabelParents = 37
)

// SectorSize is the number of bytes of a sector; only the constants below are valid.
type SectorSize uint64

// The published sizes, which have registered proofs and parameter files, and the ones that exist for tests only.
const (
	Size2KiB   SectorSize = 2 << 10
	Size8MiB   SectorSize = 8 << 20
	Size512MiB SectorSize = 512 << 20
	Size32GiB  SectorSize = 32 << 30
	Size64GiB  SectorSize = 64 << 30

	Size4KiB  SectorSize = 4 << 10
	Size16KiB SectorSize = 16 << 10
	Size32KiB SectorSize = 32 << 10
	Size16MiB SectorSize = 16 << 20
	Size1GiB  SectorSize = 1 << 30
)

// ErrSectorSize says that a size is none of the constants.
var ErrSectorSize = errors.New("unknown sector size")

// PublishedSizes gives the sizes that have registered proofs, in the order of the registered proofs' numbers.
func PublishedSizes() []SectorSize {
	return []SectorSize{Size2KiB, Size8MiB, Size512MiB, Size32GiB, Size64GiB}
}

// Sizes gives all valid sizes: the published ones, then the others.
func Sizes() []SectorSize {
	return append(PublishedSizes(), Size4KiB, Size16KiB, Size32KiB, Size16MiB, Size1GiB)
}

// ParseSectorSize reads a size written as String writes it, such as "32GiB".
func ParseSectorSize(text string) (SectorSize, error) {
	for _, size := range Sizes() {
		if size.String() == text {
			return size, nil
		}
	}
	return 0, fmt.Errorf("parse sector size %.20q: %w", text, ErrSectorSize)
}

// Valid reports whether the size is one of the constants.
func (s SectorSize) Valid() bool { return slices.Contains(Sizes(), s) }

// Published reports whether the size has registered proofs.
func (s SectorSize) Published() bool { return slices.Contains(PublishedSizes(), s) }

// String is the size as it stands in names: a number and its unit, such as "2KiB".
func (s SectorSize) String() string {
	switch {
	case s >= 1<<30:
		return fmt.Sprintf("%dGiB", uint64(s)>>30)
	case s >= 1<<20:
		return fmt.Sprintf("%dMiB", uint64(s)>>20)
	default:
		return fmt.Sprintf("%dKiB", uint64(s)>>10)
	}
}

// Nodes is the number of 32-byte nodes, a power of two.
func (s SectorSize) Nodes() uint64 { return uint64(s) / NodeBytes }

// LayerCount is 11 for 32 and 64 GiB, else 2.
func (s SectorSize) LayerCount() int {
	if s.large() {
		return 11
	}
	return 2
}

// Shape is the shape of trees C and R-last (c2-circuit.md 3.4).
func (s SectorSize) Shape() Shape {
	switch s {
	case Size4KiB, Size16MiB, Size1GiB:
		return Shape{Base: 8, Sub: 2}
	case Size16KiB, Size32GiB:
		return Shape{Base: 8, Sub: 8}
	case Size32KiB, Size64GiB:
		return Shape{Base: 8, Sub: 8, Top: 2}
	default:
		return Shape{Base: 8}
	}
}

// TreeDLevels is the number of levels of the binary tree over the data.
func (s SectorSize) TreeDLevels() int { return bits.TrailingZeros64(s.Nodes()) }

// TreeLevels gives the arities of the levels of trees C and R-last, leaf side first: base levels, sub level, top level.
func (s SectorSize) TreeLevels() []int { return s.Shape().Levels(s.Nodes()) }

func (s SectorSize) large() bool { return s == Size32GiB || s == Size64GiB }

// Shape is a tree shape U-V-W: the arity of the base levels, and of one sub and one top level above them, 0 if there is
// none.
type Shape struct {
	Base, Sub, Top int
}

// String is the shape as it stands in names, such as "8-8-2".
func (s Shape) String() string { return fmt.Sprintf("%d-%d-%d", s.Base, s.Sub, s.Top) }

// BaseLevels is the number of levels of base arity in a tree of that many leaves.
func (s Shape) BaseLevels(leaves uint64) int {
	leaves /= uint64(max(s.Sub, 1) * max(s.Top, 1))
	levels := 0
	for size := uint64(1); size < leaves; size *= uint64(s.Base) {
		levels++
	}
	return levels
}

// Levels gives the arity of every level of a tree of that many leaves, leaf side first.
func (s Shape) Levels(leaves uint64) []int {
	levels := slices.Repeat([]int{s.Base}, s.BaseLevels(leaves))
	for _, arity := range []int{s.Sub, s.Top} {
		if arity > 0 {
			levels = append(levels, arity)
		}
	}
	return levels
}
