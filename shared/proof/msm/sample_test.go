package msm

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"sync"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// sample is a multiplication whose result is known: base i is logs[i] times the generator.
type sample struct {
	logs    []fr.Element
	scalars []fr.Element
}

// wantLog is the discrete logarithm of the sum.
func (s sample) wantLog() fr.Element {
	var sum, t fr.Element
	for i := range s.logs {
		t.Mul(&s.logs[i], &s.scalars[i])
		sum.Add(&sum, &t)
	}
	return sum
}

func (s sample) wantG1() bls12381.G1Affine {
	log := s.wantLog()
	var want bls12381.G1Affine
	want.ScalarMultiplicationBase(log.BigInt(new(big.Int)))
	return want
}

func (s sample) wantG2() bls12381.G2Affine {
	log := s.wantLog()
	var want bls12381.G2Affine
	want.ScalarMultiplicationBase(log.BigInt(new(big.Int)))
	return want
}

// poolSize is the number of distinct multiples of the generator that samples draw bases from.
const poolSize = 1 << 13

// poolLogs are fixed pseudo-random logarithms.
var poolLogs = sync.OnceValue(func() []fr.Element {
	return randomScalars(rand.New(rand.NewPCG(10, 16)), poolSize)
})

var poolG1 = sync.OnceValue(func() []bls12381.G1Affine {
	_, _, g, _ := bls12381.Generators()
	return bls12381.BatchScalarMultiplicationG1(&g, poolLogs())
})

var poolG2 = sync.OnceValue(func() []bls12381.G2Affine {
	_, _, _, g := bls12381.Generators()
	return bls12381.BatchScalarMultiplicationG2(&g, poolLogs()[:1<<11])
})

func randomScalars(r *rand.Rand, n int) []fr.Element {
	out := make([]fr.Element, n)
	for i := range out {
		out[i] = randomScalar(r)
	}
	return out
}

func randomScalar(r *rand.Rand) fr.Element {
	var b [fr.Bytes]byte
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	var s fr.Element
	s.SetBytes(b[:])
	return s
}

// basesKinds choose for base i of n an index into the pool and a sign; 0 stands for the identity.
var basesKinds = map[string]func(r *rand.Rand, i int) (index, sign int){
	"distinct":  func(_ *rand.Rand, i int) (int, int) { return i, 1 },
	"one point": func(_ *rand.Rand, _ int) (int, int) { return 7, 1 },
	"repeated":  func(_ *rand.Rand, i int) (int, int) { return i % 5, 1 },
	"opposites": func(_ *rand.Rand, i int) (int, int) { return i / 2, 1 - 2*(i%2) },
	"identity":  func(_ *rand.Rand, _ int) (int, int) { return 0, 0 },
	"mixed":     func(r *rand.Rand, _ int) (int, int) { return int(r.Uint32() % 64), int(r.Uint32()%3) - 1 },
}

// scalarKinds choose scalar i.
var scalarKinds = map[string]func(r *rand.Rand, i int) fr.Element{
	"random":      func(r *rand.Rand, _ int) fr.Element { return randomScalar(r) },
	"zero":        func(_ *rand.Rand, _ int) fr.Element { return fr.Element{} },
	"one":         func(_ *rand.Rand, _ int) fr.Element { return fr.One() },
	"minus one":   func(_ *rand.Rand, _ int) fr.Element { return minusOne() },
	"two":         func(_ *rand.Rand, _ int) fr.Element { return fr.NewElement(2) },
	"all equal":   func(_ *rand.Rand, _ int) fr.Element { return poolLogs()[3] },
	"small":       func(r *rand.Rand, _ int) fr.Element { return fr.NewElement(uint64(r.Uint32() % 300)) },
	"powers of 2": func(_ *rand.Rand, i int) fr.Element { return power2(i % 255) },
	"mixed": func(r *rand.Rand, i int) fr.Element {
		switch r.Uint32() % 6 {
		case 0:
			return fr.Element{}
		case 1, 2:
			return fr.One()
		case 3:
			return minusOne()
		case 4:
			return power2(i % 255)
		default:
			return randomScalar(r)
		}
	},
}

func minusOne() fr.Element {
	one := fr.One()
	var m fr.Element
	m.Neg(&one)
	return m
}

func power2(k int) fr.Element {
	var s fr.Element
	s.SetBigInt(new(big.Int).Lsh(big.NewInt(1), uint(k)))
	return s
}

// newSample draws n bases and scalars; negate and pick build the points of one group.
func newSample[A any](seed uint64, n int, bases, scalars string, pool []A, negate func(A) A) (sample, []A) {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	var s sample
	points := make([]A, n)
	for i := range n {
		index, sign := basesKinds[bases](r, i)
		index %= len(pool)
		log := poolLogs()[index]
		switch sign {
		case 1:
			points[i] = pool[index]
		case -1:
			log.Neg(&log)
			points[i] = negate(pool[index])
		default:
			log = fr.Element{}
		}
		s.logs = append(s.logs, log)
		s.scalars = append(s.scalars, scalarKinds[scalars](r, i))
	}
	return s, points
}

func sampleG1(seed uint64, n int, bases, scalars string) (sample, []bls12381.G1Affine) {
	return newSample(seed, n, bases, scalars, poolG1(), func(p bls12381.G1Affine) bls12381.G1Affine {
		p.Neg(&p)
		return p
	})
}

func sampleG2(seed uint64, n int, bases, scalars string) (sample, []bls12381.G2Affine) {
	return newSample(seed, n, bases, scalars, poolG2(), func(p bls12381.G2Affine) bls12381.G2Affine {
		p.Neg(&p)
		return p
	})
}

func encodeG1(points []bls12381.G1Affine) []byte {
	var out []byte
	for i := range points {
		b := points[i].RawBytes()
		out = append(out, b[:]...)
	}
	return out
}

func encodeG2(points []bls12381.G2Affine) []byte {
	var out []byte
	for i := range points {
		b := points[i].RawBytes()
		out = append(out, b[:]...)
	}
	return out
}

// backends runs a test for the portable and for the vector arithmetic; on a CPU without the latter both are the
// portable one.
func backends(t *testing.T, test func(t *testing.T, c Config)) {
	for _, portable := range []bool{true, false} {
		t.Run(fmt.Sprintf("portable=%v", portable), func(t *testing.T) {
			t.Parallel()
			test(t, Config{Portable: portable, Workers: 2})
		})
	}
}
