package generate

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/big"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
	"github.com/consensys/gnark-crypto/utils"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// lagrangeByFFT are all L_k(tau) by the other route of spec 3.9: the inverse FFT of the powers of tau.
func lagrangeByFFT(bits int, tau fr.Element) []fr.Element {
	values := make([]fr.Element, 1<<bits)
	values[0].SetOne()
	for i := 1; i < len(values); i++ {
		values[i].Mul(&values[i-1], &tau)
	}
	if bits > 0 {
		fft.NewDomain(uint64(len(values))).FFTInverse(values, fft.DIF)
		utils.BitReverse(values)
	}
	return values
}

func TestLagrangeValuesEqualTheInverseFFT(t *testing.T) {
	t.Parallel()
	for _, bits := range []int{0, 1, 5, 12} {
		tau := FromSeed("lagrange", fmt.Sprint(bits)).Tau
		want := lagrangeByFFT(bits, tau)
		d, err := newDomain(bits, tau)
		if err != nil {
			t.Fatal(err)
		}
		for _, start := range []int{0, len(want) / 3, max(0, len(want)-1)} {
			l := d.lagrangeFrom(start)
			for k := start; k < len(want); k++ {
				if got := l.next(); !got.Equal(&want[k]) {
					t.Fatalf("2^%d from %d: L_%d is %v, want %v", bits, start, k, got, &want[k])
				}
			}
		}
	}
}

// randomCircuit draws a circuit of up to four sections in which every auxiliary occurs in some C.
func randomCircuit(t *rapid.T) *listed {
	c := &listed{name: "random", starts: []r1cs.Position{r1cs.Start()}}
	inputs := rapid.IntRange(1, 4).Draw(t, "inputs")
	c.shared = rapid.IntRange(0, 5).Draw(t, "shared")
	at := r1cs.Start()
	for section := range rapid.IntRange(1, 4).Draw(t, "sections") {
		private := rapid.IntRange(0, 6).Draw(t, "private")
		if section == 0 {
			private += c.shared
			at.Inputs = inputs
		}
		var vars []r1cs.Var // what the section may use
		for i := range inputs {
			vars = append(vars, r1cs.InputVar(i))
		}
		for i := range min(c.shared, at.Aux+private) {
			vars = append(vars, r1cs.AuxVar(i))
		}
		for i := range private {
			if at.Aux+i >= c.shared {
				vars = append(vars, r1cs.AuxVar(at.Aux+i))
			}
		}
		var rows []row
		for i := range private + rapid.IntRange(0, 3).Draw(t, "more") {
			r := row{a: randomLC(t, vars), b: randomLC(t, vars), c: randomLC(t, vars)}
			if i < private {
				r.c = r1cs.LC{term(r1cs.AuxVar(at.Aux+i), 3)}
			}
			rows = append(rows, r)
		}
		at.Aux += private
		at.Rows += len(rows)
		c.sections = append(c.sections, rows)
		c.starts = append(c.starts, at)
	}
	return c
}

// randomLC draws a combination in normal form.
func randomLC(t *rapid.T, vars []r1cs.Var) r1cs.LC {
	var lc r1cs.LC
	for _, v := range vars {
		if k := rapid.Int64Range(-9, 2).Draw(t, "coefficient"); k > -3 && k != 0 {
			lc = append(lc, term(v, k))
		}
	}
	return lc
}

// collected keeps rows and tells values of dense columns.
type collected struct{ u, v, w map[r1cs.Var]fr.Element }

// model computes the file as slowly and plainly as possible.
func model(c *listed, s Scalars) []byte {
	totals := c.starts[len(c.starts)-1]
	density := r1cs.NewDensity(totals)
	lagrange := lagrangeByFFT(totals.DomainBits(), s.Tau)
	sums := collected{map[r1cs.Var]fr.Element{}, map[r1cs.Var]fr.Element{}, map[r1cs.Var]fr.Element{}}
	add := func(to map[r1cs.Var]fr.Element, lc r1cs.LC, k int) {
		for _, t := range lc {
			var x fr.Element
			x.Mul(&t.Coeff, &lagrange[k])
			sum := to[t.Var]
			to[t.Var] = *sum.Add(&sum, &x)
		}
	}
	k := 0
	for _, section := range c.sections {
		for _, r := range section {
			add(sums.u, r.a, k)
			add(sums.v, r.b, k)
			add(sums.w, r.c, k)
			density.Row(r.a, r.b, r.c)
			k++
		}
	}
	for i := range totals.Inputs {
		add(sums.u, r1cs.LC{term(r1cs.InputVar(i), 1)}, k)
		k++
	}
	return sums.file(totals, s, srs.CountsOf(totals, density))
}

func (m *collected) file(totals r1cs.Position, s Scalars, counts srs.Counts) []byte {
	var inputs, aux []r1cs.Var
	for i := range totals.Inputs {
		inputs = append(inputs, r1cs.InputVar(i))
	}
	for i := range totals.Aux {
		aux = append(aux, r1cs.AuxVar(i))
	}
	joined := func(vars []r1cs.Var, divisor fr.Element) []fr.Element {
		var all []fr.Element
		for _, v := range vars {
			var x, y fr.Element
			u, vv, w := m.u[v], m.v[v], m.w[v]
			x.Mul(&s.Beta, &u).Add(&x, y.Mul(&s.Alpha, &vv)).Add(&x, &w).Div(&x, &divisor)
			all = append(all, x)
		}
		return all
	}
	present := func(of map[r1cs.Var]fr.Element) []fr.Element {
		var all []fr.Element
		for _, v := range append(append([]r1cs.Var(nil), inputs...), aux...) {
			if x := of[v]; !x.IsZero() {
				all = append(all, x)
			}
		}
		return all
	}
	b := concat(pointsG1([]fr.Element{s.Alpha, s.Beta}), pointsG2([]fr.Element{s.Beta, s.Gamma}),
		pointsG1([]fr.Element{s.Delta}), pointsG2([]fr.Element{s.Delta}))
	b = appendList(b, counts.IC, pointsG1(joined(inputs, s.Gamma)))
	var h []fr.Element
	x := s.Tau
	one := fr.One()
	x.Exp(x, big.NewInt(int64(counts.H+1))).Sub(&x, &one).Div(&x, &s.Delta)
	for range counts.H {
		h = append(h, x)
		x.Mul(&x, &s.Tau)
	}
	b = appendList(b, counts.H, pointsG1(h))
	b = appendList(b, counts.L, pointsG1(joined(aux, s.Delta)))
	b = appendList(b, counts.A, pointsG1(present(m.u)))
	b = appendList(b, counts.B, pointsG1(present(m.v)))
	return appendList(b, counts.B, pointsG2(present(m.v)))
}

func concat(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func appendList(b []byte, count int, points []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(count)), points...)
}

func pointsG1(scalars []fr.Element) []byte {
	var out []byte
	for _, s := range scalars {
		var n big.Int
		var p bls12381.G1Affine
		p.ScalarMultiplicationBase(s.BigInt(&n))
		raw := p.RawBytes()
		out = append(out, raw[:]...)
	}
	return out
}

func pointsG2(scalars []fr.Element) []byte {
	var out []byte
	for _, s := range scalars {
		var n big.Int
		var p bls12381.G2Affine
		p.ScalarMultiplicationBase(s.BigInt(&n))
		raw := p.RawBytes()
		out = append(out, raw[:]...)
	}
	return out
}

func TestFilesEqualThePlainModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := randomCircuit(rt)
		s := FromSeed("model", fmt.Sprint(rapid.Int().Draw(rt, "seed")))
		var got bytes.Buffer
		r, err := Write(t.Context(), &got, c, s, Options{Workers: rapid.IntRange(1, 3).Draw(rt, "workers")})
		if err != nil {
			rt.Fatal(err)
		}
		if want := model(c, s); !bytes.Equal(got.Bytes(), want) {
			rt.Fatalf("files differ: %d bytes, want %d; counts %v", got.Len(), len(want), r.Counts)
		}
	})
}
