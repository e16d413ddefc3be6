package compact

import (
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// TestASectionThatEndsElsewherePanics: a walk that hands over something else than its circuit counted is a broken
// invariant, and its segment must not be sealed.
func TestASectionThatEndsElsewherePanics(t *testing.T) {
	t.Parallel()
	start := r1cs.Position{Rows: 70, Inputs: 1, Aux: 3, FullA: 1, FullB: 1, FullAux: 1}
	end := r1cs.Position{Rows: 73, Inputs: 2, Aux: 5, FullA: 3, FullB: 2, FullAux: 2}
	var e fr.Element
	good := []func(w r1cs.Values){
		func(w r1cs.Values) { w.SmallRows(1, 1, 0, 1) },
		func(w r1cs.Values) { w.FullRow(&e, &e) },
		func(w r1cs.Values) { w.FullBitRow(&e, 1) },
		func(w r1cs.Values) { w.Input(&e) },
		func(w r1cs.Values) { w.AuxBits(1, 1) },
		func(w r1cs.Values) { w.AuxFull(&e) },
	}
	for left := range len(good) + 1 {
		layout, err := NewLayout(end)
		if err != nil {
			t.Fatal(err)
		}
		s, err := create(layout.Memory(), layout, "test", 0, []r1cs.Position{r1cs.Start(), start, end})
		if err != nil {
			t.Fatal(err)
		}
		handOver := func(extra int) (panicked bool) {
			defer func() { panicked = recover() != nil }()
			w := s.section(start, end)
			for i, f := range good {
				if i != left {
					f(w)
				}
				if i == extra {
					f(w)
				}
			}
			w.finish(end)
			return false
		}
		if complete := left == len(good); handOver(-1) == complete {
			t.Errorf("handover %d left out: panicked is %v", left, !complete)
		}
		if left < len(good) {
			missing := left
			left = len(good)
			if !handOver(missing) {
				t.Errorf("handover %d twice: no panic", missing)
			}
		}
	}
}

func TestFewerFullElementsThanCountedAreNotSealed(t *testing.T) {
	t.Parallel()
	layout, err := NewLayout(r1cs.Position{Rows: 2, Inputs: 1, FullA: 1})
	if err != nil {
		t.Fatal(err)
	}
	s, err := create(layout.Memory(), layout, "test", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if recover() == nil {
			t.Error("sealed without its full elements")
		}
		if _, err := Open(s.data); err == nil {
			t.Error("opened without a seal")
		}
	}()
	_ = s.seal(1)
}
