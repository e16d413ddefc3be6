package compact_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/gadget"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/toy"
)

// mill is a small circuit of two sections that has every kind of row; its witness is the number x.
type mill struct{ x fr.Element }

func (mill) ID() string                   { return "mill" }
func (mill) ParamsName() string           { return "mill" }
func (mill) SharedAux() int               { return mill{}.Sections()[1].Aux }
func (m mill) PublicInputs() []fr.Element { return []fr.Element{m.x} }

func (mill) Decode([]byte) (circuit.Witness, error) { return nil, errors.ErrUnsupported }

func (m mill) head(s *r1cs.System) (r1cs.Num, r1cs.Limbs) {
	x := s.Alloc(m.x)
	s.Inputize(x)
	return x, s.NumBits(x)
}

func (m mill) body(s *r1cs.System, x r1cs.Num, bits r1cs.Limbs) {
	sum := s.BitSum()
	mixed := s.Xor(bits[0], bits[1].RotateRight(7))
	sum.Add(s.Maj(mixed, bits[2], bits[3].Complement()), 0)
	sum.Add(s.Ch(bits[4], mixed, s.And(bits[5], bits[6])), 64)
	y := s.Assign(sum.Lin())
	s.Inputize(gadget.Poseidon(s, []r1cs.Num{x, s.Pick(bits[0].Slice(3, 1), x, y)}))
}

func (m mill) walk(section int, rows r1cs.RowSink, values r1cs.Values) r1cs.Position {
	if section == 0 {
		s := r1cs.NewSystem(r1cs.Start(), rows, values)
		m.head(s)
		return s.Position()
	}
	before := r1cs.NewSystem(r1cs.Start(), newTrace(), nil)
	x, bits := m.head(before)
	s := r1cs.NewSystem(before.Position(), rows, values)
	m.body(s, x, bits)
	return s.Position()
}

func (mill) Sections() []r1cs.Position {
	return []r1cs.Position{r1cs.Start(), mill{}.walk(0, nil, nil), mill{}.walk(1, nil, nil)}
}

func (mill) Describe(section int, rows r1cs.RowSink)      { mill{}.walk(section, rows, nil) }
func (m mill) Synthesize(section int, values r1cs.Values) { m.walk(section, nil, values) }

func milled(t *testing.T) *compact.Segment {
	t.Helper()
	layout, err := compact.LayoutOf(mill{})
	if err != nil {
		t.Fatal(err)
	}
	m := mill{x: r1cs.Element(0x123456789abcdef)}
	m.x.Square(&m.x).Square(&m.x)
	job := compact.Job{Circuit: mill{}, Witness: m, Workers: 2}
	s, err := job.Synthesize(context.Background(), dirtyMemory(layout))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(mill{}, 2); err != nil {
		t.Fatal(err)
	}
	return s
}

// mustName checks that an error is about unsatisfied constraints and names the row.
func mustName(t *testing.T, what string, err error, row int) {
	t.Helper()
	if !errors.Is(err, compact.ErrUnsatisfied) || row >= 0 && !strings.Contains(err.Error(), fmt.Sprintf("row %d ", row)) {
		t.Errorf("%s: got %v, want ErrUnsatisfied that names row %d", what, err, row)
	}
}

func TestCheckFindsAnyFlippedCode(t *testing.T) {
	t.Parallel()
	s := milled(t)
	n := s.Counts()
	for plane, length := range map[string]int{"a0": n.RowsTotal(), "a1": n.RowsTotal(), "b0": n.RowsTotal(), "x0": n.Aux} {
		words, full := s.Planes()[plane], s.Planes()["full "+plane[:1]]
		for i := range length {
			if full[i/64]>>(i%64)&1 == 1 || i%11 != 0 && i < length-8 {
				continue // a full element's code has no meaning; of the others, a sample
			}
			words[i/64] ^= 1 << (i % 64)
			row := i
			if plane == "x0" {
				row = -1
			}
			mustName(t, fmt.Sprintf("%s of position %d", plane, i), s.Check(mill{}, 1), row)
			words[i/64] ^= 1 << (i % 64)
		}
	}
	if err := s.Check(mill{}, 1); err != nil {
		t.Errorf("restored: %v", err)
	}
}

func TestCheckFindsAnyChangedElement(t *testing.T) {
	t.Parallel()
	s := milled(t)
	one := fr.One()
	for i := 0; i < len(s.AuxFull()); i += 5 {
		s.AuxFull()[i].Add(&s.AuxFull()[i], &one)
		mustName(t, fmt.Sprintf("full auxiliary %d", i), s.Check(mill{}, 1), -1)
		s.AuxFull()[i].Sub(&s.AuxFull()[i], &one)
	}
	for i := range s.Inputs() {
		s.Inputs()[i].Add(&s.Inputs()[i], &one)
		mustName(t, fmt.Sprintf("input %d", i), s.Check(mill{}, 1), -1)
		s.Inputs()[i].Sub(&s.Inputs()[i], &one)
	}
	for name, list := range map[string][][4]uint64{"a": compact.FullA(s), "b": compact.FullB(s)} {
		for i := 0; i < len(list); i += 7 {
			bit := uint64(1) << rand.IntN(60)
			list[i][0] ^= bit
			mustName(t, fmt.Sprintf("full element %d of %s", i, name), s.Check(mill{}, 1), -1)
			list[i][0] ^= bit
		}
	}
	if err := s.Check(mill{}, 3); err != nil {
		t.Errorf("restored: %v", err)
	}
}

func TestCheckAgainstAnotherCircuitIsRefused(t *testing.T) {
	t.Parallel()
	if err := milled(t).Check(toy.Circuit(), 1); !errors.Is(err, compact.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}

func TestCheckAgainstACircuitOfTheSameNameIsRefused(t *testing.T) {
	t.Parallel()
	other := &scripted{id: mill{}.ID(), sections: mixedScript(640).sections}
	if err := milled(t).Check(other, 1); !errors.Is(err, compact.ErrCorrupt) {
		t.Errorf("got %v, want ErrCorrupt", err)
	}
}

// TestCheckOfTheToyCircuit: partitions of a registered circuit pass, with another public input they do not.
func TestCheckOfTheToyCircuit(t *testing.T) {
	t.Parallel()
	layout, err := compact.LayoutOf(toy.Circuit())
	if err != nil {
		t.Fatal(err)
	}
	memory := dirtyMemory(layout)
	for seed := range uint64(3) {
		witness, err := toy.Circuit().Decode(toy.Slice(seed))
		if err != nil {
			t.Fatal(err)
		}
		job := compact.Job{Circuit: toy.Circuit(), Witness: witness, Partition: int(seed), Workers: 2}
		s, err := job.Synthesize(context.Background(), memory)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Check(toy.Circuit(), 2); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		if diff := cmp.Diff(witness.PublicInputs(), s.Inputs()[1:]); diff != "" {
			t.Errorf("seed %d: public inputs: want (-), got (+):\n%s", seed, diff)
		}
		s.Inputs()[1].SetUint64(77)
		if err := s.Check(toy.Circuit(), 2); !errors.Is(err, compact.ErrUnsatisfied) {
			t.Errorf("seed %d, another index: got %v, want ErrUnsatisfied", seed, err)
		}
	}
}
