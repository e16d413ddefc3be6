package ntt

import (
	"math/bits"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr/fft"
)

const (
	rootBits  = 32 // 2-adicity of r - 1
	tableBits = 11
	tables    = 3
)

// roots are the powers of the 2^32-th root of unity: that with exponent e0 + e1 2^11 + e2 2^22 is the product of one
// entry of each table.
type roots [tables][1 << tableBits]fr.Element

var rootsTable = sync.OnceValue(func() *roots {
	var r roots
	step, err := fft.Generator(1 << rootBits)
	if err != nil {
		panic("ntt: no root of unity of order 2^32: " + err.Error())
	}
	for i := range r {
		fft.BuildExpTable(step, r[i][:])
		for range tableBits {
			step.Square(&step)
		}
	}
	return &r
})

// power is the root to the exponent e.
func (r *roots) power(e uint32) fr.Element {
	const mask = 1<<tableBits - 1
	x := r[0][e&mask]
	x.Mul(&x, &r[1][e>>tableBits&mask])
	return *x.Mul(&x, &r[2][e>>(2*tableBits)])
}

// twiddle is T[n], or its inverse; n is below 2^31.
func (r *roots) twiddle(n uint32, inverse bool) fr.Element {
	e := bits.Reverse32(n) >> 1
	if inverse {
		e = -e
	}
	return r.power(e)
}

// stageTwiddles fills dst with T[n 2^u + i] for i below 2^u = len(dst), or their inverses; base is T[i] in the same
// sense.
func (r *roots) stageTwiddles(dst, base []fr.Element, n uint32, inverse bool) {
	shift := bits.TrailingZeros(uint(len(dst)))
	head := r.twiddle(n<<shift, inverse)
	v := fr.Vector(dst)
	v.ScalarMul(fr.Vector(base[:len(dst)]), &head)
}
