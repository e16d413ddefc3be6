package sdr

import (
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/poseidon"
)

func TestPoseidonPathsLeadToTheirRoot(t *testing.T) {
	t.Parallel()
	// A whole 8-8-2 tree over 2·8·8 leaves, and the path of every leaf in it.
	levels := []int{8, 8, 2}
	tree := [][]fr.Element{make([]fr.Element, 128)}
	for i := range tree[0] {
		tree[0][i].MustSetRandom()
	}
	for _, arity := range levels {
		below := tree[len(tree)-1]
		above := make([]fr.Element, len(below)/arity)
		for i := range above {
			above[i] = poseidon.Hash(below[i*arity : (i+1)*arity])
		}
		tree = append(tree, above)
	}
	root := tree[len(levels)][0]
	paths := make([][]Step, len(tree[0]))
	for leaf := range paths {
		node := leaf
		for level, arity := range levels {
			first := node / arity * arity
			step := Step{Index: node % arity}
			for child := first; child < first+arity; child++ {
				if child != node {
					step.Siblings = append(step.Siblings, tree[level][child])
				}
			}
			paths[leaf] = append(paths[leaf], step)
			node /= arity
		}
		if got := Position(paths[leaf]); got != uint64(leaf) {
			t.Fatalf("position of leaf %d = %d", leaf, got)
		}
	}
	for leaf := range paths {
		if got := Root(&tree[0][leaf], paths[leaf]); !got.Equal(&root) {
			t.Errorf("root of leaf %d = %s, want %s", leaf, got.String(), root.String())
		}
	}
	other := Root(&tree[0][1], paths[0])
	if other.Equal(&root) {
		t.Error("a foreign leaf leads to the root")
	}
}

func TestDataPathLeadsToItsRoot(t *testing.T) {
	t.Parallel()
	leaves := [4][32]byte{*filled(1), *filled(2), *filled(3), *filled(4)}
	left, right := HashNodeD(&leaves[0], &leaves[1]), HashNodeD(&leaves[2], &leaves[3])
	root := HashNodeD(&left, &right)
	if root[31]&^clearTop != 0 {
		t.Errorf("root %x has its top bits set", root)
	}
	if got := RootD(leaves[2], []StepD{{Sibling: leaves[3]}, {Sibling: left, Right: true}}); got != root {
		t.Errorf("root of leaf 2 = %x, want %x", got, root)
	}
	if got := RootD(leaves[2], []StepD{{Sibling: leaves[3], Right: true}, {Sibling: left, Right: true}}); got == root {
		t.Error("a path with a wrong side leads to the root")
	}
}

func TestElementsRoundTripAndStayCanonical(t *testing.T) {
	t.Parallel()
	var largest fr.Element
	largest.SetInt64(-1)
	bytes := Bytes(&largest)
	got, err := Element(&bytes)
	if err != nil || !got.Equal(&largest) {
		t.Errorf("read of r-1 = %s, %v", got.String(), err)
	}
	bytes[0]++
	if _, err := Element(&bytes); err == nil {
		t.Error("the modulus was accepted")
	}
}
