package compact

import (
	"bytes"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// oneByOne hides that a writer takes patterns.
type oneByOne struct{ r1cs.Values }

// powers is a walk of n steps, most of them rows with two full elements, and its list: the powers of a base.
func powers(base fr.Element, n int) (list []fr.Element, walk func(*r1cs.System)) {
	list = append(list, base)
	for i := range n {
		var next fr.Element
		list = append(list, *next.Mul(&list[i], &base))
	}
	return list, func(s *r1cs.System) {
		first := s.Lin(s.Assign(s.Constant(base)))
		power := first
		for i := range n {
			power = s.Lin(s.Product(&power, &first, nil))
			if i%11 == 3 {
				power = s.Lin(s.Assign(power))
			}
		}
	}
}

// TestAPatternIsWrittenLikeItsParts writes patterns of several lengths behind any number of bits.
func TestAPatternIsWrittenLikeItsParts(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 62, 63, 64, 130} {
		list, walk := powers(r1cs.Element(3), n)
		pattern := r1cs.NewPattern(list, walk)
		list, walk = powers(r1cs.Element(5), n)
		for before := range 66 {
			fill := func(wrap func(w *writer) r1cs.Values, run func(*r1cs.System)) []byte {
				both := func(s *r1cs.System) {
					for range before {
						s.AllocBits(1, 1)
					}
					run(s)
					s.AllocBits(5, 0b10011)
				}
				count := r1cs.NewSystem(r1cs.Start(), nil, nil)
				both(count)
				layout, err := NewLayout(count.Position())
				if err != nil {
					t.Fatal(err)
				}
				memory := layout.Memory()
				s, err := create(memory, layout, "test", 0, []r1cs.Position{r1cs.Start(), count.Position()})
				if err != nil {
					t.Fatal(err)
				}
				w := s.section(r1cs.Start(), count.Position())
				both(r1cs.NewSystem(r1cs.Start(), nil, wrap(w)))
				w.finish(count.Position())
				return memory
			}
			hidden := func(w *writer) r1cs.Values { return oneByOne{w} }
			want := fill(hidden, walk)
			replay := func(s *r1cs.System) { s.Replay(pattern, list) }
			if !bytes.Equal(fill(hidden, replay), want) {
				t.Fatalf("%d rows behind %d bits: the pattern one by one differs from the walk", n, before)
			}
			if !bytes.Equal(fill(func(w *writer) r1cs.Values { return w }, replay), want) {
				t.Fatalf("%d rows behind %d bits: the pattern as a whole differs from the walk", n, before)
			}
		}
	}
}
