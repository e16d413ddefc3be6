package srs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func sha256Hex(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// largeParams places a parameter file just large enough to be remembered.
func largeParams(t *testing.T) (path string, counts Counts) {
	t.Helper()
	counts = Counts{IC: 2, H: 1, L: 1, A: rememberBytesMin/G1Bytes + 1, B: 1}
	small := sampleParams(Counts{IC: 2, H: 1, L: 1, A: 1, B: 1})
	at := len(sampleKey(2)) + 2*(countBytes+G1Bytes)
	content := make([]byte, 0, counts.ParamsBytes())
	content = append(content, small[:at]...)
	content = append(content, byte(counts.A>>24), byte(counts.A>>16), byte(counts.A>>8), byte(counts.A))
	point := g1(5)
	for range counts.A {
		content = append(content, point...)
	}
	content = append(content, small[at+countBytes+G1Bytes:]...)
	return place(t, t.TempDir(), "large.params", content, digestOf(content)), counts
}

// hashed opens parameters and tells whether they were hashed.
func hashed(t *testing.T, path string, counts Counts, o Options) bool {
	t.Helper()
	seen := false
	o.Progress = func(_, _ int64) { seen = true }
	p, err := openClose(path, counts, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Warnings) != 0 {
		t.Errorf("warnings: %v", p.Warnings)
	}
	return seen
}

func TestDigestOfALargeFileIsRemembered(t *testing.T) {
	t.Parallel()
	path, counts := largeParams(t)
	o := options(t)
	if !hashed(t, path, counts, o) {
		t.Error("not hashed the first time")
	}
	if hashed(t, path, counts, o) {
		t.Error("hashed again")
	}
	later := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(path, later, later); err != nil {
		t.Fatal(err)
	}
	if !hashed(t, path, counts, o) {
		t.Error("not hashed after its time changed")
	}
	for name, content := range map[string]string{"garbage": "{[", "other JSON": `{"a": 1}`, "nothing": ""} {
		if err := os.WriteFile(o.DigestCache, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if !hashed(t, path, counts, o) {
			t.Errorf("cache of %s: not hashed", name)
		}
		if hashed(t, path, counts, o) {
			t.Errorf("cache of %s was not replaced", name)
		}
	}
	o.Progress = nil
	r, err := Info(t.Context(), path, o)
	if err != nil || r.Digest == "" || r.Origin != OriginDevelopment {
		t.Errorf("info of a remembered file: %+v, %v", r, err)
	}
	seen := false
	o.Progress = func(_, _ int64) { seen = true }
	if _, err := Check(t.Context(), path, counts, o); err != nil || !seen {
		t.Errorf("check hashed: %v, error %v", seen, err)
	}
}

func TestInfoDoesNotHashALargeFile(t *testing.T) {
	t.Parallel()
	path, _ := largeParams(t)
	o := options(t)
	o.Progress = func(_, _ int64) { t.Error("hashed") }
	r, err := Info(t.Context(), path, o)
	if err != nil || r.Digest != "" || r.Origin != OriginUnknown {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestCacheThatCannotBeWrittenIsAWarning(t *testing.T) {
	t.Parallel()
	path, counts := largeParams(t)
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := Open(context.Background(), path, counts, Options{DigestCache: filepath.Join(blocked, "digests.json")})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Warnings) != 1 || !strings.Contains(p.Warnings[0], "not remembered") {
		t.Errorf("warnings: %v", p.Warnings)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
