package cuda_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/consensys/gnark-crypto/ecc"
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/cuda/internal/entry"
)

// noPoint marks a scalar without a point.
const noPoint = ^uint32(0)

// sumCase is a sum of scalar multiples and of points under a bitmap.
type sumCase struct {
	scalars []fr.Element
	indices []uint32 // of each scalar's point; nil: its own index
	points  int
	ones    []uint64 // variables that are 1
	density []uint64 // variables with a point; nil: all
	first   int      // index of the first variable's point

	window, pass, lanes, chunk int
}

// counts is how often each point is taken.
func (c sumCase) counts() []fr.Element {
	counts := make([]fr.Element, c.points)
	for i := range c.scalars {
		at := uint32(i)
		if c.indices != nil {
			at = c.indices[i]
		}
		if at != noPoint {
			counts[at].Add(&counts[at], &c.scalars[i])
		}
	}
	one := fr.One()
	at := c.first
	for v := range 64 * len(c.ones) {
		if c.density != nil && c.density[v/64]>>(v%64)&1 == 0 {
			continue
		}
		if c.ones[v/64]>>(v%64)&1 == 1 {
			counts[at].Add(&counts[at], &one)
		}
		at++
	}
	return counts
}

// arguments are those of the entries for sums.
func (c sumCase) arguments(points, out any) []any {
	var none []uint32
	indices := c.indices
	if indices == nil {
		indices = none
	}
	return []any{
		c.scalars, indices, len(c.scalars), points, c.points, c.ones, c.density, rankIndex(c.density), 2 * len(c.ones),
		c.first, c.window, c.pass, c.lanes, c.chunk, out,
	}
}

func (c sumCase) check(t *testing.T, lib *entry.Library, g1 []bls12381.G1Affine, g2 []bls12381.G2Affine) {
	t.Helper()
	counts := c.counts()
	var want1 bls12381.G1Affine
	var want2 bls12381.G2Affine
	if _, err := want1.MultiExp(g1[:c.points], counts, ecc.MultiExpConfig{NbTasks: 1}); err != nil {
		t.Fatal(err)
	}
	got1 := make([]bls12381.G1Affine, 1)
	if err := lib.Call("prcuda_test_sum_g1", c.arguments(g1[:c.points], got1)...); err != nil {
		t.Fatal(err)
	}
	if got1[0] != want1 {
		t.Errorf("G1: sum is %v, want %v", got1[0], want1)
	}
	if g2 == nil {
		return
	}
	if _, err := want2.MultiExp(g2[:c.points], counts, ecc.MultiExpConfig{NbTasks: 1}); err != nil {
		t.Fatal(err)
	}
	got2 := make([]bls12381.G2Affine, 1)
	if err := lib.Call("prcuda_test_sum_g2", c.arguments(g2[:c.points], got2)...); err != nil {
		t.Fatal(err)
	}
	if got2[0] != want2 {
		t.Errorf("G2: sum is %v, want %v", got2[0], want2)
	}
}

func samplePoints(n int) ([]bls12381.G1Affine, []bls12381.G2Affine) {
	_, _, one1, one2 := bls12381.Generators()
	scalars := make([]fr.Element, n)
	for i := range scalars {
		scalars[i].SetUint64(uint64(7*i*i + 3*i + 1))
	}
	return bls12381.BatchScalarMultiplicationG1(&one1, scalars), bls12381.BatchScalarMultiplicationG2(&one2, scalars)
}

func sampleScalars(random *rand.Rand, n int) []fr.Element {
	scalars := make([]fr.Element, n)
	for i := range scalars {
		scalars[i] = fr.Element{random.Uint64(), random.Uint64(), random.Uint64(), random.Uint64() >> 2}
	}
	return scalars
}

// edges are the scalars at which digits carry or end.
func edges(window int) []fr.Element {
	var all []fr.Element
	add := func(v *big.Int) {
		var e fr.Element
		all = append(all, *e.SetBigInt(v))
	}
	one := big.NewInt(1)
	for _, v := range []int64{0, 1, 2, -1, -2} {
		add(big.NewInt(v))
	}
	half := new(big.Int).Rsh(fr.Modulus(), 1)
	add(half)
	add(new(big.Int).Add(half, one))
	for at := window - 1; at < fr.Bits; at += window {
		power := new(big.Int).Lsh(one, uint(at))
		for _, v := range []int64{-1, 0, 1} {
			add(new(big.Int).Add(power, big.NewInt(v)))
		}
	}
	return all
}

// The signed digits of a scalar, each in its place, are the scalar, and each has a bucket.
func TestDigitsAreTheScalar(t *testing.T) {
	t.Parallel()
	lib := entry.Open(t)
	random := rand.New(rand.NewPCG(1, 2))
	for window := 4; window <= 22; window++ {
		count := (256 + window - 1) / window
		for _, scalar := range append(edges(window), sampleScalars(random, 20)...) {
			sizes, signs := make([]uint32, count), make([]uint32, count)
			if err := lib.Call("prcuda_test_digits", []fr.Element{scalar}, window, sizes, signs); err != nil {
				t.Fatal(err)
			}
			got := new(big.Int)
			for w := count - 1; w >= 0; w-- {
				if sizes[w] > 1<<(window-1) {
					t.Fatalf("window of %d bits: digit %d of %v is %d", window, w, scalar.String(), sizes[w])
				}
				digit := big.NewInt(int64(sizes[w]))
				if signs[w] == 1 {
					digit.Neg(digit)
				}
				got.Add(got.Lsh(got, uint(window)), digit)
			}
			if want := scalar.BigInt(new(big.Int)); got.Cmp(want) != 0 {
				t.Fatalf("window of %d bits: digits of %v make %v", window, want, got)
			}
		}
	}
}

func TestScanGivesTheSumsBefore(t *testing.T) {
	t.Parallel()
	lib := entry.Open(t)
	random := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{1, 2, 255, 256, 257, 4095, 4096, 4097, 3 * 4096, 300*4096 + 1} {
		values, want := make([]uint32, n), make([]uint32, n)
		sum := uint32(0)
		for i := range values {
			values[i] = random.Uint32N(1000)
			want[i] = sum
			sum += values[i]
		}
		total := make([]uint32, 1)
		if err := lib.Call("prcuda_test_scan", values, n, total); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, values); diff != "" || total[0] != sum {
			t.Errorf("%d values: sum is %d, want %d; (-want +got):\n%s", n, total[0], sum, diff)
		}
	}
}

// Full elements are lined up with points as the list leaves variables out.
func TestAlignmentLeavesOutVariablesWithoutAPoint(t *testing.T) {
	t.Parallel()
	lib := entry.Open(t)
	random := rand.New(rand.NewPCG(5, 6))
	for _, words := range []int{1, 63, 64, 65, 200} {
		full, density := make([]uint64, words), make([]uint64, words)
		for i := range full {
			full[i], density[i] = random.Uint64()&random.Uint64(), random.Uint64()|random.Uint64()
		}
		var want []uint32
		point := uint32(11)
		for v := range 64 * words {
			has := density[v/64]>>(v%64)&1 == 1
			if full[v/64]>>(v%64)&1 == 1 {
				if has {
					want = append(want, point)
				} else {
					want = append(want, noPoint)
				}
			}
			if has {
				point++
			}
		}
		got := make([]uint32, len(want))
		err := lib.Call("prcuda_test_align", full, rankIndex(full), density, rankIndex(density), 2*words, 11, got, len(got))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d words (-want +got):\n%s", words, diff)
		}
	}
}

func TestSumsOfRandomScalars(t *testing.T) {
	t.Parallel()
	lib := entry.Open(t)
	g1, g2 := samplePoints(600)
	random := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{0, 1, 2, 3, 31, 32, 33, 255, 256, 257, 513} {
		for _, c := range []sumCase{
			{window: 4, pass: 1024, lanes: 256, chunk: 1024},
			{window: 7, pass: 100, lanes: 33, chunk: 77},
			{window: 8, pass: 512, lanes: 1, chunk: 1024},
		} {
			t.Run(fmt.Sprintf("n=%d/window=%d", n, c.window), func(t *testing.T) {
				c.scalars, c.points = sampleScalars(random, n), max(n, 1)
				only2 := g2
				if n > 64 {
					only2 = nil
				}
				c.check(t, lib, g1, only2)
			})
		}
	}
}

// Scalars at which digits carry, and points that meet themselves, their opposites and infinity in a bucket.
func TestSumsAtTheEdges(t *testing.T) {
	t.Parallel()
	lib := entry.Open(t)
	g1, g2 := samplePoints(400)
	window := 8
	scalars := edges(window)
	n := len(scalars)
	shapes := map[string]func(i int) (point int, negative bool){
		"different points": func(i int) (int, bool) { return i, false },
		"equal points":     func(int) (int, bool) { return 5, false },
		"opposite points":  func(i int) (int, bool) { return 5, i%2 == 1 },
		"infinity":         func(i int) (int, bool) { return -1 + i%2*4, false },
	}
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			p1, p2 := make([]bls12381.G1Affine, n), make([]bls12381.G2Affine, n)
			for i := range p1 {
				at, negative := shape(i)
				if at < 0 {
					continue
				}
				p1[i], p2[i] = g1[at], g2[at]
				if negative {
					p1[i].Neg(&p1[i])
					p2[i].Neg(&p2[i])
				}
			}
			for _, lanes := range []int{1, 7, 256} {
				c := sumCase{scalars: scalars, points: n, window: window, pass: n, lanes: lanes, chunk: n}
				c.check(t, lib, p1, p2)
			}
		})
	}
}

// One bucket of each window gets everything: its run goes through all threads and all levels.
func TestSumsOfEqualScalars(t *testing.T) {
	t.Parallel()
	lib := entry.Open(t)
	const n = 500
	g1, g2 := samplePoints(n)
	random := rand.New(rand.NewPCG(9, 10))
	for name, scalar := range map[string]fr.Element{
		"zero": {}, "one": fr.One(), "random": sampleScalars(random, 1)[0], "r-1": *new(fr.Element).SetInt64(-1),
	} {
		t.Run(name, func(t *testing.T) {
			scalars := make([]fr.Element, n)
			for i := range scalars {
				scalars[i] = scalar
			}
			for _, lanes := range []int{2, 31, 256} {
				c := sumCase{scalars: scalars, points: n, window: 6, pass: n, lanes: lanes, chunk: n}
				c.check(t, lib, g1, nil)
			}
			c := sumCase{scalars: scalars[:40], points: 40, window: 6, pass: n, lanes: 64, chunk: n}
			c.check(t, lib, g1, g2)
		})
	}
}

// A whole query: inputs, bits and full elements, variables without a point, chunks that end anywhere.
func TestSumsOfAQueryInChunks(t *testing.T) {
	t.Parallel()
	lib := entry.Open(t)
	g1, g2 := samplePoints(64 * 70)
	random := rand.New(rand.NewPCG(11, 12))
	for _, words := range []int{1, 2, 64, 70} {
		const inputs = 3
		density, ones := make([]uint64, words), make([]uint64, words)
		c := sumCase{first: inputs, window: 5, lanes: 50, pass: 60}
		var full []uint32
		point := uint32(inputs)
		for v := range 64 * words {
			has := random.IntN(4) > 0
			switch random.IntN(8) {
			case 0: // full
				if has {
					full = append(full, point)
				} else {
					full = append(full, noPoint)
				}
			case 1, 2, 3:
				ones[v/64] |= 1 << (v % 64)
			}
			if has {
				density[v/64] |= 1 << (v % 64)
				point++
			}
		}
		c.density, c.ones, c.points = density, ones, int(point)
		c.indices = append([]uint32{0, noPoint, 2}, full...)
		c.scalars = sampleScalars(random, len(c.indices))
		for _, chunk := range []int{1 << 20, 1000, c.points/2 + 1} {
			c.chunk = chunk
			with2 := g2
			if words > 2 {
				with2 = nil
			}
			c.check(t, lib, g1, with2)
		}
	}
}
