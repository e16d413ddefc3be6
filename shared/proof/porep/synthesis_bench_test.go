package porep

import (
	"context"
	"runtime"
	"testing"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/seal"
	"github.com/proofrack/proofrack/shared/proof/sparse"
)

// sparseOutput is the C1 output of a sparse sector.
func sparseOutput(tb testing.TB, size sdr.SectorSize) (*c1.Output, sdr.Sector) {
	tb.Helper()
	proof, err := sdr.FindRegisteredProof(size, sdr.APIVersion1_1, sdr.Interactive)
	if err != nil {
		tb.Fatal(err)
	}
	request := seal.NewRequest(proof.Config(), 1000, 4243, "benchmark")
	out, err := sparse.Make(context.Background(), &request)
	if err != nil {
		tb.Fatal(err)
	}
	return out, request.SectorOf(out)
}

// decoded is one partition of a C1 output with its circuit.
func decoded(tb testing.TB, out *c1.Output, partition int) (*Circuit, *Witness) {
	tb.Helper()
	data, err := c1.EncodeSlice(out, partition)
	if err != nil {
		tb.Fatal(err)
	}
	c := ForSize(out.RegisteredProof.Size())
	w, err := c.Decode(data)
	if err != nil {
		tb.Fatal(err)
	}
	return c, w.(*Witness)
}

// BenchmarkPartitionSynthesize synthesizes into one warm segment on all cores.
func BenchmarkPartitionSynthesize(b *testing.B) {
	for _, size := range []sdr.SectorSize{2 << 10, 8 << 20, 512 << 20, 32 << 30} {
		b.Run("sector="+size.String(), func(b *testing.B) {
			out, _ := sparseOutput(b, size)
			c, w := decoded(b, out, 0)
			layout, err := compact.LayoutOf(c)
			if err != nil {
				b.Fatal(err)
			}
			memory := layout.Memory()
			job := compact.Job{Circuit: c, Witness: w, Workers: runtime.GOMAXPROCS(0)}
			if _, err := job.Synthesize(context.Background(), memory); err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(layout.Bytes()))
			for b.Loop() {
				if _, err := job.Synthesize(context.Background(), memory); err != nil {
					b.Fatal(err)
				}
			}
			rows := float64(layout.Counts().Rows)
			b.ReportMetric(b.Elapsed().Seconds()*1e9/float64(b.N)/rows, "ns/constraint")
			b.ReportMetric(float64(layout.Bytes()), "segment-bytes")
		})
	}
}
