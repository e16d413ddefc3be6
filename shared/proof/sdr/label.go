package sdr

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

const (
	labelHeaderBytes = 64
	labelBytes       = labelHeaderBytes + LabelParents*NodeBytes
)

// Labeler computes labels of one replica. It keeps a message buffer and must not be shared between goroutines.
type Labeler struct {
	message [labelBytes]byte
}

// NewLabeler makes a labeler for a replica.
func NewLabeler(replicaID *[32]byte) *Labeler {
	l := new(Labeler)
	copy(l.message[:], replicaID[:])
	return l
}

// Label is SHA-256(replica_id ‖ layer u32 BE ‖ node u64 BE ‖ 20 zero bytes ‖ 37 parent labels) with its two top bits
// cleared (c2-formats.md 1.6). The parents are repeated cyclically to 37: 6 of them in layer 1, 14 above (c2-circuit.md
// 3.6), or all 37. Without parents only the header is hashed; that is the rule for node 0. Layers count from 1. It
// panics for more than 37 parents.
func (l *Labeler) Label(layer uint32, node uint64, parents ...[][32]byte) [32]byte {
	binary.BigEndian.PutUint32(l.message[32:], layer)
	binary.BigEndian.PutUint64(l.message[36:], node)
	used := labelHeaderBytes
	for _, list := range parents {
		for i := range list {
			if used == labelBytes {
				panic(fmt.Sprintf("sdr: label of node %d with more than %d parents", node, LabelParents))
			}
			used += copy(l.message[used:], list[i][:])
		}
	}
	if used > labelHeaderBytes {
		// Whatever has been written is whole repetitions of the list, so copying all of it keeps the cycle.
		for used < labelBytes {
			used += copy(l.message[used:], l.message[labelHeaderBytes:used])
		}
	}
	label := sha256.Sum256(l.message[:used])
	label[31] &= clearTop
	return label
}

// LabelLayer computes a whole layer: out has one label per node of the graph, and below holds the layer below, empty
// for layer 1. It returns early, leaving out incomplete, when proceed gives false; proceed is asked every 4096 nodes
// with the number of labels done and may be nil.
func LabelLayer(g *Graph, replicaID *[32]byte, layer uint32, below, out [][32]byte, proceed func(done int) bool) {
	const askEvery = 4096
	if uint64(len(out)) != g.Nodes() || layer > 1 && len(below) != len(out) {
		panic(fmt.Sprintf("sdr: layer %d of %d nodes over %d, graph of %d", layer, len(out), len(below), g.Nodes()))
	}
	labeler := NewLabeler(replicaID)
	out[0] = labeler.Label(layer, 0)
	var parents Parents
	var labels [Degree][32]byte
	for node := 1; node < len(out); node++ {
		if proceed != nil && node%askEvery == 0 && !proceed(node) {
			return
		}
		count := DRGDegree
		if layer == 1 {
			g.drgParents(uint32(node), parents.DRG())
		} else {
			g.Parents(uint64(node), &parents)
			for i, parent := range parents.Exp() {
				labels[DRGDegree+i] = below[parent]
			}
			count = Degree
		}
		for i, parent := range parents.DRG() {
			labels[i] = out[parent]
		}
		out[node] = labeler.Label(layer, uint64(node), labels[:count])
	}
}
