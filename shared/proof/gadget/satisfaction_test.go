package gadget_test

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/proof/gadget"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/r1cs/r1cstest"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// insertion inserts 7 at an index among random siblings.
func insertion(random *rand.Rand, size, index int) func(*r1cs.System) {
	siblings := elements(random, size-1)
	return func(s *r1cs.System) {
		x := s.Alloc(r1cs.Element(7))
		own := s.AllocBits(bits.Len(uint(size))-1, uint64(index))
		for _, n := range gadget.Insert(s, x, own, allocAll(s, siblings)) {
			s.Inputize(n) // so that every result matters
		}
	}
}

// proved is a leaf with its path and root.
type proved struct {
	leaf, root fr.Element
	path       []gadget.PathElement
	index      uint64
}

func randomPath(random *rand.Rand, arities ...int) proved {
	p := proved{leaf: elements(random, 1)[0]}
	var steps []sdr.Step
	for _, arity := range arities {
		siblings, index := elements(random, arity-1), random.IntN(arity)
		steps = append(steps, sdr.Step{Siblings: siblings, Index: index})
		p.path = append(p.path, gadget.PathElement{Siblings: siblings, Index: index})
	}
	p.root, p.index = sdr.Root(&p.leaf, steps), sdr.Position(steps)
	return p
}

func (p proved) walk(s *r1cs.System) {
	gadget.Inclusion(s, s.Alloc(p.leaf), p.path, gadget.Poseidon, func() r1cs.Num { return s.Alloc(p.root) })
}

func TestInclusionOfRandomPaths(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		arities := rapid.SliceOfN(rapid.SampledFrom([]int{2, 4, 8}), 0, 5).Draw(t, "arities")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		p := randomPath(random, arities...)
		trace := r1cstest.New()
		p.walk(r1cs.NewSystem(r1cs.Start(), nil, trace))
		if len(trace.Inputs) != 2 || trace.Inputs[1] != r1cs.Element(p.index) {
			t.Fatalf("inputs: got %v, want one and %d", trace.Inputs, p.index)
		}
		check := r1cs.Satisfaction{Value: trace.Value}
		p.walk(r1cs.NewSystem(r1cs.Start(), &check, nil))
		if rows := check.Unsatisfied(); len(rows) > 0 || check.Rows() != len(trace.A) {
			t.Fatalf("rows %v of %d do not hold, %d were handed over", rows, check.Rows(), len(trace.A))
		}
	})
}

// walks are one walk of each gadget, with random values.
func walks() map[string]func(*r1cs.System) {
	random := rand.New(rand.NewPCG(13, 14))
	all := map[string]func(*r1cs.System){
		"insert 1 of 2":   insertion(random, 2, 1),
		"insert 2 of 4":   insertion(random, 4, 2),
		"insert 5 of 8":   insertion(random, 8, 5),
		"inclusion 8-4-2": randomPath(random, 8, 4, 2).walk,
	}
	inputs := elements(random, 11)
	for name, arity := range map[string]int{"poseidon 2": 2, "poseidon 4": 4, "poseidon 8": 8, "poseidon 11": 11} {
		all[name] = func(s *r1cs.System) { gadget.Poseidon(s, allocAll(s, inputs[:arity])) }
	}
	var message []messageWord
	for i := range 5 {
		message = append(message,
			messageWord{value: random.Uint32(), fixed: random.Uint32() * uint32(i%2), negated: random.Uint32()})
	}
	all["sha256"] = func(s *r1cs.System) {
		words := make([]r1cs.Bits, len(message))
		for i, w := range message {
			words[i] = w.allocate(s)
		}
		gadget.SHA256(s, words)
	}
	return all
}

// TestGadgetsAreSatisfiedAndHandOverWhatTheirRowsSay evaluates rows of one walk over the assignment of another.
func TestGadgetsAreSatisfiedAndHandOverWhatTheirRowsSay(t *testing.T) {
	t.Parallel()
	for name, walk := range walks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace := r1cstest.New()
			walk(r1cs.NewSystem(r1cs.Start(), nil, trace))
			check := r1cs.Satisfaction{Value: trace.Value}
			check.Visit = func(row int, a, b, _ *fr.Element) {
				if row < len(trace.A) && (*a != trace.A[row] || *b != trace.B[row]) {
					t.Errorf("row %d: handed over %s, %s; it says %s, %s",
						row, trace.A[row].String(), trace.B[row].String(), a.String(), b.String())
				}
			}
			walk(r1cs.NewSystem(r1cs.Start(), &check, nil))
			if rows := check.Unsatisfied(); len(rows) > 0 || check.Rows() != len(trace.A) {
				t.Errorf("rows %v of %d do not hold, %d were handed over", rows, check.Rows(), len(trace.A))
			}
		})
	}
}

// TestEveryVariableOfAGadgetIsConstrained changes one variable at a time, a sample of the many of SHA-256: rows that
// held before must fail.
func TestEveryVariableOfAGadgetIsConstrained(t *testing.T) {
	t.Parallel()
	for name, walk := range walks() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			trace := r1cstest.Walk(walk)
			one := fr.One()
			uses := rowsByVariable(trace)
			step := max(1, len(trace.Aux)/2000)
			for i := 0; i < len(trace.Aux); i += step {
				v := r1cs.AuxVar(i)
				trace.Aux[i].Add(&trace.Aux[i], &one)
				if !anyFails(trace, uses[v]) {
					t.Errorf("auxiliary %d of %d is free: %d rows hold without it", i, len(trace.Aux), len(uses[v]))
				}
				trace.Aux[i].Sub(&trace.Aux[i], &one)
			}
		})
	}
}

// rowsByVariable lists the rows that a variable occurs in.
func rowsByVariable(trace *r1cstest.Trace) map[r1cs.Var][]int {
	uses := map[r1cs.Var][]int{}
	for i, row := range trace.Rows {
		for _, lc := range []r1cs.LC{row.A, row.B, row.C} {
			for _, term := range lc {
				uses[term.Var] = append(uses[term.Var], i)
			}
		}
	}
	return uses
}

func anyFails(trace *r1cstest.Trace, rows []int) bool {
	check := r1cs.Satisfaction{Value: trace.Value}
	for _, i := range rows {
		check.Row(trace.Rows[i].A, trace.Rows[i].B, trace.Rows[i].C)
		if len(check.Unsatisfied()) > 0 {
			return true
		}
	}
	return false
}
