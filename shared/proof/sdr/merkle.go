package sdr

import (
	"crypto/sha256"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/poseidon"
)

// HashNodeD is an inner node of the tree over the data: SHA-256(left ‖ right) with its two top bits cleared.
func HashNodeD(left, right *[32]byte) [32]byte {
	var message [64]byte
	copy(message[:], left[:])
	copy(message[32:], right[:])
	digest := sha256.Sum256(message[:])
	digest[31] &= clearTop
	return digest
}

// StepD is one level of a path in the tree over the data: the sibling, and whether the own node is the right child.
type StepD struct {
	Sibling [32]byte
	Right   bool
}

// RootD is the root of a path in the tree over the data, leaf side first.
func RootD(leaf [32]byte, path []StepD) [32]byte {
	for i := range path {
		if path[i].Right {
			leaf = HashNodeD(&path[i].Sibling, &leaf)
		} else {
			leaf = HashNodeD(&leaf, &path[i].Sibling)
		}
	}
	return leaf
}

// Step is one level of a path in a Poseidon tree: the siblings in child order without the own node, and its position
// among them, 0 … len(Siblings).
type Step struct {
	Siblings []fr.Element
	Index    int
}

// Arity is the number of children at this level.
func (s *Step) Arity() int { return len(s.Siblings) + 1 }

// Children writes all children in order; dst has Arity elements. It panics when the index is out of range.
func (s *Step) Children(dst []fr.Element, own *fr.Element) {
	if s.Index < 0 || s.Index > len(s.Siblings) || len(dst) != s.Arity() {
		panic(fmt.Sprintf("sdr: child %d among %d, room for %d", s.Index, s.Arity(), len(dst)))
	}
	copy(dst, s.Siblings[:s.Index])
	dst[s.Index] = *own
	copy(dst[s.Index+1:], s.Siblings[s.Index:])
}

// Position is the leaf number a path leads to: Σ index · product of the arities below (c2-formats.md 1.6).
func Position(path []Step) uint64 {
	position, weight := uint64(0), uint64(1)
	for i := range path {
		position += uint64(path[i].Index) * weight
		weight *= uint64(path[i].Arity())
	}
	return position
}

// Root is the root of one path in a tree with levels of arity 2, 4 or 8, leaf side first.
func Root(leaf *fr.Element, path []Step) fr.Element {
	node := *leaf
	var children [8]fr.Element
	for i := range path {
		inputs := children[:path[i].Arity()]
		path[i].Children(inputs, &node)
		node = poseidon.Hash(inputs)
	}
	return node
}

// CommR is the commitment to both Poseidon trees, Poseidon-2(comm_c, comm_r_last).
func CommR(commC, commRLast *fr.Element) fr.Element { return poseidon.Hash2(commC, commRLast) }
