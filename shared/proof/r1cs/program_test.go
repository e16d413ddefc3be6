package r1cs_test

import (
	"slices"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/r1cs/r1cstest"
)

// word is one list of Booleans in both worlds.
type word struct {
	real  r1cs.Bits
	model []modelBool
}

// step is one operation on earlier words; what it means follows from kind.
type step struct {
	kind    string
	x, y, z int // which earlier words
	n, from int
	value   uint64
	full    fr.Element
}

// program is a random sequence of operations over words of one length. Values are apart from structure: the same
// program can be run with other values.
type program struct {
	bits  int
	steps []step
}

var bitOperations = []string{"alloc", "const", "plain", "complement", "xor", "and", "notboth", "ch", "reverse", "mix"}

func drawProgram(t *rapid.T) program {
	p := program{bits: rapid.OneOf(rapid.Just(32), rapid.IntRange(1, 64)).Draw(t, "bits")}
	operations := slices.Clone(bitOperations)
	if p.bits <= 32 {
		operations = append(operations, "maj", "maj")
	}
	if p.bits == 32 {
		operations = append(operations, "rotate", "shift", "bytes", "number")
	}
	start := []string{"alloc", "const", "alloc"}
	for i := range rapid.IntRange(3, 24).Draw(t, "steps") {
		s := step{
			x: rapid.IntRange(0, max(0, i-1)).Draw(t, "x"), y: rapid.IntRange(0, max(0, i-1)).Draw(t, "y"),
			z: rapid.IntRange(0, max(0, i-1)).Draw(t, "z"),
			n: rapid.IntRange(0, 31).Draw(t, "n"), from: rapid.IntRange(0, p.bits).Draw(t, "from"),
			value: rapid.Uint64().Draw(t, "value") >> (64 - p.bits),
		}
		s.full.SetUint64(rapid.Uint64().Draw(t, "full")).Square(&s.full).Square(&s.full)
		if i < len(start) {
			s.kind = start[i]
		} else {
			s.kind = rapid.SampledFrom(operations).Draw(t, "kind")
		}
		p.steps = append(p.steps, s)
	}
	return p
}

// revalued is the program with other values of variables; constants are structure and stay.
func (p program) revalued() program {
	q := program{bits: p.bits, steps: slices.Clone(p.steps)}
	for i := range q.steps {
		if q.steps[i].kind != "const" {
			q.steps[i].value ^= 0x5a5a5a5a5a5a5a5a >> (64 - p.bits)
			q.steps[i].full.Square(&q.steps[i].full)
		}
	}
	return q
}

// run runs the program on the system and, when there is one, on the model. At the end every word is shown in a row of
// its own, so that the rows tell which Booleans it consists of.
func (p program) run(t *rapid.T, s *r1cs.System, m *model) {
	var words []word
	for _, st := range p.steps {
		words = append(words, p.apply(s, m, st, words)...)
	}
	for _, w := range words {
		sum := s.BitSum()
		sum.Add(w.real, 3)
		s.Assign(sum.Lin())
		m.show(w.model, 3)
		if want := valueOf(w.model); w.real.N != len(w.model) || w.real.Val != want {
			t.Fatalf("word of %d bits %#x, want %d bits %#x", w.real.N, w.real.Val, len(w.model), want)
		}
		if got, want := w.real.AllConst(), allConst(w.model); got != want {
			t.Fatalf("all constant: %v, want %v", got, want)
		}
	}
}

func (p program) apply(s *r1cs.System, m *model, st step, words []word) []word {
	one := func(b r1cs.Bits, l []modelBool) []word { return []word{{b, l}} }
	var x, y, z word
	if len(words) > 0 {
		x, y, z = words[st.x], words[st.y], words[st.z]
	}
	switch st.kind {
	case "alloc":
		return one(s.AllocBits(p.bits, st.value), m.allocBits(p.bits, st.value, true))
	case "plain":
		return one(s.AllocPlainBits(p.bits, st.value), m.allocBits(p.bits, st.value, false))
	case "const":
		return one(r1cs.ConstBits(p.bits, st.value), constBools(p.bits, st.value))
	case "complement":
		return one(x.real.Complement(), mapBools(x.model, modelBool.not))
	case "xor":
		return one(s.Xor(x.real, y.real), m.each(func(b ...modelBool) modelBool { return m.xor(b[0], b[1]) }, x, y))
	case "and":
		return one(s.And(x.real, y.real), m.each(func(b ...modelBool) modelBool { return m.and(b[0], b[1]) }, x, y))
	case "notboth":
		return one(s.NotBoth(x.real, y.real),
			m.each(func(b ...modelBool) modelBool { return m.and(b[0].not(), b[1].not()) }, x, y))
	case "ch":
		return one(s.Ch(x.real, y.real, z.real),
			m.each(func(b ...modelBool) modelBool { return m.ch(b[0], b[1], b[2]) }, x, y, z))
	case "maj":
		return one(s.Maj(x.real, y.real, z.real),
			m.each(func(b ...modelBool) modelBool { return m.maj(b[0], b[1], b[2]) }, x, y, z))
	case "reverse":
		l := slices.Clone(x.model)
		slices.Reverse(l)
		return one(x.real.ReverseBits(), l)
	case "mix": // the first bits of x, the others of y: makes every mixture of kinds
		return one(x.real.Slice(0, st.from).Concat(y.real.Slice(st.from, p.bits-st.from)),
			append(slices.Clone(x.model[:st.from]), y.model[st.from:]...))
	case "rotate":
		return one(x.real.RotateRight(st.n), append(slices.Clone(x.model[st.n:]), x.model[:st.n]...))
	case "shift":
		return one(x.real.ShiftRight(st.n), append(slices.Clone(x.model[st.n:]), constBools(st.n, 0)...))
	case "bytes":
		var l []modelBool
		for i := 3; i >= 0; i-- {
			l = append(l, x.model[8*i:8*i+8]...)
		}
		return one(x.real.ReverseBytes(), l)
	case "number":
		return numberWords(s, m, st)
	}
	panic(st.kind)
}

// numberWords decomposes a number.
func numberWords(s *r1cs.System, m *model, st step) []word {
	limbs := s.NumBits(s.Alloc(st.full))
	l := m.numBits(st.full)
	words := make([]word, 0, len(limbs))
	for i, limb := range limbs {
		words = append(words, word{limb, l[32*i : 32*i+32]})
	}
	return words
}

func TestBitGatesFollowTheRulesBitByBit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		m := newModel()
		trace := r1cstest.Walk(func(s *r1cs.System) { p.run(t, s, m) })
		if diff := cmp.Diff(m.rowsInNormalForm(), trace.Rows); diff != "" {
			t.Fatalf("rows of the rules (-) and ours (+) differ:\n%s", diff)
		}
		if diff := cmp.Diff(m.aux, trace.Aux); diff != "" {
			t.Fatalf("auxiliaries of the rules (-) and ours (+) differ:\n%s", diff)
		}
		if why := trace.Failure(); why != "" {
			t.Fatal(why)
		}
	})
}

func TestStructureDoesNotDependOnValuesNorOnWhichEndsAreThere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		var traces []*r1cstest.Trace
		for _, q := range []program{p, p.revalued()} {
			traces = append(traces, r1cstest.Check(t, func(s *r1cs.System) { q.run(t, s, newModel()) }))
		}
		if why := traces[0].SameStructure(traces[1]); why != "" {
			t.Fatalf("other values: %s", why)
		}
	})
}
