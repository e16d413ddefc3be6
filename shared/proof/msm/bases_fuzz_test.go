package msm

import (
	"errors"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// fuzzSeeds are encodings at the edges: good points, the identity, p and p-1 as coordinates, each flag, cut short.
func fuzzSeeds(f *testing.F, good []byte, size int) {
	f.Helper()
	f.Add([]byte{})
	f.Add(good)
	f.Add(good[:size-1])
	for _, flag := range []byte{flagCompressed, flagInfinity, flagSign} {
		b := append([]byte(nil), good...)
		b[0] |= flag
		f.Add(b)
	}
	for at := 0; at < size; at += coordBytes {
		b := append([]byte(nil), good...)
		copy(b[at:], fpModulus())
		f.Add(b)
		b = append([]byte(nil), b...)
		b[at+coordBytes-1]-- // p-1 is canonical
		f.Add(b)
	}
	identity := make([]byte, size)
	identity[0] = flagInfinity
	f.Add(append(identity, good...))
}

// canonicalPoints reports whether every point of b is the identity as it must be written or has coordinates below p,
// by gnark's reader of field elements alone.
func canonicalPoints(b []byte, size int) bool {
	for ; len(b) > 0; b = b[size:] {
		if b[0] == flagInfinity {
			for _, x := range b[1:size] {
				if x != 0 {
					return false
				}
			}
			continue
		}
		for at := 0; at < size; at += coordBytes {
			var e fp.Element
			if e.SetBytesCanonical(b[at:at+coordBytes]) != nil {
				return false
			}
		}
	}
	return true
}

// FuzzEncodedG1 checks that both kernels refuse the same bytes, and that they agree on twice the first point. Sums of
// more are not compared: the points need not be on the curve, and off it sums depend on their order.
func FuzzEncodedG1(f *testing.F) {
	fuzzSeeds(f, encodeG1(poolG1()[:2]), G1Bytes)
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:min(len(b), 64*G1Bytes)]
		bases, err := EncodedG1(b)
		if len(b)%G1Bytes != 0 {
			if !errors.Is(err, ErrLength) {
				t.Fatalf("%d bytes: got %v, want %v", len(b), err, ErrLength)
			}
			return
		}
		var results [2]bls12381.G1Affine
		for i, c := range []Config{{Portable: true, Workers: 1}, {Workers: 1}} {
			ones := make([]fr.Element, bases.Len())
			for k := range ones {
				ones[k].SetOne()
			}
			_, err := G1(t.Context(), bases, ones, c)
			if good := canonicalPoints(b, G1Bytes); good != (err == nil) || !good && !errors.Is(err, ErrEncoding) {
				t.Fatalf("portable=%v: got %v, canonical %v", c.Portable, err, good)
			}
			if err != nil || bases.Len() == 0 {
				continue
			}
			two := []fr.Element{fr.NewElement(2)}
			if results[i], err = G1(t.Context(), bases.Slice(0, 1), two, c); err != nil {
				t.Fatal(err)
			}
		}
		if results[0] != results[1] {
			t.Errorf("portable %v, vector %v", results[0], results[1])
		}
	})
}

// FuzzEncodedG2 checks that both kernels refuse the same bytes.
func FuzzEncodedG2(f *testing.F) {
	fuzzSeeds(f, encodeG2(poolG2()[:2]), G2Bytes)
	f.Fuzz(func(t *testing.T, b []byte) {
		b = b[:min(len(b), 64*G2Bytes)]
		bases, err := EncodedG2(b)
		if len(b)%G2Bytes != 0 {
			if !errors.Is(err, ErrLength) {
				t.Fatalf("%d bytes: got %v, want %v", len(b), err, ErrLength)
			}
			return
		}
		for _, c := range []Config{{Portable: true, Workers: 1}, {Workers: 1}} {
			ones := make([]fr.Element, bases.Len())
			for k := range ones {
				ones[k].SetOne()
			}
			_, err := G2(t.Context(), bases, ones, c)
			if good := canonicalPoints(b, G2Bytes); good != (err == nil) || !good && !errors.Is(err, ErrEncoding) {
				t.Fatalf("portable=%v: got %v, canonical %v", c.Portable, err, good)
			}
		}
	})
}
