package porep

import (
	"fmt"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/gadget"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// labelParentCount is how many parents a label hashes, with repetition (spec 3.6).
const labelParentCount = 37

// Witness is one partition's slice, ready to be walked.
type Witness struct {
	circuit *Circuit
	slice   *c1.Slice

	lookaheads sync.Pool // of *gadget.Lookahead: several megabytes each, one per section at hand
}

// Decode reads and checks one partition's slice.
func (c *Circuit) Decode(data []byte) (circuit.Witness, error) {
	slice, err := c1.DecodeSlice(data)
	if err != nil {
		return nil, fmt.Errorf("circuit %s: %w", c.id, err)
	}
	if id := c1.CircuitID(slice.Size); id != c.id {
		return nil, fmt.Errorf("circuit %s: slice is for circuit %s: %w", c.id, id, c1.ErrSlice)
	}
	return &Witness{circuit: c, slice: slice}, nil
}

// Synthesize walks one section and hands over its values.
func (w *Witness) Synthesize(section int, values r1cs.Values) {
	if section == 0 {
		walkHead(r1cs.NewSystem(r1cs.Start(), nil, values), w.slice)
		return
	}
	h := walkHead(r1cs.NewSystem(r1cs.Start(), nil, nil), w.slice)
	start := w.circuit.Sections()[section]
	lookahead, ok := w.lookaheads.Get().(*gadget.Lookahead)
	if !ok {
		lookahead = new(gadget.Lookahead)
	}
	defer w.lookaheads.Put(lookahead)
	challenge := &w.slice.Challenges[section-1]
	walkChallenge(r1cs.NewSystem(start, nil, values), &h, challenge, hashAhead(lookahead, w.slice, challenge))
}

// PublicInputs are the inputs without the leading ONE, as the slice has them (spec 4.3).
func (w *Witness) PublicInputs() []fr.Element {
	inputs := []fr.Element{w.slice.ReplicaID, w.slice.CommD, w.slice.CommR}
	for i := range w.slice.Challenges {
		c := &w.slice.Challenges[i]
		node := r1cs.Element(c.Challenge)
		inputs = append(inputs, node)
		for k := range c.Parents {
			inputs = append(inputs, r1cs.Element(c.Parents[k].Node))
		}
		inputs = append(inputs, node, node, node)
	}
	return inputs
}

// elements is a path as the circuit takes it.
func elements(path []sdr.Step) []gadget.PathElement {
	out := make([]gadget.PathElement, len(path))
	for i := range path {
		out[i] = gadget.PathElement{Siblings: path[i].Siblings, Index: int(path[i].Index)}
	}
	return out
}

// Blank is a witness of the circuit's shape whose values mean nothing and satisfy nothing: synthesis takes as long with
// it as with any other.
func (c *Circuit) Blank() *Witness {
	w := &Witness{circuit: c, slice: &c1.Slice{}}
	for range c.shape.Challenges {
		w.slice.Challenges = append(w.slice.Challenges, *blankChallenge(c.shape))
	}
	return w
}

// blankChallenge has the right shape and no values: enough to walk the structure.
func blankChallenge(s Shape) *c1.SliceChallenge {
	w := &c1.SliceChallenge{RLastPath: blankPath(s.Arities), CPath: blankPath(s.Arities)}
	data := make([]int, s.DataLevels)
	for i := range data {
		data[i] = 2
	}
	w.DataPath = blankPath(data)
	for i := range w.Parents {
		w.Parents[i] = c1.SliceColumn{Rows: make([]fr.Element, s.Layers), Path: blankPath(s.Arities)}
	}
	return w
}

func blankPath(arities []int) []sdr.Step {
	path := make([]sdr.Step, len(arities))
	for i, arity := range arities {
		path[i].Siblings = make([]fr.Element, arity-1)
	}
	return path
}
