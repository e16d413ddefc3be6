package msm

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"
)

// b10Lengths are the lengths of recipe F16 up to 2^top+1.
func b10Lengths(top int) []int {
	lengths := []int{0, 1, 2, 3}
	for k := 2; k <= top; k++ {
		lengths = append(lengths, 1<<k-1, 1<<k, 1<<k+1)
	}
	return lengths
}

// longCase picks the combinations for long lists: the mixture at every length, each kind with it at one.
func longCase(n int, bases, scalars string) bool {
	if bases == "mixed" && scalars == "mixed" {
		return true
	}
	return n == 1<<13+1 && (bases == "mixed" || scalars == "mixed" || scalars == "random")
}

// TestB10G1EqualsPlainSum is field report B10 by recipe F16.
func TestB10G1EqualsPlainSum(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, c Config) {
		for _, n := range b10Lengths(13) {
			for bases := range basesKinds {
				for scalars := range scalarKinds {
					if n > 34 && n != 127 && !longCase(n, bases, scalars) {
						continue
					}
					s, points := sampleG1(1, n, bases, scalars)
					got, err := G1(context.Background(), AffineG1(points), s.scalars, c)
					if err != nil {
						t.Fatalf("%d bases %s, scalars %s: %v", n, bases, scalars, err)
					}
					if want := s.wantG1(); !got.Equal(&want) {
						t.Errorf("%d bases %s, scalars %s: got %v, want %v", n, bases, scalars, got, want)
					}
				}
			}
		}
	})
}

// TestB10G2EqualsPlainSum is TestB10G1EqualsPlainSum with fewer combinations.
func TestB10G2EqualsPlainSum(t *testing.T) {
	t.Parallel()
	backends(t, func(t *testing.T, c Config) {
		for _, n := range b10Lengths(13) {
			for bases := range basesKinds {
				for scalars := range scalarKinds {
					if n > 16 && n != 511 && !(bases == "mixed" && scalars == "mixed") {
						continue
					}
					s, points := sampleG2(2, n, bases, scalars)
					got, err := G2(context.Background(), AffineG2(points), s.scalars, c)
					if err != nil {
						t.Fatalf("%d bases %s, scalars %s: %v", n, bases, scalars, err)
					}
					if want := s.wantG2(); !got.Equal(&want) {
						t.Errorf("%d bases %s, scalars %s: got %v, want %v", n, bases, scalars, got, want)
					}
				}
			}
		}
	})
}

// TestB10LengthMismatchIsAnError is the last sentence of field report B10.
func TestB10LengthMismatchIsAnError(t *testing.T) {
	t.Parallel()
	s, points := sampleG1(3, 70, "distinct", "random")
	bases := AffineG1(points)
	split := func(ones ...uint64) func(*G1Accumulator) error {
		return func(a *G1Accumulator) error { return a.AddSplit(t.Context(), bases, Split{Ones: ones}) }
	}
	tests := map[string]func(a *G1Accumulator) error{
		"fewer scalars": func(a *G1Accumulator) error { return a.Add(t.Context(), bases, s.scalars[:69]) },
		"more scalars":  func(a *G1Accumulator) error { return a.Add(t.Context(), bases.Slice(0, 69), s.scalars) },
		"no bases":      func(a *G1Accumulator) error { return a.Add(t.Context(), G1Bases{}, s.scalars) },
		"short bitmap":  split(0),
		"long bitmap":   split(0, 0, 0),
		"bit past end":  split(0, 1<<6),
		"escape past end": func(a *G1Accumulator) error {
			return a.AddSplit(t.Context(), bases, Split{Escapes: []uint64{0, 1 << 6}, Full: s.scalars[:1]})
		},
		"fewer escapes": func(a *G1Accumulator) error {
			return a.AddSplit(t.Context(), bases, Split{Escapes: []uint64{3, 0}, Full: s.scalars[:1]})
		},
		"more escapes": func(a *G1Accumulator) error {
			return a.AddSplit(t.Context(), bases, Split{Full: s.scalars[:1]})
		},
	}
	for name, call := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, err := NewG1Accumulator(Config{Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			if err := call(a); !errors.Is(err, ErrLength) {
				t.Errorf("got %v, want %v", err, ErrLength)
			}
		})
	}
	if _, err := EncodedG1(make([]byte, G1Bytes+1)); !errors.Is(err, ErrLength) {
		t.Errorf("97 bytes: got %v, want %v", err, ErrLength)
	}
}

func TestEqualsGnark(t *testing.T) {
	t.Parallel()
	s, points := sampleG1(4, 5000, "distinct", "random")
	var want bls12381.G1Affine
	if _, err := want.MultiExp(points, s.scalars, ecc.MultiExpConfig{}); err != nil {
		t.Fatal(err)
	}
	bases, err := EncodedG1(encodeG1(points))
	if err != nil {
		t.Fatal(err)
	}
	backends(t, func(t *testing.T, c Config) {
		got, err := G1(t.Context(), bases, s.scalars, c)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWindowsAndWorkersGiveTheSameSum(t *testing.T) {
	t.Parallel()
	s, points := sampleG1(5, 1500, "mixed", "mixed")
	want := s.wantG1()
	backends(t, func(t *testing.T, c Config) {
		for _, bits := range []int{2, 3, 7, 8, 9, 12, 15} {
			for _, workers := range []int{1, 3, 17} {
				c.WindowBits, c.Workers = bits, workers
				got, err := G1(t.Context(), AffineG1(points), s.scalars, c)
				if err != nil {
					t.Fatal(err)
				}
				if !got.Equal(&want) {
					t.Errorf("window %d, workers %d: got %v, want %v", bits, workers, got, want)
				}
			}
		}
	})
}

// TestWindowSharesCoverEveryBucketOnce also checks that ranges begin on a word of marks.
func TestWindowSharesCoverEveryBucketOnce(t *testing.T) {
	t.Parallel()
	for _, windows := range []int{12, 15, 64} {
		for _, workers := range []int{1, 2, 7, 15, 16, 64, WorkersMax} {
			for _, buckets := range []int{2, 64, 1024, 1 << 16} {
				next := make([]int, windows)
				for _, s := range windowShares(windows, workers, buckets) {
					if s.base != next[s.window] || s.count < min(64, buckets) {
						t.Fatalf("%d windows, %d workers, %d buckets: share %+v after %d",
							windows, workers, buckets, s, next[s.window])
					}
					next[s.window] += s.count
				}
				for w, n := range next {
					if n != buckets {
						t.Errorf("%d windows, %d workers: %d of %d buckets of window %d", windows, workers, n, buckets, w)
					}
				}
			}
		}
	}
}

// splitOf is the Split form of scalars.
func splitOf(scalars []fr.Element) Split {
	words := (len(scalars) + 63) / 64
	s := Split{Ones: make([]uint64, words), Escapes: make([]uint64, words)}
	for i := range scalars {
		switch {
		case scalars[i].IsZero():
		case scalars[i].IsOne():
			s.Ones[i/64] |= 1 << (i % 64)
		default:
			s.Escapes[i/64] |= 1 << (i % 64)
			s.Full = append(s.Full, scalars[i])
			if i%3 == 0 {
				s.Ones[i/64] |= 1 << (i % 64) // must not matter
			}
		}
	}
	return s
}

func TestChunksGiveTheSameSumAsTheWhole(t *testing.T) {
	t.Parallel()
	s1, points1 := sampleG1(6, 6000, "mixed", "mixed")
	s2, points2 := sampleG2(6, 2500, "mixed", "mixed")
	backends(t, func(t *testing.T, c Config) {
		for _, chunk := range []int{1000, 1024, 4000} {
			t.Run(fmt.Sprintf("chunk=%d", chunk), func(t *testing.T) {
				testChunksG1(t, c, s1, points1, chunk)
				testChunksG2(t, c, s2, points2, chunk)
			})
		}
	})
}

func testChunksG1(t *testing.T, c Config, s sample, points []bls12381.G1Affine, chunk int) {
	t.Helper()
	a, err := NewG1Accumulator(c)
	if err != nil {
		t.Fatal(err)
	}
	var sum sample
	for from, turn := 0, 0; from < len(points); from, turn = from+chunk, turn+1 {
		to := min(from+chunk, len(points))
		bases, err := EncodedG1(encodeG1(points[from:to]))
		if err != nil {
			t.Fatal(err)
		}
		sum.logs, sum.scalars = s.logs[:to], s.scalars[:to]
		if turn%2 == 0 {
			err = a.AddSplit(t.Context(), bases, splitOf(s.scalars[from:to]))
		} else {
			err = a.Add(t.Context(), bases, s.scalars[from:to])
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.Result(t.Context()) // of what was added so far; more follows
		if err != nil {
			t.Fatal(err)
		}
		if want := sum.wantG1(); !got.Equal(&want) {
			t.Errorf("after %d points: got %v, want %v", to, got, want)
		}
	}
}

func testChunksG2(t *testing.T, c Config, s sample, points []bls12381.G2Affine, chunk int) {
	t.Helper()
	a, err := NewG2Accumulator(c)
	if err != nil {
		t.Fatal(err)
	}
	for from := 0; from < len(points); from += chunk {
		to := min(from+chunk, len(points))
		bases, err := EncodedG2(encodeG2(points[from:to]))
		if err != nil {
			t.Fatal(err)
		}
		if err := a.AddSplit(t.Context(), bases, splitOf(s.scalars[from:to])); err != nil {
			t.Fatal(err)
		}
	}
	got, err := a.Result(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if want := s.wantG2(); !got.Equal(&want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestManyPasses adds more points than may wait, so that buckets persist over passes.
func TestManyPasses(t *testing.T) {
	t.Parallel()
	n := pendingMax + 3*taskPoints + 5
	s, points := sampleG1(8, n, "mixed", "random")
	want := s.wantG1()
	got, err := G1(t.Context(), AffineG1(points), s.scalars, Config{WindowBits: 16})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Equal(&want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestBadEncodingsAreRefused(t *testing.T) {
	t.Parallel()
	_, points := sampleG1(9, 20, "distinct", "random")
	good := encodeG1(points)
	modulus := fpModulus()
	tests := map[string]func(b []byte){
		"x is p":                  func(b []byte) { copy(b, modulus) },
		"y is p":                  func(b []byte) { copy(b[48:], modulus) },
		"x above p":               func(b []byte) { b[0] = 0x1f },
		"y all ones":              func(b []byte) { fillBytes(b[48:], 0xff) },
		"compressed flag":         func(b []byte) { b[0] |= 0x80 },
		"sign flag":               func(b []byte) { b[0] |= 0x20 },
		"identity with x":         func(b []byte) { b[0] |= 0x40 },
		"identity with a sign":    func(b []byte) { clear(b); b[0] = 0x60 },
		"identity with last byte": func(b []byte) { clear(b); b[0], b[95] = 0x40, 1 },
	}
	backends(t, func(t *testing.T, c Config) {
		for name, spoil := range tests {
			for _, scalar := range []fr.Element{fr.One(), minusOne()} {
				for _, at := range []int{0, 11, 19} {
					b := append([]byte(nil), good...)
					spoil(b[at*G1Bytes : (at+1)*G1Bytes])
					if err := sumEncoded(t, c, b, scalar); !errors.Is(err, ErrEncoding) {
						t.Errorf("%s at %d: got %v, want %v", name, at, err, ErrEncoding)
					}
				}
			}
		}
	})
}

func sumEncoded(t *testing.T, c Config, b []byte, scalar fr.Element) error {
	t.Helper()
	bases, err := EncodedG1(b)
	if err != nil {
		t.Fatal(err)
	}
	scalars := make([]fr.Element, bases.Len())
	for i := range scalars {
		scalars[i] = scalar
	}
	a, err := NewG1Accumulator(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Add(t.Context(), bases, scalars); err != nil {
		if again := a.Add(t.Context(), G1Bases{}, nil); !errors.Is(again, err) {
			t.Errorf("second call: got %v, want %v", again, err)
		}
		return err
	}
	_, err = a.Result(t.Context())
	return err
}

func TestCancelledContextEndsTheCall(t *testing.T) {
	t.Parallel()
	s, points := sampleG1(10, 10, "distinct", "random")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := G1(ctx, AffineG1(points), s.scalars, Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("sum: got %v, want %v", err, context.Canceled)
	}
	if _, err := NewFixedBaseG1(ctx, points[0], Config{}); !errors.Is(err, context.Canceled) {
		t.Errorf("table: got %v, want %v", err, context.Canceled)
	}
}

func TestBadConfigIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]Config{
		"workers":      {Workers: -1},
		"many workers": {Workers: WorkersMax + 1},
		"count":        {ScalarCount: -1},
		"window 1":     {WindowBits: 1},
		"window 23":    {WindowBits: 23},
		"memory":       {BucketBytesMax: -1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := NewG1Accumulator(c); !errors.Is(err, ErrConfig) {
				t.Errorf("got %v, want %v", err, ErrConfig)
			}
		})
	}
}
