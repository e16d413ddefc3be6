package msm

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/google/go-cmp/cmp"
)

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func fpModulus() []byte { return fp.Modulus().FillBytes(make([]byte, fp.Bytes)) }

func fillBytes(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

func TestFixedBaseG1EqualsGnark(t *testing.T) {
	t.Parallel()
	s, _ := sampleG1(20, 1100, "distinct", "mixed")
	base := poolG1()[5]
	want := bls12381.BatchScalarMultiplicationG1(&base, s.scalars)
	backends(t, func(t *testing.T, c Config) {
		for _, bits := range []int{2, 5, 6, 7, 12} {
			c.WindowBits = bits
			f, err := NewFixedBaseG1(t.Context(), base, c)
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Multiply(t.Context(), s.scalars)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("window %d: %s", bits, diff)
			}
			out := make([]byte, len(want)*G1Bytes)
			if err := f.Encode(t.Context(), out, s.scalars); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(out, encodeG1(want)) {
				t.Errorf("window %d: encodings differ", bits)
			}
		}
	})
}

func TestFixedBaseG2EqualsGnark(t *testing.T) {
	t.Parallel()
	s, _ := sampleG1(21, 300, "distinct", "mixed")
	base := poolG2()[5]
	want := bls12381.BatchScalarMultiplicationG2(&base, s.scalars)
	backends(t, func(t *testing.T, c Config) {
		c.ScalarCount = len(s.scalars)
		f, err := NewFixedBaseG2(t.Context(), base, c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Multiply(t.Context(), s.scalars)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		out := make([]byte, len(want)*G2Bytes)
		if err := f.Encode(t.Context(), out, s.scalars); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(out, encodeG2(want)) {
			t.Error("encodings differ")
		}
	})
}

func TestFixedBaseEdges(t *testing.T) {
	t.Parallel()
	s, points := sampleG1(22, 3, "distinct", "random")
	backends(t, func(t *testing.T, c Config) {
		c.WindowBits = 4
		f, err := NewFixedBaseG1(t.Context(), bls12381.G1Affine{}, c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := f.Multiply(t.Context(), s.scalars)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(make([]bls12381.G1Affine, 3), got); diff != "" {
			t.Errorf("multiples of the identity: %s", diff)
		}
		if got, err := f.Multiply(t.Context(), nil); err != nil || len(got) != 0 {
			t.Errorf("no scalars: got %v, %v", got, err)
		}
		if err := f.Encode(t.Context(), make([]byte, 2*G1Bytes), s.scalars); !errors.Is(err, ErrLength) {
			t.Errorf("short buffer: got %v, want %v", err, ErrLength)
		}
		c.WindowBits = tableBitsMax + 1
		if _, err := NewFixedBaseG1(t.Context(), points[0], c); !errors.Is(err, ErrConfig) {
			t.Errorf("wide window: got %v, want %v", err, ErrConfig)
		}
	})
}
