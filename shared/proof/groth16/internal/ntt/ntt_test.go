package ntt

import (
	"errors"
	"fmt"
	"math/bits"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
)

func random(n int) fr.Vector {
	x := make(fr.Vector, n)
	x.MustSetRandom()
	return x
}

// extremes are the elements at the edges of representations, in memory form.
func extremes(n int) fr.Vector {
	x := random(n)
	one := fr.One()
	var minus fr.Element
	minus.Neg(&one)
	top := fr.Element{0xffffffff00000000, 0x53bda402fffe5bfe, 0x3339d80809a1d805, 0x73eda753299d7d48} // r - 1
	for i := range x {
		switch i % 5 {
		case 0:
			x[i] = fr.Element{}
		case 1:
			x[i] = top
		case 2:
			x[i] = minus
		case 3:
			x[i] = fr.Element{1}
		}
	}
	return x
}

// libraryValues are the values of the polynomial on shift w^i, bit-reversed, by the library.
func libraryValues(coefficients fr.Vector, k Kind) fr.Vector {
	x := append(fr.Vector(nil), coefficients...)
	domain := fft.NewDomain(uint64(len(x)))
	if k == Negacyclic {
		zeta, err := fft.Generator(uint64(2 * len(x)))
		if err != nil {
			panic(err)
		}
		power := fr.One()
		for i := range x {
			x[i].Mul(&x[i], &power)
			power.Mul(&power, &zeta)
		}
	}
	domain.FFT(x, fft.DIF)
	return x
}

func eachDomain(t *testing.T, test func(t *testing.T, d *Domain, k Kind)) {
	t.Helper()
	for n := BitsMin; n <= 13; n++ {
		for _, portable := range []bool{true, false} {
			for _, k := range []Kind{Cyclic, Negacyclic} {
				t.Run(fmt.Sprintf("2^%d portable %v negacyclic %v", n, portable, k), func(t *testing.T) {
					t.Parallel()
					d, err := newDomain(n, 2, portable)
					if err != nil {
						t.Fatal(err)
					}
					test(t, d, k)
				})
			}
		}
	}
}

func differ(t *testing.T, got, want fr.Vector) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] { // the form counts, too: it must be canonical
			t.Fatalf("element %d: %v, want %v", i, got[i], want[i])
		}
	}
}

func TestEvaluateEqualsTheLibrary(t *testing.T) {
	t.Parallel()
	eachDomain(t, func(t *testing.T, d *Domain, k Kind) {
		for _, x := range []fr.Vector{random(d.Size()), extremes(d.Size())} {
			want := libraryValues(x, k)
			d.Evaluate(x, k)
			differ(t, x, want)
		}
	})
}

func TestInterpolateUndoesEvaluate(t *testing.T) {
	t.Parallel()
	eachDomain(t, func(t *testing.T, d *Domain, k Kind) {
		m := fr.NewElement(uint64(d.Size()))
		for _, x := range []fr.Vector{random(d.Size()), extremes(d.Size())} {
			want := make(fr.Vector, d.Size())
			want.ScalarMul(x, &m)
			values := libraryValues(x, k)
			d.Interpolate(values, k)
			differ(t, values, want)
		}
	})
}

// Three passes, as large domains have them.
func TestThreePassesEqualTheLibrary(t *testing.T) {
	t.Parallel()
	d, err := New(19, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.passes) != 3 {
		t.Fatalf("passes %v", d.passes)
	}
	for _, k := range []Kind{Cyclic, Negacyclic} {
		x := random(d.Size())
		want := libraryValues(x, k)
		d.Evaluate(x, k)
		differ(t, x, want)
	}
}

func TestPassesCoverEveryDomain(t *testing.T) {
	t.Parallel()
	for n := BitsMin; n <= BitsMax; n++ {
		d, err := New(n, 1)
		if err != nil {
			t.Fatal(err)
		}
		depth := 0
		for i, p := range d.passes {
			last := i == len(d.passes)-1
			if p.depth != depth || p.stages < 1 || p.stages > passStagesMax {
				t.Errorf("2^%d: passes %v", n, d.passes)
			}
			if !last && n >= vectorBitsMin && n-depth-p.stages < 3 {
				t.Errorf("2^%d: pass %v has less than eight columns", n, p)
			}
			if last && n >= vectorBitsMin && p.depth < 3 {
				t.Errorf("2^%d: last pass %v has less than eight nodes", n, p)
			}
			depth += p.stages
		}
		if depth != n {
			t.Errorf("2^%d: passes %v", n, d.passes)
		}
	}
}

func TestTwiddlesAreSquareRootsOfTheirParents(t *testing.T) {
	t.Parallel()
	r := rootsTable()
	for n := uint32(1); n < 1<<12; n++ {
		w, parent, inverse := r.twiddle(n, false), r.twiddle(n/2, false), r.twiddle(n, true)
		if n%2 == 1 {
			parent.Neg(&parent)
		}
		var square, one fr.Element
		square.Square(&w)
		if !square.Equal(&parent) || !one.Mul(&w, &inverse).IsOne() {
			t.Fatalf("twiddle %d", n)
		}
	}
	want, err := fft.Generator(1 << 32)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.power(1); !got.Equal(&want) {
		t.Errorf("root %s", got.String())
	}
	if n := bits.Reverse32(1<<30) >> 1; n != 1 {
		t.Errorf("the last twiddle has exponent %d", n)
	}
}

func TestSizesOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 0, 32} {
		if _, err := New(n, 1); !errors.Is(err, ErrBits) {
			t.Errorf("2^%d: %v", n, err)
		}
	}
}

func BenchmarkDomainEvaluate(b *testing.B)    { benchmark(b, (*Domain).Evaluate) }
func BenchmarkDomainInterpolate(b *testing.B) { benchmark(b, (*Domain).Interpolate) }

func benchmark(b *testing.B, transform func(*Domain, fr.Vector, Kind)) {
	b.Helper()
	for _, n := range []int{18, 20, 22} {
		for _, portable := range []bool{false, true} {
			b.Run(fmt.Sprintf("portable=%v/n=2^%d", portable, n), func(b *testing.B) {
				d, err := newDomain(n, 2, portable)
				if err != nil {
					b.Fatal(err)
				}
				x := random(d.Size())
				b.SetBytes(int64(len(x)) * fr.Bytes)
				for b.Loop() {
					transform(d, x, Negacyclic)
				}
			})
		}
	}
}

// BenchmarkLibrary is the yardstick.
func BenchmarkLibrary(b *testing.B) {
	for _, n := range []int{18, 20, 22} {
		b.Run(fmt.Sprintf("n=2^%d", n), func(b *testing.B) {
			domain, x := fft.NewDomain(1<<n), random(1<<n)
			b.SetBytes(int64(len(x)) * fr.Bytes)
			for b.Loop() {
				domain.FFT(x, fft.DIF)
			}
		})
	}
}
