package porep

import (
	"testing"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// fixture is a constraint system with its totals and hash (spec c2-circuit.md 6.3).
type fixture struct {
	inputs, aux, rows int
	hash              string
}

func (f fixture) check(t *testing.T, totals r1cs.Position, describe func(r1cs.RowSink)) {
	t.Helper()
	if totals.Inputs != f.inputs || totals.Aux != f.aux || totals.Rows != f.rows {
		t.Fatalf("inputs, aux, rows: got %d, %d, %d, want %d, %d, %d",
			totals.Inputs, totals.Aux, totals.Rows, f.inputs, f.aux, f.rows)
	}
	digest := r1cs.NewDigest(totals)
	describe(digest)
	if digest.Rows() != f.rows {
		t.Fatalf("rows described: got %d, want %d", digest.Rows(), f.rows)
	}
	if got := digest.Hex(); got != f.hash {
		t.Fatalf("hash: got %s, want %s", got, f.hash)
	}
}

func (f fixture) checkWalk(t *testing.T, walk func(*r1cs.System)) {
	t.Helper()
	counter := r1cs.NewSystem(r1cs.Start(), nil, nil)
	walk(counter)
	f.check(t, counter.Position(), func(rows r1cs.RowSink) { walk(r1cs.NewSystem(r1cs.Start(), rows, nil)) })
}

func bitWords(n int, alloc func(int, uint64) r1cs.Bits) []r1cs.Bits {
	w := make([]r1cs.Bits, n)
	for i := range w {
		w[i] = alloc(32, 0).ReverseBits()
	}
	return w
}

// labelFixture allocates the 255 bits of each number plainly, as the fine label fixtures do.
func labelFixture(layer uint32, parentCount int) func(*r1cs.System) {
	return func(s *r1cs.System) {
		number := func() []r1cs.Bits {
			w := make([]r1cs.Bits, 8)
			for i := range 7 {
				w[i] = s.AllocPlainBits(32, 0).ReverseBytes()
			}
			w[7] = s.AllocPlainBits(31, 0).Concat(r1cs.ConstBits(1, 0)).ReverseBytes()
			return w
		}
		replicaID := number()
		parents := make([][]r1cs.Bits, parentCount)
		for i := range parents {
			parents[i] = number()
		}
		walkLabel(s, replicaID, parents, layer, s.AllocPlainBits(64, 0))
	}
}

func TestLabelsHaveTheirConstraintSystemHash(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fixture
		walk func(*r1cs.System)
	}{
		"F7 all parents allocated": {fixture{1, 531505, 532025,
			"0759ddd2645a276700fad35fe3125ec00ac1c96ee74bdab68cc2edc81f8d301e"}, func(s *r1cs.System) {
			parents := make([][]r1cs.Bits, labelParentCount)
			for i := range parents {
				parents[i] = bitWords(8, s.AllocBits)
			}
			walkLabel(s, bitWords(8, s.AllocBits), parents, 3, r1cs.ConstBits(64, 22))
		}},
		"fine: layer 1": {fixture{1, 523598, 522269,
			"b706f88b05bc75ba5abf7ece0b857fdda9831cbf1b07d0ae5a78ba45da50cb8d"}, labelFixture(1, 6)},
		"fine: layer 2": {fixture{1, 525638, 522269,
			"ba24f7aeb8e51100e38825688da4af65e9abd99a51ff44af24a29f7df40b831a"}, labelFixture(2, 14)},
		"fine: layer 11": {fixture{1, 525638, 522269,
			"0b86c5961d6fdac5e53e06506cdf6b631c65502771da0113b7b0ac8021b44807"}, labelFixture(11, 14)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.checkWalk(t, c.walk)
		})
	}
}

// stackedFixture is F17 to F22: spec section 4 alone. F23 to F27 are the circuits of sector sizes, see survey.check.
type stackedFixture struct {
	fixture
	nodes, layers, challenges, base, sub, top int
}

func (f stackedFixture) check(t *testing.T) {
	t.Helper()
	shape, err := NewShape(f.nodes, f.layers, f.challenges, f.base, f.sub, f.top)
	if err != nil {
		t.Fatal(err)
	}
	c := newCircuit("fixture", "", shape)
	f.fixture.check(t, circuit.Totals(c), func(rows r1cs.RowSink) { circuit.Describe(c, rows) })
}

func TestStackedCircuitsHaveTheirConstraintSystemHash(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]stackedFixture{
		"F17": {fixture{22, 1205053, 1206212, "e933e8bea2e68a3569205187f61c428770f083c7e7d2113babedb204b9429bc3"}, 8, 2, 1, 2, 0, 0},
		"F18": {fixture{22, 1198525, 1199620, "b9e22ee377bc73c4e08f679252c4f87948f5812be8c95358a6bf87a7279a785f"}, 8, 2, 1, 8, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f.check(t)
		})
	}
}
