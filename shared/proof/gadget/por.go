package gadget

import (
	"fmt"
	"math/bits"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// NodeHash hashes the children of a tree node in the circuit.
type NodeHash func(s *r1cs.System, children []r1cs.Num) r1cs.Num

// SHA256Node is the node hash of tree D: SHA-256 of two children, two top bits dropped (spec c2-circuit.md 3.3).
func SHA256Node(s *r1cs.System, children []r1cs.Num) r1cs.Num {
	var message []r1cs.Bits
	for _, child := range children {
		message = append(message, MessageWords(s.NumBits(child))...)
	}
	return PackLimbs(s, DigestLimbs(SHA256(s, message)))
}

// PathElement is one level of an inclusion path: the siblings in child order, the own child left out, and its place.
type PathElement struct {
	Siblings []fr.Element
	Index    int
}

// Inclusion walks a path from leaf to root and enforces that it ends there; the leaf's index becomes a public input
// (spec c2-circuit.md 3.5). The path has base levels first, then the sub level, then the top level. The root is called
// for after the path; a Val root of the spec allocates itself there.
func Inclusion(s *r1cs.System, leaf r1cs.Num, path []PathElement, hash NodeHash, root func() r1cs.Num) {
	current := leaf
	index := r1cs.ConstBits(0, 0)
	for _, level := range path {
		arity := len(level.Siblings) + 1
		n := bits.Len(uint(arity)) - 1
		if level.Index < 0 || level.Index >= arity {
			panic(fmt.Sprintf("gadget: child %d of %d", level.Index, arity))
		}
		own := s.AllocBits(n, uint64(level.Index))
		index = index.Concat(own)
		siblings := make([]r1cs.Num, len(level.Siblings))
		for j, v := range level.Siblings {
			siblings[j] = s.Alloc(v)
		}
		current = hash(s, Insert(s, current, own, siblings))
	}
	PackIntoInput(s, index)
	s.Equal(current, root())
}
