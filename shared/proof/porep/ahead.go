package porep

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/gadget"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// hashes are the hashes of a challenge's trees C and R-last. The zero value has none: the walk computes them.
type hashes struct {
	parents      [sdr.Degree]gadget.Ahead
	own, replica gadget.Ahead
}

// hashAhead computes them before the walk: sixteen climbs side by side. What the walk derives in between, the labels of
// the challenged node, is computed by its plain definition; the walk panics if it comes to other values.
func hashAhead(l *gadget.Lookahead, slice *c1.Slice, w *c1.SliceChallenge) *hashes {
	climbs := make([]gadget.Climb, 0, sdr.Degree+2)
	for i := range w.Parents {
		climbs = append(climbs, gadget.Climb{Column: w.Parents[i].Rows, Path: elements(w.Parents[i].Path)})
	}
	labels := labelsOf(slice, w)
	var encoded fr.Element
	encoded.Add(&labels[len(labels)-1], &w.DataLeaf)
	climbs = append(climbs, gadget.Climb{Column: labels, Path: elements(w.CPath)},
		gadget.Climb{Leaf: encoded, Path: elements(w.RLastPath)})
	ahead := l.Climb(climbs)
	h := &hashes{own: ahead[sdr.Degree], replica: ahead[sdr.Degree+1]}
	copy(h.parents[:], ahead)
	return h
}

// labelsOf are the labels of the challenged node.
func labelsOf(slice *c1.Slice, w *c1.SliceChallenge) []fr.Element {
	replicaID := sdr.Bytes(&slice.ReplicaID)
	labeler := sdr.NewLabeler(&replicaID)
	labels := make([]fr.Element, len(w.Parents[0].Rows))
	var parents [sdr.Degree][32]byte
	for i := range labels {
		used := parents[:sdr.DRGDegree]
		if i > 0 {
			used = parents[:]
		}
		for k := range used {
			layer := i
			if k >= sdr.DRGDegree {
				layer--
			}
			parents[k] = sdr.Bytes(&w.Parents[k].Rows[layer])
		}
		label := labeler.Label(uint32(i+1), w.Challenge, used)
		var err error
		if labels[i], err = sdr.Element(&label); err != nil {
			panic(fmt.Sprintf("porep: label %x of node %d: %v", label, w.Challenge, err))
		}
	}
	return labels
}
