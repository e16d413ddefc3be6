package seal_test

import (
	"testing"

	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/seal"
)

func BenchmarkSectorSeal(b *testing.B) {
	for _, number := range []sdr.RegisteredProof{5, 6} {
		request := seal.NewRequest(number.Config(), 1000, 4243, "benchmark")
		b.Run("size="+number.Size().String(), func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(number.Size()))
			for b.Loop() {
				if _, err := seal.Seal(b.Context(), &request, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
