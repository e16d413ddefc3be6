package sparse

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/poseidon"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/seal"
)

// source gives pseudo-random values that are canonical field elements with clear top bits, as labels and data are.
type source [32]byte

// value is the value at a place of one of the sector's tables.
func (s *source) value(table string, row, index uint64) [32]byte {
	message := make([]byte, 0, 96)
	message = append(message, s[:]...)
	message = binary.BigEndian.AppendUint64(message, row)
	message = binary.BigEndian.AppendUint64(message, index)
	digest := sha256.Sum256(append(message, table...))
	digest[31] &= 0x3f
	return digest
}

// nodeTree is tree C or R-last with a few known leaves. A node is known when a known leaf lies under it; it is then the
// hash of its children. Every other node is pseudo-random.
type nodeTree struct {
	size   sdr.SectorSize
	name   string
	random *source
	// known holds the known nodes per level, leaves first.
	known []map[uint64]fr.Element
}

func newNodeTree(size sdr.SectorSize, name string, random *source, leaves map[uint64]fr.Element) *nodeTree {
	t := &nodeTree{size: size, name: name, random: random, known: []map[uint64]fr.Element{leaves}}
	for level, arity := range size.TreeLevels() {
		parents := map[uint64]struct{}{}
		for index := range t.known[level] {
			parents[index/uint64(arity)] = struct{}{}
		}
		indices := slices.Sorted(maps.Keys(parents))
		children := make([]fr.Element, 0, len(indices)*arity)
		for _, index := range indices {
			for child := range uint64(arity) {
				children = append(children, t.node(level, index*uint64(arity)+child))
			}
		}
		hashes := make([]fr.Element, len(indices))
		poseidon.HashMany(hashes, children, arity)
		above := make(map[uint64]fr.Element, len(indices))
		for i, index := range indices {
			above[index] = hashes[i]
		}
		t.known = append(t.known, above)
	}
	return t
}

// node is any node of the tree.
func (t *nodeTree) node(level int, index uint64) fr.Element {
	if node, known := t.known[level][index]; known {
		return node
	}
	value := t.random.value(t.name, uint64(level), index)
	return element(&value)
}

func (t *nodeTree) root() fr.Element { return t.known[len(t.known)-1][0] }

func (t *nodeTree) proof(leaf uint64) c1.MerkleProof {
	return seal.NodeProof(t.size, leaf, func(level int, index uint64) [32]byte {
		node := t.node(level, index)
		return sdr.Bytes(&node)
	})
}

// periodNodes is the period of the data: long enough for neighbouring paths to differ.
const periodNodes = 1024

// dataTree is tree D over periodic data: every level repeats with the period that is left, and above the period all
// nodes of a level are equal. Only one period of each level is kept, leaves first.
type dataTree [][][32]byte

func newDataTree(size sdr.SectorSize, random *source) dataTree {
	leaves := make([][32]byte, min(size.Nodes(), periodNodes))
	for i := range leaves {
		leaves[i] = random.value("data", 0, uint64(i))
	}
	tree := dataTree{leaves}
	for range size.TreeDLevels() {
		below := tree[len(tree)-1]
		above := make([][32]byte, max(len(below)/2, 1))
		for i := range above {
			above[i] = sdr.HashNodeD(&below[2*i%len(below)], &below[(2*i+1)%len(below)])
		}
		tree = append(tree, above)
	}
	return tree
}

func (t dataTree) node(level int, index uint64) [32]byte {
	return t[level][index%uint64(len(t[level]))]
}

func (t dataTree) root() [32]byte { return t[len(t)-1][0] }

func (t dataTree) proof(leaf uint64) c1.MerkleProof {
	proof := c1.MerkleProof{Root: t.root(), Leaf: t.node(0, leaf)}
	for level := range len(t) - 1 {
		proof.Base = append(proof.Base, c1.PathElement{Hashes: [][32]byte{t.node(level, leaf^1)}, Index: leaf & 1})
		leaf /= 2
	}
	return proof
}
