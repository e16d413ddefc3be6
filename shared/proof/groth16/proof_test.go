package groth16

import (
	"bytes"
	"errors"
	"math/big"
	"strings"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/google/go-cmp/cmp"
)

// sampleProof is well formed and proves nothing.
func sampleProof() *Proof {
	_, _, g1, g2 := bls12381.Generators()
	p := &Proof{B: g2}
	p.A.Double(&g1)
	p.C.Neg(&g1)
	return p
}

// first puts a compressed G1 encoding in front of a good proof.
func first(encoding ...byte) []byte {
	b := sampleProof().Bytes()
	copy(b[:48], make([]byte, 48))
	copy(b[:], encoding[:1])
	copy(b[48-len(encoding)+1:48], encoding[1:])
	return b[:]
}

// The files F08 to F11 of field report B05, and the same for the other points.
func badProofs() map[string]struct {
	data []byte
	want error
} {
	good := sampleProof().Bytes()
	with := func(at int, encoding ...byte) []byte {
		b := bytes.Clone(good[:])
		copy(b[at:], encoding)
		return b
	}
	zeros := func(lead byte, n int) []byte { return append([]byte{lead}, make([]byte, n-1)...) }
	one := func(lead byte, n int) []byte { b := zeros(lead, n); b[n-1] = 1; return b }
	modulus := func(flags byte) []byte { b := fp.Modulus().Bytes(); b[0] |= flags; return b }
	over := bytes.Repeat([]byte{0xff}, 48)
	over[0] = 0x9f
	return map[string]struct {
		data []byte
		want error
	}{
		"F08a order 3":                {first(0x80, 0), ErrSubgroup},
		"F08b outside the subgroup":   {first(0x80, 4), ErrSubgroup},
		"F08c not on the curve":       {first(0x80, 1), ErrNotOnCurve},
		"F08d above the modulus":      {with(0, over...), ErrNotCanonical},
		"F09 191 bytes":               {good[:191], ErrProofLength},
		"F09 193 bytes":               {append(good[:], 0), ErrProofLength},
		"F09 two proofs":              {append(good[:], good[:]...), ErrProofLength},
		"F09 empty":                   {nil, ErrProofLength},
		"F10 zeros":                   {make([]byte, ProofBytes), ErrNotCanonical},
		"F11 infinity with a rest":    {with(0, one(0xc0, 48)...), ErrInfinityEncoding},
		"F11 infinity with a sign":    {with(0, zeros(0xe0, 48)...), ErrInfinityEncoding},
		"F11 infinity":                {with(0, zeros(0xc0, 48)...), ErrInfinity},
		"B infinity":                  {with(48, zeros(0xc0, 96)...), ErrInfinity},
		"B infinity with a rest":      {with(48, one(0xc0, 96)...), ErrInfinityEncoding},
		"B infinity with a low bit":   {with(48, 0xc1), ErrInfinityEncoding},
		"C infinity with a sign":      {with(144, zeros(0xe0, 48)...), ErrInfinityEncoding},
		"A the modulus":               {with(0, modulus(0x80)...), ErrNotCanonical},
		"A the modulus, other sign":   {with(0, modulus(0xa0)...), ErrNotCanonical},
		"A uncompressed infinity":     {with(0, zeros(0x40, 48)...), ErrNotCanonical},
		"A only the sign flag":        {with(0, good[0]&^0xe0|0x20), ErrNotCanonical},
		"B modulus in second half":    {with(96, modulus(0)...), ErrNotCanonical},
		"B uncompressed":              {with(48, good[48]&^0x80), ErrNotCanonical},
		"B above the modulus":         {with(48, over...), ErrNotCanonical},
		"B second half above modulus": {with(96, append([]byte{0xff}, over[1:]...)...), ErrNotCanonical},
		"C order 3":                   {with(144, zeros(0x80, 48)...), ErrSubgroup},
		"C infinity":                  {with(144, zeros(0xc0, 48)...), ErrInfinity},
		"C uncompressed infinity":     {with(144, zeros(0x40, 48)...), ErrNotCanonical},
	}
}

func TestB05BadProofBytesHaveDifferentErrors(t *testing.T) {
	t.Parallel()
	all := []error{ErrProofLength, ErrNotCanonical, ErrNotOnCurve, ErrSubgroup, ErrInfinity, ErrInfinityEncoding}
	for name, c := range badProofs() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proof, err := ParseProof(c.data)
			if proof != nil {
				t.Error("a proof came back")
			}
			for _, kind := range all {
				if errors.Is(err, kind) != errors.Is(c.want, kind) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			}
		})
	}
}

func TestB05ErrorsNameTheProofAndThePoint(t *testing.T) {
	t.Parallel()
	good := sampleProof().Bytes()
	bad := good
	copy(bad[144:], append([]byte{0x80}, make([]byte, 47)...))
	_, err := ParseProofs(append(good[:], bad[:]...), 2)
	if !errors.Is(err, ErrSubgroup) || !strings.Contains(err.Error(), "proof 1 of 2: point C at byte 336") {
		t.Errorf("got %v", err)
	}
	for name, c := range map[string]struct{ bytes, count int }{
		"one short": {191, 1}, "negative": {0, -1}, "one of two": {192, 2}, "three of two": {576, 2},
	} {
		if _, err := ParseProofs(make([]byte, c.bytes), c.count); !errors.Is(err, ErrProofLength) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// A point of G2's curve that is outside the subgroup is found by trying x until one has no root of unity cofactor.
func TestProofPointsOfG2OutsideTheSubgroupAreRefused(t *testing.T) {
	t.Parallel()
	good := sampleProof().Bytes()
	found := 0
	for x := byte(1); x < 40; x++ {
		data := good
		copy(data[48:144], append([]byte{0x80}, make([]byte, 95)...))
		data[143] = x
		_, err := ParseProof(data[:])
		switch {
		case errors.Is(err, ErrSubgroup):
			found++
		case !errors.Is(err, ErrNotOnCurve):
			t.Errorf("x = %d: %v", x, err)
		}
	}
	if found < 10 {
		t.Errorf("%d points on the curve among 39", found)
	}
}

// Coordinates that fit 381 bits with the modulus added would give good points if they were reduced.
func TestProofCoordinatesAreNotReduced(t *testing.T) {
	t.Parallel()
	_, _, g1, g2 := bls12381.Generators()
	p := &Proof{A: g1, B: g2, C: g1}
	tried := map[int]bool{}
	for range 60 {
		good := p.Bytes()
		for at := 0; at < ProofBytes; at += fp.Bytes {
			data, x := good, [fp.Bytes]byte(good[at:])
			flags := byte(0)
			if at != 96 { // the second half of B has none
				flags = x[0] & 0xe0
				x[0] &^= 0xe0
			}
			sum := new(big.Int).SetBytes(x[:])
			if sum.Add(sum, fp.Modulus()).BitLen() > 381 {
				continue
			}
			sum.FillBytes(data[at:][:fp.Bytes])
			data[at] |= flags
			tried[at] = true
			if _, err := ParseProof(data[:]); !errors.Is(err, ErrNotCanonical) {
				t.Errorf("byte %d: got %v, want ErrNotCanonical", at, err)
			}
		}
		p.A.Add(&p.A, &g1)
		p.B.Add(&p.B, &g2)
		p.C = p.A
	}
	if diff := cmp.Diff(map[int]bool{0: true, 48: true, 96: true, 144: true}, tried); diff != "" {
		t.Errorf("coordinates that were tried: %s", diff)
	}
}

func TestProofsComeBackFromTheirBytes(t *testing.T) {
	t.Parallel()
	want := []Proof{*sampleProof(), *sampleProof()}
	want[1].A.Neg(&want[1].A)
	var data []byte
	for i := range want {
		data = want[i].Append(data)
	}
	got, err := ParseProofs(data, 2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
