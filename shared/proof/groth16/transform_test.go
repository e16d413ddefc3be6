package groth16

import (
	"fmt"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
)

// plain are evaluations held in full.
type plain struct{ a, b []fr.Element }

func (p plain) ExpandA(from int, dst []fr.Element) { copy(dst, p.a[from:]) }
func (p plain) ExpandB(from int, dst []fr.Element) { copy(dst, p.b[from:]) }
func (p plain) ExpandC(from int, dst []fr.Element) {
	for i := range dst {
		dst[i].Mul(&p.a[from+i], &p.b[from+i])
	}
}

func randomPlain(n int) plain {
	p := plain{make([]fr.Element, n), make([]fr.Element, n)}
	fr.Vector(p.a).MustSetRandom()
	fr.Vector(p.b).MustSetRandom()
	return p
}

// plainQuotient is the route of spec c2-formats.md 3.6 step by step, on the coset 7.
func plainQuotient(p plain, domainBits int) []fr.Element {
	m := 1 << domainBits
	domain := fft.NewDomain(uint64(m))
	full := func(expand func(int, []fr.Element)) []fr.Element {
		x := make([]fr.Element, m)
		expand(0, x[:len(p.a)])
		domain.FFTInverse(x, fft.DIF)
		domain.FFT(x, fft.DIT, fft.OnCoset())
		return x
	}
	a, b, c := full(p.ExpandA), full(p.ExpandB), full(p.ExpandC)
	var z fr.Element
	z.SetUint64(7)
	for range domainBits {
		z.Square(&z)
	}
	one := fr.One()
	z.Sub(&z, &one).Inverse(&z)
	for i := range a {
		a[i].Mul(&a[i], &b[i]).Sub(&a[i], &c[i]).Mul(&a[i], &z)
	}
	domain.FFTInverse(a, fft.DIF, fft.OnCoset())
	fft.BitReverse(a)
	return a
}

func TestQuotientEqualsThePlainRoute(t *testing.T) {
	t.Parallel()
	for domainBits := domainBitsMin; domainBits <= 13; domainBits++ {
		t.Run(fmt.Sprintf("2^%d", domainBits), func(t *testing.T) {
			t.Parallel()
			m := 1 << domainBits
			for _, n := range []int{1, m/2 + 1, m - 1, m} {
				tr, err := newTransform(domainBits, 3)
				if err != nil {
					t.Fatal(err)
				}
				p := randomPlain(n)
				got, scratch := make(fr.Vector, m), make(fr.Vector, m)
				got.MustSetRandom()
				scratch.MustSetRandom()
				tr.quotient(p, n, got, scratch)
				want := plainQuotient(p, domainBits)
				for i := range want {
					if !got[i].Equal(&want[i]) {
						t.Fatalf("n = %d: coefficient %d differs", n, i)
					}
				}
				if !got[m-1].IsZero() {
					t.Fatalf("n = %d: the top coefficient is not zero", n)
				}
			}
		})
	}
}

func TestDomainsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 0, 1, 32} {
		if _, err := newTransform(n, 1); err == nil {
			t.Errorf("2^%d points were accepted", n)
		}
	}
}

func BenchmarkTransformQuotient(b *testing.B) {
	for _, domainBits := range []int{18, 22} {
		b.Run(fmt.Sprintf("n=2^%d", domainBits), func(b *testing.B) {
			m := 1 << domainBits
			tr, err := newTransform(domainBits, 2)
			if err != nil {
				b.Fatal(err)
			}
			p := randomPlain(m - m/12)
			x, y := make(fr.Vector, m), make(fr.Vector, m)
			for b.Loop() {
				tr.quotient(p, len(p.a), x, y)
			}
		})
	}
}

// BenchmarkTransformLibrary is one transform of the library, the yardstick: a quotient takes six.
func BenchmarkTransformLibrary(b *testing.B) {
	for _, domainBits := range []int{18, 22} {
		b.Run(fmt.Sprintf("n=2^%d", domainBits), func(b *testing.B) {
			domain := fft.NewDomain(1 << domainBits)
			x := make(fr.Vector, 1<<domainBits)
			x.MustSetRandom()
			for b.Loop() {
				domain.FFT(x, fft.DIF)
			}
		})
	}
}
