package srs

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/google/go-cmp/cmp"
)

// imageOf makes the image of the sample parameters.
func imageOf(t *testing.T) (*Params, *os.File) {
	t.Helper()
	content := sampleParams(sampleCounts)
	p, err := Open(t.Context(), place(t, t.TempDir(), "toy.params", content, digestOf(content)), sampleCounts, options(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	f, err := os.Create(filepath.Join(t.TempDir(), "image"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := f.Truncate(p.Counts.ImageBytes()); err != nil {
		t.Fatal(err)
	}
	return p, f
}

func TestAnImageHasTheSamePoints(t *testing.T) {
	t.Parallel()
	p, f := imageOf(t)
	var last, of atomic.Int64
	progress := func(done, total int64) { last.Store(max(last.Load(), done)); of.Store(total) }
	if err := p.WriteImage(t.Context(), f, 2, progress); err != nil {
		t.Fatal(err)
	}
	if last.Load() == 0 || last.Load() > of.Load() {
		t.Errorf("%d of %d bytes are done at the end", last.Load(), of.Load())
	}
	got, err := OpenImage(f, sampleCounts)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Decoded() || p.Decoded() || got.Digest != p.Digest || got.Path != p.Path || !got.Development {
		t.Errorf("image says %+v", got)
	}
	if !bytes.Equal(got.Key.Append(nil), p.Key.Append(nil)) {
		t.Error("key differs")
	}
	for i, s := range []Section{got.H, got.L, got.A, got.B1} {
		raw := []Section{p.H, p.L, p.A, p.B1}[i]
		s.Expect(0, s.Len())
		s.Release(0, s.Len())
		want := make([]bls12381.G1Affine, raw.Len())
		for k := range want {
			if err := decodeG1(raw.Points(k, k+1), &want[k]); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want, s.G1(0, s.Len())); diff != "" || !s.Decoded() || s.Name() != raw.Name() {
			t.Errorf("section %s: %s", s.Name(), diff)
		}
	}
	want := make([]bls12381.G2Affine, p.B2.Len())
	for k := range want {
		if err := decodeG2(p.B2.Points(k, k+1), &want[k]); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got.B2.G2(0, got.B2.Len())); diff != "" {
		t.Errorf("section b_g2: %s", diff)
	}
	if err := got.Close(); err != nil {
		t.Error(err)
	}
}

func TestAnImageThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	p, f := imageOf(t)
	refused := func(what string, expect Counts) {
		t.Helper()
		if _, err := OpenImage(f, expect); !errors.Is(err, ErrImage) {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("nothing written", sampleCounts)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.WriteImage(cancelled, f, 2, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	refused("half written", sampleCounts)
	if err := p.WriteImage(t.Context(), f, 1, nil); err != nil {
		t.Fatal(err)
	}
	other := sampleCounts
	other.L++
	refused("other circuit", other)
	for _, at := range []int64{3, 30, 300, 700} { // magic, description, key
		var b [1]byte
		if _, err := f.ReadAt(b[:], at); err != nil {
			t.Fatal(err)
		}
		flip := func() {
			b[0] ^= 1
			if _, err := f.WriteAt(b[:], at); err != nil {
				t.Fatal(err)
			}
		}
		flip()
		refused("flipped", Counts{})
		flip()
	}
	if err := f.Truncate(p.Counts.ImageBytes() - 1); err != nil {
		t.Fatal(err)
	}
	refused("cut", Counts{})
	if err := p.WriteImage(t.Context(), f, 1, nil); err == nil {
		t.Error("written into a file of another size")
	}
	if err := f.Truncate(5); err != nil {
		t.Fatal(err)
	}
	refused("short", Counts{})
}
