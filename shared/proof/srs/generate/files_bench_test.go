package generate

import (
	"syscall"
	"testing"

	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// BenchmarkFilesGenerate makes the files of the 8 MiB circuit, 12.9 million points in G1 and 1.0 in G2. Limits on two
// cores: 90 s and 2 GiB. The peak is the process's: run it alone.
func BenchmarkFilesGenerate(b *testing.B) {
	b.Run("sector=8MiB", func(b *testing.B) {
		c := porep.ForSize(sdr.Size8MiB)
		want := srs.Counts{IC: 40, H: 4194303, L: 3842449, A: 3815036, B: 1011290}
		for b.Loop() {
			f, err := ToFolder(b.Context(), b.TempDir(), c, FromSeed("benchmark", c.ID()), Options{})
			if err != nil {
				b.Fatal(err)
			}
			if f.Counts != want {
				b.Fatalf("counts %v, want %v", f.Counts, want)
			}
			b.SetBytes(f.Counts.ParamsBytes())
		}
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(usage.Maxrss)/1024, "peak-MiB")
		points := want.H + want.L + want.A + 2*want.B
		b.ReportMetric(float64(points)*float64(b.N)/b.Elapsed().Seconds(), "points/s")
	})
}
