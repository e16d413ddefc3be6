package r1cs

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Pattern is what a walk hands over to a Values with every element replaced by its place in a list: which variable and
// which row takes which element. It depends on the walk's code alone, so one recorded from a sample serves all walks of
// the same code whose list was computed elsewhere.
type Pattern struct {
	steps []patternStep
	size  Position // of the walk
	list  int      // length of the list
	last  int32    // place of the last variable
}

// patternStep is one call of a Values.
type patternStep struct {
	kind patternKind
	a, b int32 // places in the list; b of a row with a bit is the bit
}

type patternKind uint8

const (
	patternAux patternKind = iota
	patternRow
	patternBitRow
)

// NewPattern records a walk. The list has every element that the walk hands over, each once; it panics when one is
// missing or two are equal, when bits of words or inputs are handed over, and when no variable is allocated.
func NewPattern(list []fr.Element, walk func(*System)) *Pattern {
	r := recorder{places: make(map[fr.Element]int32, len(list)), pattern: &Pattern{list: len(list), last: -1}}
	for i, v := range list {
		if _, ok := r.places[v]; ok {
			panic(fmt.Sprintf("r1cs: element %d of the list of a pattern occurs before", i))
		}
		r.places[v] = int32(i)
	}
	s := NewSystem(Start(), nil, &r)
	walk(s)
	r.pattern.size = s.Position().Minus(Start())
	if r.pattern.last < 0 {
		panic("r1cs: pattern without a variable")
	}
	return r.pattern
}

// recorder is the Values of a walk that is recorded.
type recorder struct {
	places  map[fr.Element]int32
	pattern *Pattern
}

func (r *recorder) place(v *fr.Element) int32 {
	i, ok := r.places[*v]
	if !ok {
		panic(fmt.Sprintf("r1cs: step %d of a pattern takes %s, which its list does not have",
			len(r.pattern.steps), v.String()))
	}
	return i
}

func (r *recorder) add(kind patternKind, a, b int32) {
	r.pattern.steps = append(r.pattern.steps, patternStep{kind: kind, a: a, b: b})
}

func (r *recorder) FullRow(a, b *fr.Element) { r.add(patternRow, r.place(a), r.place(b)) }
func (r *recorder) FullBitRow(a *fr.Element, bit uint64) {
	r.add(patternBitRow, r.place(a), int32(bit))
}
func (r *recorder) AuxFull(v *fr.Element) {
	r.pattern.last = r.place(v)
	r.add(patternAux, r.pattern.last, 0)
}

func (r *recorder) SmallRows(int, uint64, uint64, uint64) {
	panic("r1cs: pattern of a walk with small rows")
}
func (r *recorder) AuxBits(int, uint64) { panic("r1cs: pattern of a walk with bits") }
func (r *recorder) Input(*fr.Element)   { panic("r1cs: pattern of a walk with inputs") }

// ValuesOnly tells that no rows are wanted: a walk may then be replaced by Replay.
func (s *System) ValuesOnly() bool { return s.rows == nil }

// Replay does what the recorded walk does, with the elements of a list, and returns its last variable. It panics when
// rows are wanted and when the list has another length than the recorded one.
func (s *System) Replay(p *Pattern, list []fr.Element) Num {
	if s.rows != nil || len(list) != p.list {
		panic(fmt.Sprintf("r1cs: pattern over %d elements replayed with %d, rows wanted: %t",
			p.list, len(list), s.rows != nil))
	}
	s.pos = s.pos.Plus(p.size)
	if s.values != nil {
		for i := range p.steps {
			switch step := &p.steps[i]; step.kind {
			case patternAux:
				s.values.AuxFull(&list[step.a])
			case patternRow:
				s.values.FullRow(&list[step.a], &list[step.b])
			case patternBitRow:
				s.values.FullBitRow(&list[step.a], uint64(step.b))
			}
		}
	}
	return Num{Val: list[p.last], v: AuxVar(s.pos.Aux - 1)}
}
