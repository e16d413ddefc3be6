package srs

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/internal/fixture"
)

func TestOpenGivesKeyAndSections(t *testing.T) {
	t.Parallel()
	content := sampleParams(sampleCounts)
	path := place(t, t.TempDir(), "toy.params", content, digestOf(content))
	p, err := Open(t.Context(), path, sampleCounts, options(t))
	if err != nil {
		t.Fatal(err)
	}
	if !p.Development {
		t.Error("not marked as development")
	}
	if diff := cmp.Diff(sampleCounts, p.Counts); diff != "" {
		t.Error(diff)
	}
	if got := p.Key.Append(nil); !bytes.Equal(got, sampleKey(2)) {
		t.Error("key differs")
	}
	for _, c := range []struct {
		section Section
		name    string
		count   int
		point   func(int) []byte
	}{
		{p.H, "h", 7, g1}, {p.L, "l", 3, g1}, {p.A, "a", 4, g1}, {p.B1, "b_g1", 2, g1}, {p.B2, "b_g2", 2, g2},
	} {
		if c.section.Name() != c.name || c.section.Len() != c.count {
			t.Errorf("section %s of %d, want %s of %d", c.section.Name(), c.section.Len(), c.name, c.count)
		}
		c.section.Expect(0, c.count)
		c.section.Release(0, c.count)
		if !bytes.Equal(c.section.Points(1, 2), c.point(4)) {
			t.Errorf("section %s: point 1 differs", c.name)
		}
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// The smallest real keys, made by the published crates.
func TestParseKeyReadsTheExactKeys(t *testing.T) {
	t.Parallel()
	for name, digest := range map[string]string{
		"oracle/2KiB.vk": "496a68ec766f6f04589b170684a296808bf4e6fb042543f5239a62a48ad6a9be",
		"oracle/8MiB.vk": "8ca897b536e4d6e315196392fda210a36fe45e03fb0c4137d1efb10474806df5",
	} {
		content := fixture.Bytes(t, name)
		if sha := sha256Hex(content); sha != digest {
			t.Fatalf("%s: fixture has SHA-256 %s", name, sha)
		}
		key, err := ParseKey(content)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if len(key.IC) != 40 {
			t.Errorf("%s: %d ic points", name, len(key.IC))
		}
		if !bytes.Equal(key.Append(nil), content) {
			t.Errorf("%s: written back differently", name)
		}
	}
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	good := sampleKey(2)
	change := func(at int, to ...byte) []byte {
		b := bytes.Clone(good)
		copy(b[at:], to)
		return b
	}
	infinity := append([]byte{0x40}, make([]byte, 95)...)
	offCurve := append(make([]byte, 47), 1)
	offCurve = append(append(offCurve, make([]byte, 47)...), 1) // (1, 1)
	order3 := make([]byte, 96)
	order3[95] = 2 // (0, 2) is on the curve and has order 3
	tooLarge := append([]byte{0x1f}, bytes.Repeat([]byte{0xff}, 47)...)
	for name, c := range map[string]struct {
		data []byte
		want error
		text string
	}{
		"nothing":                 {nil, ErrLength, "0 bytes"},
		"a cut head":              {good[:800], ErrLength, "800 bytes"},
		"a missing byte":          {good[:len(good)-1], ErrLength, "2 ic points"},
		"a byte too many":         {append(bytes.Clone(good), 0), ErrLength, "1 bytes after"},
		"no ic point":             {change(864, 0, 0, 0, 0), ErrLength, "0 ic points"},
		"2^32-1 ic points":        {change(864, 255, 255, 255, 255), ErrLength, "4294967295 ic points"},
		"a compressed flag":       {change(192, good[192]|0x80), ErrEncoding, "beta_g2: compressed"},
		"infinity":                {change(868, infinity...), ErrEncoding, "ic point 0: point at infinity"},
		"a sign flag":             {change(672, good[672]|0x20), ErrEncoding, "delta_g2: sign"},
		"a point off the curve":   {change(96, offCurve...), ErrEncoding, "beta_g1"},
		"a point of order 3":      {change(0, order3...), ErrEncoding, "alpha_g1"},
		"a coordinate at least p": {change(576, tooLarge...), ErrEncoding, "delta_g1"},
	} {
		_, err := ParseKey(c.data)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: got %v, want %v with %q", name, err, c.want, c.text)
		}
	}
}

// Field report B07: each bad file is found before its first use, with its name, what was expected and found, and what
// to do; and it is left alone.
func TestB07DamagedCutAndSwappedFilesAreRefused(t *testing.T) {
	t.Parallel()
	other := Counts{IC: 3, H: 7, L: 5, A: 6, B: 2}
	one, two := sampleParams(sampleCounts), sampleParams(other)
	flipped := bytes.Clone(one)
	flipped[len(flipped)/2] ^= 1
	for name, c := range map[string]struct {
		content []byte
		want    error
		texts   []string
	}{
		"F12 flipped byte": {flipped, ErrEncoding, []string{"point", "fetch or generate it again"}},
		"F13 last byte missing": {one[:len(one)-1], ErrLength,
			[]string{"expected 3000 bytes, found 2999 bytes", "fetch or generate it again"}},
		"F14 swapped files": {two, ErrCounts,
			[]string{"expected ic 2, l 3, a 4, found ic 3, l 5, a 6", "that of two.params", "under its own name"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			path := place(t, folder, "one.params", c.content, digestOf(one))
			place(t, folder, "two.params", one, digestOf(two))
			_, err := openClose(path, sampleCounts, options(t))
			var refusal *Refusal
			if !errors.As(err, &refusal) || !errors.Is(err, c.want) {
				t.Fatalf("got %v, want a refusal for %v", err, c.want)
			}
			for _, text := range append(c.texts, path, digestOf(one), digestOf(c.content)) {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("error does not say %q: %v", text, err)
				}
			}
			kept, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(kept, c.content) {
				t.Errorf("the file was touched: %v", err)
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	good := sampleParams(sampleCounts)
	valid := bytes.Clone(good)
	copy(valid[icOffset+2*G1Bytes+countBytes:], g1(99)) // h[0]: another valid point
	tail := append(bytes.Clone(good), 1)
	uneven := Counts{IC: 2, H: 6, L: 3, A: 4, B: 2}
	publishedName := "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-8-0-0-sha256_hasher-" +
		"032d3138d22506ec0082ed72b2dcba18df18477904e35bafee82b3793b06832f.params"
	for name, c := range map[string]struct {
		name, listed string
		content      []byte
		expect       Counts
		want         error
		text         string
	}{
		"an unlisted file": {"a.params", "", good, sampleCounts, ErrUnlisted, "found " + digestOf(good)},
		"another digest":   {"a.params", digestOf(good), valid, sampleCounts, ErrDigest, digestOf(good)},
		"a published name, not listed": {publishedName, "", good, sampleCounts, ErrDigest,
			"434fb1338ecfaf0f59256f30dde4968f"},
		"an empty file": {"a.params", digestOf(nil), nil, sampleCounts, ErrLength, "found 0 bytes"},
		"other counts": {"a.params", digestOf(good), good, Counts{2, 7, 3, 5, 2}, ErrCounts,
			"expected a 5, found a 4"},
		"h not 2^k-1": {"a.params", digestOf(sampleParams(uneven)), sampleParams(uneven), Counts{}, ErrLength, "h has 6"},
		"a tail":      {"a.params", digestOf(tail), tail, Counts{}, ErrLength, "1 bytes after"},
		"a key":       {"a.vk", digestOf(sampleKey(2)), sampleKey(2), sampleCounts, ErrCounts, "found a verifying key"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := place(t, t.TempDir(), c.name, c.content, c.listed)
			_, err := openClose(path, c.expect, options(t))
			var refusal *Refusal
			if !errors.As(err, &refusal) || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want a refusal for %v with %q", err, c.want, c.text)
			}
		})
	}
}

func TestPublishedNameIsTakenWithADevelopmentEntryOnly(t *testing.T) {
	t.Parallel()
	content := sampleKey(40)
	name := "v28-stacked-proof-of-replication-merkletree-poseidon_hasher-8-8-0-sha256_hasher-" +
		"82a357d2f2ca81dc61bb45f4a762807aedee1b0a53fd6c4e77b46a01bfef7820.vk"
	folder := t.TempDir()
	path := place(t, folder, name, content, "")
	plain := `{"` + name + `": {"cid": "Qm", "digest": "` + digestOf(content) + `", "sector_size": 2048}}`
	if err := os.WriteFile(filepath.Join(folder, ManifestName), []byte(plain), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKey(t.Context(), path, 40, options(t)); !errors.Is(err, ErrDigest) {
		t.Errorf("with an entry that is not marked: got %v, want %v", err, ErrDigest)
	}
	if err := AddDevelopment(folder, map[string]Entry{name: {Digest: digestOf(content)}}); err != nil {
		t.Fatal(err)
	}
	key, err := OpenKey(t.Context(), path, 40, options(t))
	if err != nil || !key.Development {
		t.Errorf("with a development entry: got %+v, %v", key, err)
	}
	if _, err := OpenKey(t.Context(), path, 328, options(t)); !errors.Is(err, ErrCounts) {
		t.Errorf("for another circuit: got %v, want %v", err, ErrCounts)
	}
}

func TestOpenNeedsARegularFile(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	_, err := openClose(filepath.Join(folder, "none.params"), Counts{}, options(t))
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: got %v", err)
	}
	if _, err := openClose(folder, Counts{}, options(t)); !errors.Is(err, ErrKind) {
		t.Errorf("folder: got %v", err)
	}
	pipe := filepath.Join(folder, "pipe.params")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openClose(pipe, Counts{}, options(t)); !errors.Is(err, ErrKind) {
		t.Errorf("named pipe: got %v", err)
	}
}

func TestCheckImportAndInfoReport(t *testing.T) {
	t.Parallel()
	content := sampleParams(sampleCounts)
	path := place(t, t.TempDir(), "toy.params", content, digestOf(content))
	want := Report{
		File: path, Kind: "params", Bytes: int64(len(content)), Counts: sampleCounts, Digest: digestOf(content),
		DigestExpected: []string{digestOf(content)}, Origin: OriginDevelopment,
	}
	o := options(t)
	for name, call := range map[string]func() (Report, error){
		"check":  func() (Report, error) { return Check(t.Context(), path, sampleCounts, o) },
		"import": func() (Report, error) { return Import(t.Context(), path, Counts{}, o) },
		"info":   func() (Report, error) { return Info(t.Context(), path, o) },
	} {
		got, err := call()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestHashingStopsWithTheContext(t *testing.T) {
	t.Parallel()
	content := sampleParams(sampleCounts)
	path := place(t, t.TempDir(), "toy.params", content, digestOf(content))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, path, sampleCounts, options(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
