package toy

import (
	"errors"
	"fmt"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/gadget"
	"github.com/proofrack/proofrack/shared/proof/poseidon"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// ErrSlice is wrapped by every refusal of a slice.
var ErrSlice = errors.New("invalid toy slice")

const (
	levels = 2
	arity  = 8
	// leafCount is the number of leaves of the tree.
	leafCount = 64
	// sliceBytes is the length of a slice: leaf, index, siblings.
	sliceBytes = fr.Bytes + 1 + levels*(arity-1)*fr.Bytes
)

// Circuit is the toy circuit.
func Circuit() circuit.Circuit { return toyCircuit{} }

// Other is the same circuit under another name, with parameters of its own, for tests of several circuits.
func Other() circuit.Circuit { return otherCircuit{} }

type toyCircuit struct{}

type otherCircuit struct{ toyCircuit }

func (otherCircuit) ID() string         { return "toy-other" }
func (otherCircuit) ParamsName() string { return paramsName() + "-other" }

func (toyCircuit) ID() string { return "toy" }

// ParamsName is derived from the circuit's constraint-system hash, as of every circuit without a published name.
func (toyCircuit) ParamsName() string { return paramsName() }

var paramsName = sync.OnceValue(func() string {
	digest := r1cs.NewDigest(circuit.Totals(toyCircuit{}))
	circuit.Describe(toyCircuit{}, digest)
	return "proofrack-toy-" + digest.Hex()
})

func (toyCircuit) Sections() []r1cs.Position {
	s := r1cs.NewSystem(r1cs.Start(), nil, nil)
	walk(s, blank())
	return []r1cs.Position{r1cs.Start(), s.Position()}
}

func (c toyCircuit) SharedAux() int { return 0 }

func (toyCircuit) Describe(_ int, rows r1cs.RowSink) {
	walk(r1cs.NewSystem(r1cs.Start(), rows, nil), blank())
}

// witness is a leaf with its path.
type witness struct {
	leaf fr.Element
	path []gadget.PathElement
}

func blank() *witness {
	w := &witness{path: make([]gadget.PathElement, levels)}
	for i := range w.path {
		w.path[i].Siblings = make([]fr.Element, arity-1)
	}
	return w
}

func walk(s *r1cs.System, w *witness) {
	leaf := s.Alloc(w.leaf)
	var root r1cs.Num
	gadget.Inclusion(s, leaf, w.path, gadget.Poseidon, func() r1cs.Num {
		root = s.Alloc(w.root())
		return root
	})
	s.Inputize(root)
}

func (w *witness) root() fr.Element {
	current := w.leaf
	for _, level := range w.path {
		children := append([]fr.Element(nil), level.Siblings[:level.Index]...)
		children = append(append(children, current), level.Siblings[level.Index:]...)
		current = poseidon.Hash(children)
	}
	return current
}

func (w *witness) index() int {
	index := 0
	for i := levels - 1; i >= 0; i-- {
		index = index*arity + w.path[i].Index
	}
	return index
}

// Slice makes the slice of a made-up tree: everything follows from the seed.
func Slice(seed uint64) []byte {
	data := make([]byte, 0, sliceBytes)
	element := func(k uint64) { e := r1cs.Element(seed*1000 + k); b := e.Bytes(); data = append(data, b[:]...) }
	element(0)
	data = append(data, byte(seed%leafCount))
	for k := range uint64(levels * (arity - 1)) {
		element(k + 1)
	}
	return data
}

// Decode reads a slice: leaf, index byte, siblings from the leaf up, elements big-endian and canonical.
func (toyCircuit) Decode(data []byte) (circuit.Witness, error) {
	if len(data) != sliceBytes {
		return nil, fmt.Errorf("%w: %d bytes, want %d", ErrSlice, len(data), sliceBytes)
	}
	var elements []fr.Element
	index := int(data[fr.Bytes])
	for _, b := range [][]byte{data[:fr.Bytes], data[fr.Bytes+1:]} {
		for ; len(b) > 0; b = b[fr.Bytes:] {
			var e fr.Element
			if err := e.SetBytesCanonical(b[:fr.Bytes]); err != nil {
				return nil, fmt.Errorf("%w: %w", ErrSlice, err)
			}
			elements = append(elements, e)
		}
	}
	if index >= leafCount {
		return nil, fmt.Errorf("%w: index %d of %d leaves", ErrSlice, index, leafCount)
	}
	w := blank()
	w.leaf = elements[0]
	for i := range w.path {
		w.path[i].Index = index % arity
		index /= arity
		copy(w.path[i].Siblings, elements[1+i*(arity-1):])
	}
	return w, nil
}

func (w *witness) Synthesize(_ int, values r1cs.Values) {
	walk(r1cs.NewSystem(r1cs.Start(), nil, values), w)
}

func (w *witness) PublicInputs() []fr.Element {
	return []fr.Element{r1cs.Element(uint64(w.index())), w.root()}
}
