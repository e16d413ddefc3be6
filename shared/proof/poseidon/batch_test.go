package poseidon

import (
	"strconv"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

func TestHashManyEqualsHash(t *testing.T) {
	t.Parallel()
	for _, arity := range []int{2, 4, 8, 11} {
		for _, count := range []int{0, 1, 6, 7, 15, 16, 17, 23, 32, 40} {
			inputs := make([]fr.Element, arity*count)
			for i := range inputs {
				inputs[i].MustSetRandom()
			}
			got := make([]fr.Element, count)
			HashMany(got, inputs, arity)
			for k := range got {
				if want := Hash(inputs[k*arity : (k+1)*arity]); !got[k].Equal(&want) {
					t.Fatalf("arity %d, hash %d of %d: got %s, want %s", arity, k, count, hexOf(got[k]), hexOf(want))
				}
			}
		}
	}
}

func TestHashManyRefusesWrongLengths(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("17 inputs for two hashes of arity 8 did not panic")
		}
	}()
	HashMany(make([]fr.Element, 2), make([]fr.Element, 17), 8)
}

func TestHashManyAllocatesNothing(t *testing.T) {
	dst, inputs := make([]fr.Element, 32), make([]fr.Element, 8*32)
	HashMany(dst, inputs, 8)
	if got := testing.AllocsPerRun(10, func() { HashMany(dst, inputs, 8) }); got != 0 {
		t.Errorf("allocations per call = %v, want 0", got)
	}
}

func BenchmarkPoseidonHashMany(b *testing.B) {
	for _, arity := range []int{2, 8, 11} {
		dst, inputs := make([]fr.Element, 64), make([]fr.Element, arity*64)
		for i := range inputs {
			inputs[i].MustSetRandom()
		}
		b.Run("arity="+strconv.Itoa(arity), func(b *testing.B) {
			for b.Loop() {
				HashMany(dst, inputs, arity)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(dst)), "ns/hash")
		})
	}
}
