package groth16test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// errSlice is the error for slices that a circuit here did not make.
var errSlice = errors.New("not a slice of this test circuit")

// walked is a circuit of one section that is described by a walk; a slice is the seed of its witness.
type walked struct {
	id   string
	walk func(s *r1cs.System, seed uint64)
}

func (c *walked) ID() string         { return c.id }
func (c *walked) ParamsName() string { return "proofrack-test-" + c.id }
func (c *walked) SharedAux() int     { return 0 }

func (c *walked) Sections() []r1cs.Position {
	s := r1cs.NewSystem(r1cs.Start(), nil, nil)
	c.walk(s, 0)
	return []r1cs.Position{r1cs.Start(), s.Position()}
}

func (c *walked) Describe(_ int, rows r1cs.RowSink) {
	c.walk(r1cs.NewSystem(r1cs.Start(), rows, nil), 0)
}

// Slice is the slice of the witness with the given seed.
func Slice(seed uint64) []byte { return binary.LittleEndian.AppendUint64(nil, seed) }

func (c *walked) Decode(slice []byte) (circuit.Witness, error) {
	if len(slice) != 8 {
		return nil, fmt.Errorf("decode slice of circuit %s: %d bytes: %w", c.id, len(slice), errSlice)
	}
	return &walkedWitness{c, binary.LittleEndian.Uint64(slice)}, nil
}

type walkedWitness struct {
	circuit *walked
	seed    uint64
}

func (w *walkedWitness) Synthesize(_ int, values r1cs.Values) {
	w.circuit.walk(r1cs.NewSystem(r1cs.Start(), nil, values), w.seed)
}

func (w *walkedWitness) PublicInputs() []fr.Element {
	var inputs inputs
	w.circuit.walk(r1cs.NewSystem(r1cs.Start(), nil, &inputs), w.seed)
	return inputs
}

// inputs keeps the inputs of a walk.
type inputs []fr.Element

func (*inputs) SmallRows(int, uint64, uint64, uint64) {}
func (*inputs) FullRow(_, _ *fr.Element)              {}
func (*inputs) FullBitRow(*fr.Element, uint64)        {}
func (*inputs) AuxBits(int, uint64)                   {}
func (*inputs) AuxFull(*fr.Element)                   {}
func (x *inputs) Input(v *fr.Element)                 { *x = append(*x, *v) }

// Random is a satisfied circuit of about the given number of rows with bits and field elements, products, selections
// and several inputs, all picked by shape. Equal shapes give equal circuits; slices (see Slice) choose the witness.
func Random(shape uint64, rows int) circuit.Circuit {
	return &walked{id: fmt.Sprintf("random-%d-%d", shape, rows), walk: func(s *r1cs.System, seed uint64) {
		m := &maker{System: s, shape: rand.New(rand.NewPCG(shape, 1)), values: rand.New(rand.NewPCG(seed, 2))}
		m.bits = append(m.bits, m.AllocBits(5, m.values.Uint64()&31))
		for range 2 {
			m.nums = append(m.nums, m.Assign(m.Constant(r1cs.Element(m.shape.Uint64()))))
		}
		for m.Position().Rows < rows {
			m.step()
		}
	}}
}

// maker adds random gadgets to a walk. What it picks comes from shape, so that it is the same for all witnesses.
type maker struct {
	*r1cs.System

	shape, values *rand.Rand
	bits          []r1cs.Bits
	nums          []r1cs.Num
}

func (m *maker) num() r1cs.Num   { return m.nums[m.shape.IntN(len(m.nums))] }
func (m *maker) word() r1cs.Bits { return m.bits[m.shape.IntN(len(m.bits))] }

// words are two words of the same length.
func (m *maker) words() (x, y r1cs.Bits) {
	x, y = m.word(), m.word()
	n := min(x.N, y.N)
	return x.Slice(x.N-n, n), y.Slice(0, n)
}

// lin is a small combination, now and then with a constant.
func (m *maker) lin() r1cs.Lin {
	k := r1cs.Element(m.shape.Uint64N(9))
	l := m.Plus(m.Lin(m.num()), k, m.Lin(m.num()))
	if m.shape.IntN(3) == 0 {
		l = m.Plus(l, k, m.Constant(r1cs.Element(m.shape.Uint64())))
	}
	return l
}

func (m *maker) step() {
	switch m.shape.IntN(10) {
	case 0:
		n := 1 + m.shape.IntN(64)
		m.bits = append(m.bits, m.AllocBits(n, m.values.Uint64()&(^uint64(0)>>(64-n))))
	case 1, 2:
		m.bits = append(m.bits, m.Xor(m.words()))
	case 3, 4:
		x, y := m.words()
		m.bits = append(m.bits, m.And(x, y.Complement()))
	case 5, 6:
		a, b, post := m.lin(), m.lin(), r1cs.Element(m.shape.Uint64N(3))
		m.nums = append(m.nums, m.Product(&a, &b, &post))
	case 7:
		cond := m.word()
		m.nums = append(m.nums, m.Pick(cond.Slice(m.shape.IntN(cond.N), 1), m.num(), m.num()))
	case 8:
		m.nums = append(m.nums, m.Assign(m.lin()))
	case 9:
		if m.shape.IntN(4) == 0 {
			m.Inputize(m.num())
		}
	}
}
