package seal

import (
	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// Opener gives what vanilla proofs of a sealed sector open.
type Opener interface {
	// DataProof is the path of a data node in tree D.
	DataProof(node uint64) c1.MerkleProof
	// ReplicaProof is the path of a replica node in tree R-last.
	ReplicaProof(node uint64) c1.MerkleProof
	// ColumnProof is the column of a node and its path in tree C.
	ColumnProof(node uint64) c1.ColumnProof
}

// Prove gives the vanilla proofs of the given challenges, in order.
func Prove(opener Opener, graph *sdr.Graph, challenges []uint64) []c1.Proof {
	proofs := make([]c1.Proof, len(challenges))
	for i, challenge := range challenges {
		proofs[i] = ProveChallenge(opener, graph, challenge)
	}
	return proofs
}

// ProveChallenge is the vanilla proof of one challenge (c2-formats.md 1.6). The label proofs repeat the rows of the
// parents' columns.
func ProveChallenge(opener Opener, graph *sdr.Graph, challenge uint64) c1.Proof {
	proof := c1.Proof{
		CommDProof:     opener.DataProof(challenge),
		CommRLastProof: opener.ReplicaProof(challenge),
		CX:             opener.ColumnProof(challenge),
	}
	var parents sdr.Parents
	graph.Parents(challenge, &parents)
	for i, parent := range parents.DRG() {
		proof.DRGParents[i] = opener.ColumnProof(uint64(parent))
	}
	for i, parent := range parents.Exp() {
		proof.ExpParents[i] = opener.ColumnProof(uint64(parent))
	}
	proof.LabelingProofs = make([]c1.LabelProof, len(proof.CX.Column.Rows))
	for layer := range proof.LabelingProofs {
		proof.LabelingProofs[layer] = labelProof(&proof, layer, challenge)
	}
	proof.EncodingProof = proof.LabelingProofs[len(proof.LabelingProofs)-1]
	return proof
}

// labelProof lists the 37 labels that the challenged node's label hashes; the layer counts from 0.
func labelProof(proof *c1.Proof, layer int, challenge uint64) c1.LabelProof {
	label := c1.LabelProof{LayerIndex: uint32(layer + 1), Node: challenge}
	short := make([][32]byte, 0, sdr.Degree)
	for i := range proof.DRGParents {
		short = append(short, proof.DRGParents[i].Column.Rows[layer])
	}
	if layer > 0 {
		for i := range proof.ExpParents {
			short = append(short, proof.ExpParents[i].Column.Rows[layer-1])
		}
	}
	for i := range label.Parents {
		label.Parents[i] = short[i%len(short)]
	}
	return label
}
