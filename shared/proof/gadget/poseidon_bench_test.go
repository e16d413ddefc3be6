package gadget_test

import (
	"fmt"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/gadget"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// discard takes values as fast as anything can.
type discard struct{}

func (discard) SmallRows(int, uint64, uint64, uint64) {}
func (discard) FullRow(_, _ *fr.Element)              {}
func (discard) FullBitRow(*fr.Element, uint64)        {}
func (discard) AuxBits(int, uint64)                   {}
func (discard) AuxFull(*fr.Element)                   {}
func (discard) Input(*fr.Element)                     {}

// BenchmarkPoseidonValues walks one hash for its values alone.
func BenchmarkPoseidonValues(b *testing.B) {
	for _, arity := range []int{2, 8, 11} {
		b.Run(fmt.Sprintf("arity=%d", arity), func(b *testing.B) {
			s := r1cs.NewSystem(r1cs.Start(), nil, discard{})
			inputs := make([]r1cs.Num, arity)
			for i := range inputs {
				inputs[i] = s.Alloc(r1cs.Element(uint64(i + 1)))
			}
			before := s.Position().Rows
			for b.Loop() {
				gadget.Poseidon(s, inputs)
			}
			rows := float64(s.Position().Rows-before) / float64(b.N)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/constraint")
		})
	}
}

// BenchmarkClimbValues walks sixteen climbs whose hashes are computed ahead, and computes them alone.
func BenchmarkClimbValues(b *testing.B) {
	climbs := make([]gadget.Climb, 16)
	for i := range climbs {
		climbs[i].Path = make([]gadget.PathElement, 8)
		for k := range climbs[i].Path {
			climbs[i].Path[k].Siblings = make([]fr.Element, 7)
		}
	}
	var lookahead gadget.Lookahead
	b.Run("ahead", func(b *testing.B) {
		for b.Loop() {
			lookahead.Climb(climbs)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(16*8), "ns/hash")
	})
	b.Run("walk", func(b *testing.B) {
		s := r1cs.NewSystem(r1cs.Start(), nil, discard{})
		all := lookahead.Climb(climbs)
		before := s.Position().Rows
		for b.Loop() {
			for i := range climbs {
				ahead := all[i]
				gadget.Inclusion(s, s.Alloc(fr.Element{}), climbs[i].Path, ahead.Poseidon, func() r1cs.Num {
					return s.Alloc(fr.Element{})
				})
			}
		}
		rows := float64(s.Position().Rows-before) / float64(b.N)
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/constraint")
	})
}
