package msm

import (
	"encoding/binary"
	"math/big"
	"math/bits"
	"sync"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
)

// The vector kernels keep a field element a as a 2^416 mod p, not always below p, in limbs of 52 bits.
const (
	limbCount  = 8
	limbBits   = 52
	limbMask   = 1<<limbBits - 1
	blockLanes = 8
	blockWords = limbCount * blockLanes
)

type limbs [limbCount]uint64

// vectorConstants are field elements in the forms that conversions need.
type vectorConstants struct {
	modulus [fp.Limbs]uint64
	// down and up multiply by 2^-32 and 2^32: from a 2^416, read as gnark's a 2^32 2^384, to gnark's a, and back.
	down, up fp.Element
	// undo is 2^64: the inverse of gnark's a 2^32, times 2^64, is the vector form of 1/a.
	undo fp.Element
	// Numbers in limbs: 1 in vector form; 2^832, 2^448, 2^384, which multiplied in vector form convert from
	// plain numbers, from gnark's form, and to gnark's form; and the number 1, which converts to plain numbers.
	one, fromPlain, fromGnark, toGnark, toPlain limbs
}

var constants = sync.OnceValue(func() *vectorConstants {
	var c vectorConstants
	p := fp.Modulus()
	be := p.FillBytes(make([]byte, fp.Bytes))
	for i := range c.modulus {
		c.modulus[i] = binary.BigEndian.Uint64(be[fp.Bytes-8*(i+1):])
	}
	power := func(k uint) *big.Int {
		v := new(big.Int).Lsh(big.NewInt(1), k)
		return v.Mod(v, p)
	}
	c.up.SetBigInt(power(32))
	c.down.Inverse(&c.up)
	c.undo.SetBigInt(power(64))
	c.one, c.fromPlain, c.fromGnark = splitLimbs(power(416)), splitLimbs(power(832)), splitLimbs(power(448))
	c.toGnark, c.toPlain = splitLimbs(power(384)), splitLimbs(power(0))
	return &c
})

func splitLimbs(v *big.Int) limbs {
	var l limbs
	mask := big.NewInt(limbMask)
	for i := range l {
		l[i] = new(big.Int).And(new(big.Int).Rsh(v, uint(limbBits*i)), mask).Uint64()
	}
	return l
}

// cut returns a number of six words in limbs.
func cut(w *[fp.Limbs]uint64) limbs {
	return limbs{
		w[0] & limbMask,
		(w[0]>>52 | w[1]<<12) & limbMask,
		(w[1]>>40 | w[2]<<24) & limbMask,
		(w[2]>>28 | w[3]<<36) & limbMask,
		(w[3]>>16 | w[4]<<48) & limbMask,
		w[4] >> 4 & limbMask,
		(w[4]>>56 | w[5]<<8) & limbMask,
		w[5] >> 44,
	}
}

// join returns a number below 2^384 in limbs as six words, reduced below p.
func (c *vectorConstants) join(l *limbs) [fp.Limbs]uint64 {
	w := [fp.Limbs]uint64{
		l[0] | l[1]<<52,
		l[1]>>12 | l[2]<<40,
		l[2]>>24 | l[3]<<28,
		l[3]>>36 | l[4]<<16,
		l[4]>>48 | l[5]<<4 | l[6]<<56,
		l[6]>>8 | l[7]<<44,
	}
	for {
		var d [fp.Limbs]uint64
		var borrow uint64
		for i := range d {
			d[i], borrow = bits.Sub64(w[i], c.modulus[i], borrow)
		}
		if borrow != 0 {
			return w
		}
		w = d
	}
}

// element returns the field element of a vector form below 2^384.
func (c *vectorConstants) element(l *limbs) fp.Element {
	e := fp.Element(c.join(l))
	e.Mul(&e, &c.down)
	return e
}

// limbs returns the vector form of a field element.
func (c *vectorConstants) limbs(e *fp.Element) limbs {
	var up fp.Element
	up.Mul(e, &c.up)
	return cut((*[fp.Limbs]uint64)(&up))
}

// negate sets l to the vector form of -l, at most p.
func (c *vectorConstants) negate(l *limbs) {
	w := c.join(l)
	var borrow uint64
	for i := range w {
		w[i], borrow = bits.Sub64(c.modulus[i], w[i], borrow)
	}
	*l = cut(&w)
}
