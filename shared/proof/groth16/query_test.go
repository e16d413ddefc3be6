package groth16

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"math/rand/v2"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/msm"
)

// numbered is a list whose "points" are their own numbers, eight bytes each.
type numbered struct {
	count    int
	released []bool
}

func newNumbered(n int) *numbered { return &numbered{count: n, released: make([]bool, n)} }

func (*numbered) Name() string        { return "numbered" }
func (l *numbered) Len() int          { return l.count }
func (*numbered) Expect(from, to int) {}
func (*numbered) Decoded() bool       { return false }

func (*numbered) G1(int, int) []bls12381.G1Affine { panic("not decoded") }
func (*numbered) G2(int, int) []bls12381.G2Affine { panic("not decoded") }

func (l *numbered) Points(from, to int) []byte {
	var b []byte
	for i := from; i < to; i++ {
		b = binary.LittleEndian.AppendUint64(b, uint64(i))
	}
	return b
}

func (l *numbered) Release(from, to int) {
	for i := from; i < to; i++ {
		l.released[i] = true
	}
}

func numbers(p points, from, to int) ([]int, error) {
	b := p.Points(from, to)
	var list []int
	for ; len(b) > 0; b = b[8:] {
		list = append(list, int(binary.LittleEndian.Uint64(b)))
	}
	return list, nil
}

// recorder keeps the scalar of every point.
type recorder map[int]fr.Element

func (r recorder) Add(_ context.Context, bases []int, scalars []fr.Element) error {
	if len(bases) != len(scalars) {
		return msm.ErrLength
	}
	for i, point := range bases {
		r[point] = scalars[i]
	}
	return nil
}

func (r recorder) AddSplit(_ context.Context, bases []int, s msm.Split) error {
	full := s.Full
	if words := (len(bases) + 63) / 64; len(s.Ones) != words || len(s.Escapes) != words {
		return msm.ErrLength
	}
	for i, point := range bases {
		switch {
		case s.Escapes[i/64]>>(i%64)&1 == 1:
			r[point], full = full[0], full[1:]
		case s.Ones[i/64]>>(i%64)&1 == 1:
			r[point] = fr.One()
		default:
			r[point] = fr.Element{}
		}
	}
	if len(full) != 0 {
		return msm.ErrLength
	}
	return nil
}

// values is an assignment with its plain form.
type values struct {
	inputs, full []fr.Element
	ones, mask   []uint64
	plain        []fr.Element
}

func (v *values) Inputs() []fr.Element  { return v.inputs }
func (v *values) AuxOnes() []uint64     { return v.ones }
func (v *values) AuxFullMask() []uint64 { return v.mask }
func (v *values) AuxFull() []fr.Element { return v.full }

func randomValues(random *rand.Rand, inputs, aux int) *values {
	v := &values{ones: make([]uint64, (aux+63)/64), mask: make([]uint64, (aux+63)/64), plain: make([]fr.Element, aux)}
	for i := range inputs {
		v.inputs = append(v.inputs, fr.NewElement(uint64(1000+i)))
	}
	for i := range aux {
		switch {
		case random.IntN(40) == 0:
			v.mask[i/64] |= 1 << (i % 64)
			v.plain[i] = fr.NewElement(random.Uint64())
			v.full = append(v.full, v.plain[i])
		case random.IntN(2) == 0:
			v.ones[i/64] |= 1 << (i % 64)
			v.plain[i] = fr.One()
		}
	}
	return v
}

// density picks n bits, each with a chance of one in so many, and counts them.
func density(random *rand.Rand, n, among int) (bitmap []uint64, count int) {
	bitmap = make([]uint64, (n+63)/64)
	for i := range n {
		if random.IntN(among) == 0 {
			bitmap[i/64] |= 1 << (i % 64)
			count++
		}
	}
	return bitmap, count
}

func TestQueriesLineScalarsUpWithPoints(t *testing.T) {
	t.Parallel()
	chunk := 64 * chunkWords
	for name, c := range map[string]struct{ inputs, aux, among int }{
		"nothing":          {0, 0, 1},
		"inputs only":      {5, 0, 2},
		"one word":         {1, 64, 3},
		"part of a word":   {2, 63, 2},
		"all of them":      {3, 1000, 1},
		"few of them":      {70, 5000, 90},
		"a chunk":          {3, chunk, 3},
		"a chunk and one":  {3, chunk + 1, 1},
		"two chunks, part": {40, 2*chunk + 777, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(uint64(c.aux), uint64(c.among)))
			v := randomValues(random, c.inputs, c.aux)
			inputs, inputCount := density(random, c.inputs, 2)
			aux, auxCount := density(random, c.aux, c.among)
			list := newNumbered(inputCount + auxCount)
			want := recorder{}
			for i := range c.inputs {
				if inputs[i/64]>>(i%64)&1 == 1 {
					want[len(want)] = v.inputs[i]
				}
			}
			for i := range c.aux {
				if aux[i/64]>>(i%64)&1 == 1 {
					want[len(want)] = v.plain[i]
				}
			}
			queries := []*query{{points: list, inputs: inputs, aux: aux, auxCount: c.aux}}
			if c.among == 1 {
				queries = append(queries, &query{points: list, inputs: inputs, auxCount: c.aux})
			}
			for _, q := range queries {
				got := recorder{}
				if err := sum(t.Context(), q, v, numbers, accumulator[[]int](got)); err != nil {
					t.Fatal(err)
				}
				if !maps.Equal(want, got) {
					t.Fatalf("%d scalars differ from %d expected", len(got), len(want))
				}
			}
			for i, released := range list.released {
				if !released {
					t.Fatalf("point %d was not released", i)
				}
			}
		})
	}
}

func TestQueriesOfOtherLengthsAreRefused(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	v := randomValues(random, 10, 3000)
	inputs, inputCount := density(random, 10, 2)
	aux, auxCount := density(random, 3000, 3)
	for _, off := range []int{-1000, -1, 1, 64} {
		q := &query{points: newNumbered(inputCount + auxCount + off), inputs: inputs, aux: aux, auxCount: 3000}
		if err := sum(t.Context(), q, v, numbers, accumulator[[]int](recorder{})); !errors.Is(err, ErrCounts) {
			t.Errorf("%+d points: %v, want ErrCounts", off, err)
		}
	}
}

func TestExtractGathersBits(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 8))
	for n := range 20000 {
		w, mask := random.Uint64(), random.Uint64()
		if n%3 == 0 {
			mask |= random.Uint64() | random.Uint64()
		}
		if n < 3 {
			mask = []uint64{0, ^uint64(0), 1 << 63}[n]
		}
		var want uint64
		count := 0
		for i := range 64 {
			if mask>>i&1 == 1 {
				want |= w >> i & 1 << count
				count++
			}
		}
		if got := extract(w, mask); got != want {
			t.Fatalf("extract(%#x, %#x) = %#x, want %#x", w, mask, got, want)
		}
	}
}
