package seal

import (
	"context"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/poseidon"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// dataTree is tree D: levels of SHA-256 nodes, leaves first.
type dataTree [][][32]byte

func newDataTree(ctx context.Context, m *meter, leaves [][32]byte) (dataTree, error) {
	tree := dataTree{leaves}
	for below := leaves; len(below) > 1; below = tree[len(tree)-1] {
		above := make([][32]byte, len(below)/2)
		err := inChunks(ctx, m, len(above), 1, func(from, to int) {
			for i := from; i < to; i++ {
				above[i] = sdr.HashNodeD(&below[2*i], &below[2*i+1])
			}
		})
		if err != nil {
			return nil, err
		}
		tree = append(tree, above)
	}
	return tree, nil
}

func (t dataTree) root() [32]byte { return t[len(t)-1][0] }

func (t dataTree) proof(leaf uint64) c1.MerkleProof {
	proof := c1.MerkleProof{Root: t.root(), Leaf: t[0][leaf]}
	for _, level := range t[:len(t)-1] {
		proof.Base = append(proof.Base, c1.PathElement{Hashes: [][32]byte{level[leaf^1]}, Index: leaf & 1})
		leaf /= 2
	}
	return proof
}

// nodeTree is tree C or R-last: levels of Poseidon nodes, leaves first.
type nodeTree struct {
	size   sdr.SectorSize
	levels [][]fr.Element
}

func newNodeTree(ctx context.Context, m *meter, size sdr.SectorSize, leaves []fr.Element) (*nodeTree, error) {
	tree := &nodeTree{size: size, levels: [][]fr.Element{leaves}}
	for level, arity := range size.TreeLevels() {
		below := tree.levels[level]
		above := make([]fr.Element, len(below)/arity)
		// The steps of a level are counted with the leaves, by the leaf level alone.
		steps := 0
		if level == 0 {
			steps = arity
		}
		err := inChunks(ctx, m, len(above), steps, func(from, to int) {
			poseidon.HashMany(above[from:to], below[from*arity:to*arity], arity)
		})
		if err != nil {
			return nil, err
		}
		tree.levels = append(tree.levels, above)
	}
	return tree, nil
}

func (t *nodeTree) root() *fr.Element { return &t.levels[len(t.levels)-1][0] }

func (t *nodeTree) proof(leaf uint64) c1.MerkleProof {
	return NodeProof(t.size, leaf, func(level int, index uint64) [32]byte { return sdr.Bytes(&t.levels[level][index]) })
}

// NodeProof assembles the path of a leaf in tree C or R-last of a sector size. node gives the node at a level, leaves
// being level 0; it is asked for the leaf, its siblings on the way up, and the root.
func NodeProof(size sdr.SectorSize, leaf uint64, node func(level int, index uint64) [32]byte) c1.MerkleProof {
	proof := c1.MerkleProof{Leaf: node(0, leaf)}
	levels, shape := size.TreeLevels(), size.Shape()
	elements := make([]c1.PathElement, len(levels))
	index := leaf
	for level, arity := range levels {
		own := index % uint64(arity)
		first := index - own
		element := c1.PathElement{Index: own, Hashes: make([][32]byte, 0, arity-1)}
		for child := range uint64(arity) {
			if child != own {
				element.Hashes = append(element.Hashes, node(level, first+child))
			}
		}
		elements[level] = element
		index /= uint64(arity)
	}
	if index != 0 {
		panic(fmt.Sprintf("seal: leaf %d of a tree with %d leaves", leaf, size.Nodes()))
	}
	proof.Root = node(len(levels), 0)
	base := shape.BaseLevels(size.Nodes())
	proof.Base, elements = elements[:base], elements[base:]
	if shape.Sub > 0 {
		proof.Sub, elements = elements[:1], elements[1:]
	}
	if shape.Top > 0 {
		proof.Top = elements[:1]
	}
	return proof
}
