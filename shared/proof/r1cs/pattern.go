package r1cs

import (
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Pattern is what a walk hands over to a Values with every element replaced by its place in a list: which variable and
// which row takes which element. It depends on the walk's code alone, so one recorded from a sample serves all walks of
// the same code whose list was computed elsewhere. Patterns are shared and must not be changed.
type Pattern struct {
	// Aux are the places of the variables, A those of every row's a, B those of the full among the rows' b. Variables,
	// rows and full b are in the order of their allocation each, but not among each other.
	Aux, A, B []int32
	// Bit i of Full tells that row i has a full b; of Bits, that its b is 1. Bit i is in word i/64.
	Full, Bits []uint64

	size Position // of the walk
	list int      // length of the list
}

// PatternValues is a Values that takes a whole pattern at a time.
type PatternValues interface {
	Values
	// Pattern appends the variables and rows of a pattern, with the elements of a list.
	Pattern(p *Pattern, list []fr.Element)
}

// NewPattern records a walk. The list has every element that the walk hands over, each once; it panics when one is
// missing or two are equal, when bits of words or inputs are handed over, and when no variable is allocated.
func NewPattern(list []fr.Element, walk func(*System)) *Pattern {
	r := recorder{places: make(map[fr.Element]int32, len(list)), pattern: &Pattern{list: len(list)}}
	for i, v := range list {
		if _, ok := r.places[v]; ok {
			panic(fmt.Sprintf("r1cs: element %d of the list of a pattern occurs before", i))
		}
		r.places[v] = int32(i)
	}
	s := NewSystem(Start(), nil, &r)
	walk(s)
	r.pattern.size = s.Position().Minus(Start())
	if len(r.pattern.Aux) == 0 {
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
		panic(fmt.Sprintf("r1cs: a pattern takes %s behind %d variables and %d rows, which its list does not have",
			v.String(), len(r.pattern.Aux), len(r.pattern.A)))
	}
	return i
}

func (r *recorder) AuxFull(v *fr.Element) { r.pattern.Aux = append(r.pattern.Aux, r.place(v)) }

func (r *recorder) FullRow(a, b *fr.Element) {
	r.row(a, 1, 0)
	r.pattern.B = append(r.pattern.B, r.place(b))
}

func (r *recorder) FullBitRow(a *fr.Element, b uint64) { r.row(a, 0, b) }

func (r *recorder) row(a *fr.Element, full, bit uint64) {
	p := r.pattern
	i := len(p.A)
	if i%64 == 0 {
		p.Full, p.Bits = append(p.Full, 0), append(p.Bits, 0)
	}
	p.Full[i/64] |= full << (i % 64)
	p.Bits[i/64] |= bit << (i % 64)
	p.A = append(p.A, r.place(a))
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
	switch values := s.values.(type) {
	case nil:
	case PatternValues:
		values.Pattern(p, list)
	default:
		p.handOver(values, list)
	}
	return Num{Val: list[p.Aux[len(p.Aux)-1]], v: AuxVar(s.pos.Aux - 1)}
}

// handOver hands a pattern over one by one.
func (p *Pattern) handOver(values Values, list []fr.Element) {
	for _, place := range p.Aux {
		values.AuxFull(&list[place])
	}
	full := p.B
	for i, place := range p.A {
		if p.Full[i/64]>>(i%64)&1 == 0 {
			values.FullBitRow(&list[place], p.Bits[i/64]>>(i%64)&1)
			continue
		}
		values.FullRow(&list[place], &list[full[0]])
		full = full[1:]
	}
}
