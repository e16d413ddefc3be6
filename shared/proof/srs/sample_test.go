package srs

import (
	"context"
	"encoding/binary"
	"math/big"
	"os"
	"path/filepath"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
)

// g1 and g2 are encoded multiples of the generators, k >= 1.
func g1(k int) []byte {
	var p bls12381.G1Affine
	p.ScalarMultiplicationBase(big.NewInt(int64(k)))
	raw := p.RawBytes()
	return raw[:]
}

func g2(k int) []byte {
	var p bls12381.G2Affine
	p.ScalarMultiplicationBase(big.NewInt(int64(k)))
	raw := p.RawBytes()
	return raw[:]
}

// sampleKey is the content of a key with multiples of the generators.
func sampleKey(ic int) []byte {
	var b []byte
	for _, p := range [][]byte{g1(11), g1(13), g2(13), g2(17), g1(19), g2(19)} {
		b = append(b, p...)
	}
	b = binary.BigEndian.AppendUint32(b, uint32(ic))
	for i := range ic {
		b = append(b, g1(i+2)...)
	}
	return b
}

// sampleParams is a file of the right form with the given counts.
func sampleParams(c Counts) []byte {
	b := sampleKey(c.IC)
	for _, n := range []int{c.H, c.L, c.A, c.B} {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
		for i := range n {
			b = append(b, g1(i+3)...)
		}
	}
	b = binary.BigEndian.AppendUint32(b, uint32(c.B))
	for i := range c.B {
		b = append(b, g2(i+3)...)
	}
	return b
}

var sampleCounts = Counts{IC: 2, H: 7, L: 3, A: 4, B: 2}

func digestOf(content []byte) string {
	d := NewDigest()
	_, _ = d.Write(content)
	return d.Hex()
}

// place writes a file and, unless digest is "", lists it as a development file.
func place(t *testing.T, folder, name string, content []byte, digest string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if digest != "" {
		if err := AddDevelopment(folder, map[string]Entry{name: {Digest: digest}}); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func options(t *testing.T) Options {
	t.Helper()
	return Options{DigestCache: filepath.Join(t.TempDir(), "cache", "digests.json")}
}

// openClose opens parameters and closes them at once.
func openClose(path string, expect Counts, o Options) (*Params, error) {
	p, err := Open(context.Background(), path, expect, o)
	if err != nil {
		return nil, err
	}
	return p, p.Close()
}
