package gadget_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/proof/gadget"
	"github.com/proofrack/proofrack/shared/proof/poseidon8"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/r1cs/r1cstest"
)

// drawClimb draws a climb: a leaf or a column, and levels of any arity.
func drawClimb(t *rapid.T) gadget.Climb {
	random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	climb := gadget.Climb{
		Leaf: elements(random, 1)[0], Column: elements(random, rapid.SampledFrom([]int{0, 2, 11}).Draw(t, "column")),
	}
	for _, arity := range rapid.SliceOfN(rapid.SampledFrom([]int{2, 4, 8}), 0, 4).Draw(t, "arities") {
		siblings := elements(random, arity-1)
		if rapid.Bool().Draw(t, "edges") {
			siblings = edgeElements(arity - 1)
		}
		climb.Path = append(climb.Path, gadget.PathElement{Siblings: siblings, Index: random.IntN(arity)})
	}
	return climb
}

// walkClimb walks a climb with any hash.
func walkClimb(s *r1cs.System, climb *gadget.Climb, hash gadget.NodeHash) {
	leaf := s.Alloc(climb.Leaf)
	if len(climb.Column) > 0 {
		leaf = hash(s, allocAll(s, climb.Column))
	}
	gadget.Inclusion(s, leaf, climb.Path, hash, func() r1cs.Num { return s.Alloc(fr.Element{}) })
}

// differentValues describes the first difference between what two walks handed over.
func differentValues(a, b *r1cstest.Trace) string {
	if string(a.Kinds) != string(b.Kinds) || string(a.AuxKinds) != string(b.AuxKinds) {
		return fmt.Sprintf("kinds of rows %s and %s, of variables %s and %s", a.Kinds, b.Kinds, a.AuxKinds, b.AuxKinds)
	}
	for _, vector := range []struct {
		name string
		a, b []fr.Element
	}{{"a", a.A, b.A}, {"b", a.B, b.B}, {"auxiliary", a.Aux, b.Aux}, {"input", a.Inputs, b.Inputs}} {
		if len(vector.a) != len(vector.b) {
			return fmt.Sprintf("%d and %d values of %s", len(vector.a), len(vector.b), vector.name)
		}
		for i := range vector.a {
			if vector.a[i] != vector.b[i] {
				return fmt.Sprintf("%s %d is %s and %s", vector.name, i, vector.a[i].String(), vector.b[i].String())
			}
		}
	}
	return ""
}

// TestHashesAheadHandOverWhatTheWalkDoes compares every value of every row and variable.
func TestHashesAheadHandOverWhatTheWalkDoes(t *testing.T) {
	t.Parallel()
	var lookahead gadget.Lookahead
	rapid.Check(t, func(t *rapid.T) {
		climbs := rapid.SliceOfN(rapid.Custom(drawClimb), 0, 10).Draw(t, "climbs")
		for i, ahead := range lookahead.Climb(climbs) {
			var traces [2]*r1cstest.Trace
			var positions [2]r1cs.Position
			for k, hash := range []gadget.NodeHash{gadget.Poseidon, ahead.Poseidon} {
				traces[k] = r1cstest.New()
				s := r1cs.NewSystem(r1cs.Start(), nil, traces[k])
				walkClimb(s, &climbs[i], hash)
				positions[k] = s.Position()
			}
			if why := differentValues(traces[0], traces[1]); why != "" {
				t.Fatalf("climb %d of %d, walk and ahead: %s", i, len(climbs), why)
			}
			if positions[0] != positions[1] {
				t.Fatalf("climb %d: walk ends at %+v, ahead at %+v", i, positions[0], positions[1])
			}
		}
	})
}

// TestHashesAheadHaveTheRowsOfTheWalk: rows are described by the walk itself, whatever is known ahead.
func TestHashesAheadHaveTheRowsOfTheWalk(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(21, 22))
	climbs := []gadget.Climb{{Column: elements(random, 11)}}
	for _, arity := range []int{8, 4, 2} {
		climbs[0].Path = append(climbs[0].Path,
			gadget.PathElement{Siblings: elements(random, arity-1), Index: random.IntN(arity)})
	}
	var lookahead gadget.Lookahead
	recorded := r1cstest.Walk(func(s *r1cs.System) { walkClimb(s, &climbs[0], gadget.Poseidon) })
	r1cstest.Check(t, func(s *r1cs.System) {
		ahead := lookahead.Climb(climbs)[0]
		gadget.Inclusion(s, ahead.Poseidon(s, allocAll(s, climbs[0].Column)), climbs[0].Path, ahead.Poseidon,
			func() r1cs.Num { return s.Alloc(recorded.Aux[len(recorded.Aux)-2]) })
	})
	trace := r1cstest.Walk(func(s *r1cs.System) {
		ahead := lookahead.Climb(climbs)[0]
		walkClimb(s, &climbs[0], ahead.Poseidon)
	})
	if why := recorded.SameStructure(trace); why != "" {
		t.Errorf("structure with hashes ahead: %s", why)
	}
}

func TestAWalkThatLeavesItsClimbPanics(t *testing.T) {
	t.Parallel()
	if !poseidon8.CanTrace() {
		t.Skip("no hashes ahead on this processor")
	}
	random := rand.New(rand.NewPCG(23, 24))
	climb := gadget.Climb{Column: elements(random, 2)}
	other := elements(random, 1)[0]
	for name, inputs := range map[string][]fr.Element{
		"another input": {climb.Column[0], other}, "inputs swapped": {climb.Column[1], climb.Column[0]},
		"more inputs": elements(random, 4), "fewer inputs": climb.Column[:1],
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			var lookahead gadget.Lookahead
			ahead := lookahead.Climb([]gadget.Climb{climb})
			s := r1cs.NewSystem(r1cs.Start(), nil, nil)
			ahead[0].Poseidon(s, allocAll(s, inputs))
		}()
	}
	defer func() {
		if recover() == nil {
			t.Error("child outside its node: no panic")
		}
	}()
	var lookahead gadget.Lookahead
	lookahead.Climb([]gadget.Climb{{Path: []gadget.PathElement{{Siblings: climb.Column[:1], Index: 2}}}})
}
