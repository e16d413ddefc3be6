package sdr

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"

	"golang.org/x/crypto/blake2b"
)

const (
	drgDomain     = "Filecoin_DRSample"
	feistelDomain = "Filecoin_Feistel"
	drgSeedBytes  = 28
	feistelRounds = 3
)

// Graph gives the parents of every node of a sector's layers (c2-circuit.md 5.4, 5.5). It is immutable and may be used
// by several goroutines.
type Graph struct {
	nodes   uint64
	version APIVersion
	drgSeed [drgSeedBytes]byte
	// keys are those of the Feistel rounds; half is the number of bits of each half of a permuted number.
	keys [feistelRounds]uint64
	half uint
	// rounds holds the whole round function per key when tabulated, else nil.
	rounds [feistelRounds][]uint64
}

// Parents are the parents of one node: DRGDegree nodes of its own layer, then ExpDegree nodes of the layer below.
type Parents [Degree]uint32

// DRG gives the parents in the same layer.
func (p *Parents) DRG() []uint32 { return p[:DRGDegree] }

// Exp gives the parents in the layer below.
func (p *Parents) Exp() []uint32 { return p[DRGDegree:] }

// NewGraph gives the graph over that many nodes, from 2 to 2^32.
func NewGraph(nodes uint64, version APIVersion, porepID *[32]byte) *Graph {
	if nodes < 2 || nodes > 1<<32 {
		panic(fmt.Sprintf("sdr: graph of %d nodes", nodes))
	}
	g := &Graph{nodes: nodes, version: version, half: 1}
	digest := sha256.Sum256(append([]byte(drgDomain), porepID[:]...))
	copy(g.drgSeed[:], digest[:])
	digest = sha256.Sum256(append([]byte(feistelDomain), porepID[:]...))
	for i := range g.keys {
		g.keys[i] = binary.LittleEndian.Uint64(digest[8*i:])
	}
	for uint64(1)<<(2*g.half) < g.expandedNodes() {
		g.half++
	}
	return g
}

// Graph is the graph of a sector of this configuration.
func (c Config) Graph() *Graph { return NewGraph(c.Size.Nodes(), c.Version, &c.PoRepID) }

// Tabulated is the same graph with its round function computed in advance: 3·2^half values, 48 KiB at 8 MiB. It pays
// when most nodes' parents are wanted.
func (g *Graph) Tabulated() *Graph {
	tabulated := *g
	for i, key := range g.keys {
		tabulated.rounds[i] = make([]uint64, g.mask()+1)
		for right := range tabulated.rounds[i] {
			tabulated.rounds[i][right] = roundFunction(uint64(right), key) & g.mask()
		}
	}
	return &tabulated
}

// Nodes is the number of nodes of a layer.
func (g *Graph) Nodes() uint64 { return g.nodes }

// Parents writes the parents of a node, in graph order; they may repeat. Nodes 0 and 1 have parents too by this rule,
// though the label of node 0 uses none. It panics when the node is out of range.
func (g *Graph) Parents(node uint64, parents *Parents) {
	if node >= g.nodes {
		panic(fmt.Sprintf("sdr: node %d of %d", node, g.nodes))
	}
	g.drgParents(uint32(node), parents.DRG())
	for i := range uint64(ExpDegree) {
		permuted := g.permute(ExpDegree*node + i)
		if g.version == APIVersion1_0 {
			permuted &= 1<<32 - 1
		}
		parents[DRGDegree+i] = uint32(permuted / ExpDegree)
	}
}

// drgParents is BucketSample: five parents at distances drawn from doubling buckets, and the predecessor.
func (g *Graph) drgParents(node uint32, parents []uint32) {
	if node < 2 {
		clear(parents)
		return
	}
	var key [32]byte
	copy(key[:], g.drgSeed[:])
	binary.LittleEndian.PutUint32(key[drgSeedBytes:], node)
	draw := newChacha8(&key)

	const sampled = DRGDegree - 1
	// The predecessor comes last in version 1.0, first in later ones.
	first, predecessor := 1, 0
	if g.version == APIVersion1_0 {
		first, predecessor = 0, sampled
	}
	meta := uint64(node) * sampled
	buckets := uint64(bits.Len64(meta - 1))
	for i := range sampled {
		bucket := draw.next()%buckets + 1
		high := min(meta, 1<<bucket)
		low := max(2, high>>1)
		distance := low + draw.next()%(high-low+1)
		parent := uint32((meta - distance) / sampled)
		if parent == node {
			parent--
		}
		parents[first+i] = parent
	}
	parents[predecessor] = node - 1
}

// expandedNodes is the number of edges into a layer from the one below, the domain of the permutation.
func (g *Graph) expandedNodes() uint64 { return ExpDegree * g.nodes }

func (g *Graph) mask() uint64 { return 1<<g.half - 1 }

// permute walks the Feistel network until it lands inside the domain; less than four steps on average, and at most as
// many as the network has values, because it is a permutation.
func (g *Graph) permute(x uint64) uint64 {
	for {
		x = g.encipher(x)
		if x < g.expandedNodes() {
			return x
		}
	}
}

func (g *Graph) encipher(x uint64) uint64 {
	left, right := x>>g.half&g.mask(), x&g.mask()
	for i := range g.keys {
		var f uint64
		if table := g.rounds[i]; table != nil {
			f = table[right]
		} else {
			f = roundFunction(right, g.keys[i]) & g.mask()
		}
		left, right = right, left^f
	}
	return left<<g.half | right
}

// roundFunction is the first eight bytes, big-endian, of BLAKE2b-512 over both numbers; the caller masks it.
func roundFunction(right, key uint64) uint64 {
	var message [16]byte
	binary.BigEndian.PutUint64(message[:], right)
	binary.BigEndian.PutUint64(message[8:], key)
	digest := blake2b.Sum512(message[:])
	return binary.BigEndian.Uint64(digest[:])
}
