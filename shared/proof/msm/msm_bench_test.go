package msm

import (
	"context"
	"fmt"
	"math/big"
	"sync"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// benchCount is the greatest number of bases in the benchmarks.
const benchCount = 1 << 22

// benchLogs are the logarithms of the bases and other random scalars.
var benchLogs = sync.OnceValue(func() sample {
	r := newRand(40)
	return sample{logs: randomScalars(r, benchCount), scalars: randomScalars(r, benchCount)}
})

var benchG1 = sync.OnceValues(func() ([]byte, error) {
	_, _, g, _ := bls12381.Generators()
	table, err := NewFixedBaseG1(context.Background(), g, Config{})
	if err != nil {
		return nil, err
	}
	encoded := make([]byte, benchCount*G1Bytes)
	return encoded, table.Encode(context.Background(), encoded, benchLogs().logs)
})

var benchG2 = sync.OnceValues(func() ([]byte, error) {
	_, _, _, g := bls12381.Generators()
	table, err := NewFixedBaseG2(context.Background(), g, Config{})
	if err != nil {
		return nil, err
	}
	const n = benchCount / 16
	encoded := make([]byte, n*G2Bytes)
	return encoded, table.Encode(context.Background(), encoded, benchLogs().logs[:n])
})

func benchBases[A any](
	b *testing.B, encoded func() ([]byte, error), read func([]byte) (Bases[A], error), n int,
) (Bases[A], sample) {
	b.Helper()
	bytes, err := encoded()
	if err != nil {
		b.Fatal(err)
	}
	bases, err := read(bytes)
	if err != nil {
		b.Fatal(err)
	}
	return bases.Slice(0, n), sample{logs: benchLogs().logs[:n], scalars: benchLogs().scalars[:n]}
}

func reportPoints(b *testing.B, n int) {
	b.Helper()
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "points/s")
}

// benchBackends runs a benchmark on both kernels.
func benchBackends(b *testing.B, bench func(b *testing.B, c Config)) {
	for _, portable := range []bool{false, true} {
		b.Run(fmt.Sprintf("portable=%v", portable), func(b *testing.B) { bench(b, Config{Portable: portable}) })
	}
}

func BenchmarkG1Multiply(b *testing.B) {
	for _, log := range []int{12, 16, 18, 20, 22} {
		n := 1 << log
		b.Run(fmt.Sprintf("n=2^%d", log), func(b *testing.B) {
			benchBackends(b, func(b *testing.B, c Config) {
				bases, s := benchBases(b, benchG1, EncodedG1, n)
				want := s.wantG1()
				for b.Loop() {
					got, err := G1(b.Context(), bases, s.scalars, c)
					if err != nil || !got.Equal(&want) {
						b.Fatalf("got %v, %v, want %v", got, err, want)
					}
				}
				reportPoints(b, n)
			})
		})
	}
}

// BenchmarkGnarkG1Multiply is the library's multiplication; n=2^20 is the unit that others are measured in.
func BenchmarkGnarkG1Multiply(b *testing.B) {
	for _, log := range []int{12, 16, 18, 20} {
		n := 1 << log
		b.Run(fmt.Sprintf("n=2^%d", log), func(b *testing.B) {
			bases, s := benchBases(b, benchG1, EncodedG1, n)
			want := s.wantG1()
			points := make([]bls12381.G1Affine, n)
			k := newG1Kernel(true)
			for i := range points {
				dst := k.newStore(1)
				if err := k.load(dst, 0, bases, []int32{int32(i)}); err != nil {
					b.Fatal(err)
				}
				points[i] = k.affine(dst, 0)
			}
			for b.Loop() {
				var got bls12381.G1Affine
				if _, err := got.MultiExp(points, s.scalars, ecc.MultiExpConfig{}); err != nil || !got.Equal(&want) {
					b.Fatalf("got %v, %v, want %v", got, err, want)
				}
			}
			reportPoints(b, n)
		})
	}
}

// BenchmarkG1Ones adds selected points: every second one.
func BenchmarkG1Ones(b *testing.B) {
	n := 1 << 20
	b.Run("n=2^20", func(b *testing.B) {
		benchBackends(b, func(b *testing.B, c Config) {
			bases, s := benchBases(b, benchG1, EncodedG1, n)
			ones := make([]uint64, n/64)
			for i := range ones {
				ones[i] = 0x5555555555555555
			}
			var sum fr.Element
			for i := 0; i < n; i += 2 {
				sum.Add(&sum, &s.logs[i])
			}
			var want bls12381.G1Affine
			want.ScalarMultiplicationBase(sum.BigInt(new(big.Int)))
			for b.Loop() {
				a, err := NewG1Accumulator(c)
				if err != nil {
					b.Fatal(err)
				}
				if err := a.AddSplit(b.Context(), bases, Split{Ones: ones}); err != nil {
					b.Fatal(err)
				}
				got, err := a.Result(b.Context())
				if err != nil || !got.Equal(&want) {
					b.Fatalf("got %v, %v, want %v", got, err, want)
				}
			}
			reportPoints(b, n/2)
		})
	})
}

// BenchmarkG1Split is a witness: 98.5 % of the scalars are 0 or 1, half of each.
func BenchmarkG1Split(b *testing.B) {
	n := 3840000
	b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
		benchBackends(b, func(b *testing.B, c Config) {
			bases, s := benchBases(b, benchG1, EncodedG1, n)
			scalars := append([]fr.Element(nil), s.scalars...)
			r := newRand(41)
			for i := range scalars {
				switch x := r.Uint32() % 1000; {
				case x < 493:
					scalars[i] = fr.Element{}
				case x < 985:
					scalars[i] = fr.One()
				}
			}
			s.scalars = scalars
			split := splitOf(scalars)
			want := s.wantG1()
			for b.Loop() {
				a, err := NewG1Accumulator(c)
				if err != nil {
					b.Fatal(err)
				}
				if err := a.AddSplit(b.Context(), bases, split); err != nil {
					b.Fatal(err)
				}
				got, err := a.Result(b.Context())
				if err != nil || !got.Equal(&want) {
					b.Fatalf("got %v, %v, want %v", got, err, want)
				}
			}
			reportPoints(b, n)
		})
	})
}

func BenchmarkG2Multiply(b *testing.B) {
	for _, log := range []int{12, 16, 18} {
		n := 1 << log
		b.Run(fmt.Sprintf("n=2^%d", log), func(b *testing.B) {
			benchBackends(b, func(b *testing.B, c Config) {
				bases, s := benchBases(b, benchG2, EncodedG2, n)
				want := s.wantG2()
				for b.Loop() {
					got, err := G2(b.Context(), bases, s.scalars, c)
					if err != nil || !got.Equal(&want) {
						b.Fatalf("got %v, %v, want %v", got, err, want)
					}
				}
				reportPoints(b, n)
			})
		})
	}
}

func BenchmarkFixedBaseG1Encode(b *testing.B) {
	benchBackends(b, func(b *testing.B, c Config) {
		_, _, g, _ := bls12381.Generators()
		f, err := NewFixedBaseG1(b.Context(), g, c)
		if err != nil {
			b.Fatal(err)
		}
		const n = 1 << 18
		out := make([]byte, n*G1Bytes)
		for b.Loop() {
			if err := f.Encode(b.Context(), out, benchLogs().logs[:n]); err != nil {
				b.Fatal(err)
			}
		}
		reportPoints(b, n)
	})
}

func BenchmarkFixedBaseG2Encode(b *testing.B) {
	benchBackends(b, func(b *testing.B, c Config) {
		_, _, _, g := bls12381.Generators()
		f, err := NewFixedBaseG2(b.Context(), g, c)
		if err != nil {
			b.Fatal(err)
		}
		const n = 1 << 16
		out := make([]byte, n*G2Bytes)
		for b.Loop() {
			if err := f.Encode(b.Context(), out, benchLogs().logs[:n]); err != nil {
				b.Fatal(err)
			}
		}
		reportPoints(b, n)
	})
}
