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
