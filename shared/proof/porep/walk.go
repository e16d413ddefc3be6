package porep

import (
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/gadget"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// head is what the challenges use of the partition's head.
type head struct {
	commD, commC, commRLast r1cs.Num

	replicaID []r1cs.Bits // the eight message words of the replica id
}

// walkHead walks the partition's head (spec 4.1 steps 1 to 9).
func walkHead(s *r1cs.System, w *c1.Slice) head {
	var h head
	replicaID := s.Alloc(w.ReplicaID)
	s.Inputize(replicaID)
	h.replicaID = gadget.MessageWords(s.NumBits(replicaID))
	h.commD = s.Alloc(w.CommD)
	s.Inputize(h.commD)
	commR := s.Alloc(w.CommR)
	s.Inputize(commR)
	h.commRLast = s.Alloc(w.CommRLast)
	h.commC = s.Alloc(w.CommC)
	s.Equal(commR, gadget.Poseidon(s, []r1cs.Num{h.commC, h.commRLast}))
	return h
}

// walkChallenge walks one challenge (spec 4.2; the comments give its step numbers). Its trees' hashes are ahead, or are
// computed on the way.
func walkChallenge(s *r1cs.System, h *head, w *c1.SliceChallenge, ahead *hashes) {
	dataLeaf := s.Alloc(w.DataLeaf) // 1
	gadget.Inclusion(s, dataLeaf, elements(w.DataPath), gadget.SHA256Node, h.rootD)
	rows := make([][]r1cs.Num, sdr.Degree)
	for i := range w.Parents { // 3, 4
		rows[i] = walkColumn(s, h, &w.Parents[i], ahead.parents[i].Poseidon)
	}
	node := gadget.Uint64(s, w.Challenge) // 5
	gadget.PackIntoInput(s, node)
	labels := make([]r1cs.Num, len(w.Parents[0].Rows))
	for i := range labels { // 7
		labels[i] = Label(s, h.replicaID, labelParents(s, rows, i), uint32(i+1), node)
	}
	last := s.Lin(labels[len(labels)-1])
	encoded := s.Assign(s.Plus(last, fr.One(), s.Lin(dataLeaf))) // 8
	gadget.Inclusion(s, encoded, elements(w.RLastPath), ahead.replica.Poseidon, h.rootRLast)
	own := ahead.own.Poseidon
	gadget.Inclusion(s, own(s, labels), elements(w.CPath), own, h.rootC) // 10, 11
}

func (h *head) rootD() r1cs.Num     { return h.commD }
func (h *head) rootC() r1cs.Num     { return h.commC }
func (h *head) rootRLast() r1cs.Num { return h.commRLast }

// walkColumn allocates a parent's labels and enforces that their hash is in tree C.
func walkColumn(s *r1cs.System, h *head, c *c1.SliceColumn, hash gadget.NodeHash) []r1cs.Num {
	rows := make([]r1cs.Num, len(c.Rows))
	for i, v := range c.Rows {
		rows[i] = s.Alloc(v)
	}
	gadget.Inclusion(s, hash(s, rows), elements(c.Path), hash, h.rootC)
	return rows
}

// labelParents decomposes the labels that the label of a layer (from 0) hashes: the DRG parents' of the same layer,
// then, but for the first layer, the expander parents' of the layer before (spec 3.6, 4.2 step 7).
func labelParents(s *r1cs.System, rows [][]r1cs.Num, layer int) [][]r1cs.Bits {
	var parents [][]r1cs.Bits
	for i := range sdr.DRGDegree {
		parents = append(parents, gadget.MessageWords(s.NumBits(rows[i][layer])))
	}
	if layer > 0 {
		for i := sdr.DRGDegree; i < sdr.Degree; i++ {
			parents = append(parents, gadget.MessageWords(s.NumBits(rows[i][layer-1])))
		}
	}
	return parents
}

// Label is create_label (spec 3.6): the label of a node from the message words of the replica id and of the parents,
// and from the 64 bits of the node. Parents are repeated cyclically; the layer is numbered from 1.
func Label(s *r1cs.System, replicaID []r1cs.Bits, parents [][]r1cs.Bits, layer uint32, node r1cs.Bits) r1cs.Num {
	message := append(make([]r1cs.Bits, 0, (2+labelParentCount)*8), replicaID...)
	message = append(message, r1cs.ConstBits(32, uint64(layer)), node.Slice(32, 32), node.Slice(0, 32))
	for range 5 {
		message = append(message, r1cs.ConstBits(32, 0))
	}
	for i := range labelParentCount {
		message = append(message, parents[i%len(parents)]...)
	}
	return gadget.PackLimbs(s, gadget.DigestLimbs(gadget.SHA256(s, message)))
}
