package compact_test

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// handover is one call of r1cs.Values.
type handover struct {
	kind      string
	n         int
	a0, a1, b uint64
	x, y      fr.Element
}

func (h *handover) to(values r1cs.Values) {
	switch h.kind {
	case "rows":
		values.SmallRows(h.n, h.a0, h.a1, h.b)
	case "full row":
		values.FullRow(&h.x, &h.y)
	case "full-bit row":
		values.FullBitRow(&h.x, h.b)
	case "bits":
		values.AuxBits(h.n, h.b)
	case "full aux":
		values.AuxFull(&h.x)
	case "input":
		values.Input(&h.x)
	}
}

// scripted is a circuit and its witness that hand over what a script says, cut into sections.
type scripted struct {
	id       string
	sections [][]handover
	// pause is called before each handover; it upsets the order in which sections are written.
	pause func()
}

func (s *scripted) ID() string         { return s.id }
func (s *scripted) ParamsName() string { return s.id }
func (s *scripted) SharedAux() int     { return 0 }

// Sections counts what the script hands over.
func (s *scripted) Sections() []r1cs.Position {
	positions := []r1cs.Position{r1cs.Start()}
	for _, section := range s.sections {
		p := positions[len(positions)-1]
		for _, h := range section {
			p = p.Plus(h.counts())
		}
		positions = append(positions, p)
	}
	return positions
}

func (h *handover) counts() r1cs.Position {
	switch h.kind {
	case "rows":
		return r1cs.Position{Rows: h.n}
	case "full row":
		return r1cs.Position{Rows: 1, FullA: 1, FullB: 1}
	case "full-bit row":
		return r1cs.Position{Rows: 1, FullA: 1}
	case "bits":
		return r1cs.Position{Aux: h.n}
	case "full aux":
		return r1cs.Position{Aux: 1, FullAux: 1}
	}
	return r1cs.Position{Inputs: 1}
}

func (s *scripted) Describe(int, r1cs.RowSink) { panic("a script has no combinations") }

func (s *scripted) Decode([]byte) (circuit.Witness, error) { return nil, errors.ErrUnsupported }

func (s *scripted) Synthesize(section int, values r1cs.Values) {
	for i := range s.sections[section] {
		if s.pause != nil {
			s.pause()
		}
		s.sections[section][i].to(values)
	}
}

func (s *scripted) PublicInputs() []fr.Element { return nil }

// upset lets other goroutines run at random moments, more often than not at some and hardly ever at others.
func upset() {
	for range rand.IntN(4) * rand.IntN(4) {
		runtime.Gosched()
	}
}

// drawElement draws 0, 1 and other small ones often: a full element may have any value.
func drawElement(t *rapid.T) fr.Element {
	var e fr.Element
	e.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "element"))
	return e
}

func drawHandover(t *rapid.T) handover {
	h := handover{kind: rapid.SampledFrom(
		[]string{"rows", "rows", "rows", "full row", "full-bit row", "bits", "bits", "full aux", "input"}).Draw(t, "kind")}
	word := func(name string) uint64 { return rapid.Uint64().Draw(t, name) >> (64 - h.n) }
	switch h.kind {
	case "rows":
		h.n = rapid.OneOf(rapid.IntRange(0, 64), rapid.SampledFrom([]int{32, 64, 63})).Draw(t, "n")
		h.a0, h.a1, h.b = word("a0"), word("a1"), word("b")
	case "bits":
		h.n = rapid.OneOf(rapid.IntRange(0, 64), rapid.SampledFrom([]int{32, 64, 63})).Draw(t, "n")
		h.b = word("b")
	case "full-bit row":
		h.b = rapid.Uint64Range(0, 1).Draw(t, "b")
		h.x = drawElement(t)
	default:
		h.x, h.y = drawElement(t), drawElement(t)
	}
	return h
}

// drawScript draws handovers and cuts them at random places; sections may be empty. Some scripts repeat a run of
// handovers so that vectors cross the blocks of the rank index.
func drawScript(t *rapid.T) *scripted {
	all := rapid.SliceOfN(rapid.Custom(drawHandover), 0, 40).Draw(t, "handovers")
	all = slices.Repeat(all, rapid.SampledFrom([]int{1, 1, 1, 2, 3, 20}).Draw(t, "repeat"))
	cuts := []int{0, len(all)}
	for range rapid.IntRange(0, 7).Draw(t, "sections") {
		cuts = append(cuts, rapid.IntRange(0, len(all)).Draw(t, "cut"))
	}
	slices.Sort(cuts)
	s := &scripted{id: "scripted", pause: upset}
	for i := range len(cuts) - 1 {
		s.sections = append(s.sections, all[cuts[i]:cuts[i+1]])
	}
	return s
}

// dense is what a segment must hold, without any packing.
type dense struct {
	a, b, c, aux, inputs []fr.Element
	auxFull              []bool
}

// denseOf plays the script with a trace of its own and appends the input rows (spec c2-circuit.md 1.3).
func denseOf(s *scripted) *dense {
	trace := newTrace()
	for i := range s.sections {
		for k := range s.sections[i] {
			s.sections[i][k].to(trace)
		}
	}
	d := &dense{aux: trace.Aux, inputs: trace.Inputs}
	d.a = append(trace.A, trace.Inputs...)
	d.b = append(trace.B, make([]fr.Element, len(trace.Inputs))...)
	d.c = make([]fr.Element, len(d.a))
	for i := range d.c {
		d.c[i].Mul(&d.a[i], &d.b[i])
	}
	for _, k := range trace.AuxKinds {
		d.auxFull = append(d.auxFull, k == 'f')
	}
	return d
}
