package groth16

import (
	"errors"
	"fmt"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	"github.com/consensys/gnark-crypto/utils"

	"github.com/proofrack/proofrack/shared/proof/groth16/internal/ntt"
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
	utils.BitReverse(a)
	return a
}

func TestQuotientEqualsThePlainRoute(t *testing.T) {
	t.Parallel()
	for domainBits := 1; domainBits <= 14; domainBits++ {
		t.Run(fmt.Sprintf("2^%d", domainBits), func(t *testing.T) {
			t.Parallel()
			m := 1 << domainBits
			for _, n := range []int{1, m/2 + 1, m - 1, m} {
				q, err := newQuotient(domainBits, 3)
				if err != nil {
					t.Fatal(err)
				}
				p := randomPlain(n)
				got, scratch := make(fr.Vector, m), make(fr.Vector, m)
				got.MustSetRandom()
				scratch.MustSetRandom()
				if err := q.compute(t.Context(), p, n, got, scratch); err != nil {
					t.Fatal(err)
				}
				want := plainQuotient(p, domainBits)
				for i := range want {
					if got[i] != want[i] {
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

// The coefficients of spec c2-formats.md 3.9.
func TestKnownAnswerQuotient(t *testing.T) {
	t.Parallel()
	numbers := func(v ...uint64) (e []fr.Element) {
		for _, x := range v {
			e = append(e, fr.NewElement(x))
		}
		return e
	}
	// x·x, y·x, (x+5)·1, and the inputs 1 and 35 times nothing.
	p := plain{a: numbers(3, 9, 8, 1, 35), b: numbers(3, 3, 1, 0, 0)}
	q, err := newQuotient(3, 1)
	if err != nil {
		t.Fatal(err)
	}
	h, scratch := make(fr.Vector, 8), make(fr.Vector, 8)
	if err := q.compute(t.Context(), p, 5, h, scratch); err != nil {
		t.Fatal(err)
	}
	for i, hex := range map[int]string{
		0: "48748893fa026e4d200427050605270354568681dffef97f5fffffff60000000",
		6: "60a6d627a7431f3eb112e94e656cc725c5305ea65eec7a4ffd42f637488f17ac",
		7: "0",
	} {
		var want fr.Element
		if _, err := want.SetString("0x" + hex); err != nil {
			t.Fatal(err)
		}
		if !h[i].Equal(&want) {
			t.Errorf("h_%d = %s, want %s", i, h[i].Text(16), hex)
		}
	}
}

// broken gives c other than a·b at one place.
type broken struct{ plain }

func (p broken) ExpandC(from int, dst []fr.Element) {
	p.plain.ExpandC(from, dst)
	if from == 0 {
		dst[0].Double(&dst[0])
	}
}

func TestQuotientOfTooHighDegreeIsAnError(t *testing.T) {
	t.Parallel()
	q, err := newQuotient(9, 2)
	if err != nil {
		t.Fatal(err)
	}
	x, y := make(fr.Vector, 512), make(fr.Vector, 512)
	if err := q.compute(t.Context(), broken{randomPlain(500)}, 500, x, y); !errors.Is(err, ErrQuotient) {
		t.Errorf("got %v, want ErrQuotient", err)
	}
}

func TestDomainsOutOfRangeAreRefused(t *testing.T) {
	t.Parallel()
	for _, n := range []int{-1, 0, 32} {
		if _, err := newQuotient(n, 1); !errors.Is(err, ntt.ErrBits) {
			t.Errorf("2^%d points: %v", n, err)
		}
	}
}

func BenchmarkQuotientCompute(b *testing.B) {
	for _, domainBits := range []int{18, 22} {
		b.Run(fmt.Sprintf("n=2^%d", domainBits), func(b *testing.B) {
			m := 1 << domainBits
			q, err := newQuotient(domainBits, 2)
			if err != nil {
				b.Fatal(err)
			}
			p := randomPlain(m - m/12)
			x, y := make(fr.Vector, m), make(fr.Vector, m)
			for b.Loop() {
				if err := q.compute(b.Context(), p, len(p.a), x, y); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
