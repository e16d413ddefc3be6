package sdr

import (
	"encoding/binary"
	"math/bits"
)

// chacha8 draws u64 values from ChaCha with eight rounds, a 64-bit block counter from 0 and stream 0. The libraries at
// hand offer twenty rounds only (x/crypto) or another output order (math/rand/v2).
type chacha8 struct {
	key     [8]uint32
	counter uint64
	words   [16]uint32
	used    int
}

func newChacha8(key *[32]byte) chacha8 {
	c := chacha8{used: 16}
	for i := range c.key {
		c.key[i] = binary.LittleEndian.Uint32(key[4*i:])
	}
	return c
}

// next is the next u64: two consecutive output words, the low one first. Blocks hold an even number of words, so a
// value never spans two.
func (c *chacha8) next() uint64 {
	if c.used == len(c.words) {
		c.block()
	}
	low, high := c.words[c.used], c.words[c.used+1]
	c.used += 2
	return uint64(high)<<32 | uint64(low)
}

func (c *chacha8) block() {
	start := [16]uint32{
		0x61707865, 0x3320646e, 0x79622d32, 0x6b206574, // "expand 32-byte k"
		c.key[0], c.key[1], c.key[2], c.key[3], c.key[4], c.key[5], c.key[6], c.key[7],
		uint32(c.counter), uint32(c.counter >> 32), 0, 0,
	}
	x := start
	for range 4 {
		quarterRound(&x[0], &x[4], &x[8], &x[12])
		quarterRound(&x[1], &x[5], &x[9], &x[13])
		quarterRound(&x[2], &x[6], &x[10], &x[14])
		quarterRound(&x[3], &x[7], &x[11], &x[15])
		quarterRound(&x[0], &x[5], &x[10], &x[15])
		quarterRound(&x[1], &x[6], &x[11], &x[12])
		quarterRound(&x[2], &x[7], &x[8], &x[13])
		quarterRound(&x[3], &x[4], &x[9], &x[14])
	}
	for i := range x {
		c.words[i] = x[i] + start[i]
	}
	c.counter++
	c.used = 0
}

func quarterRound(a, b, c, d *uint32) {
	*a += *b
	*d = bits.RotateLeft32(*d^*a, 16)
	*c += *d
	*b = bits.RotateLeft32(*b^*c, 12)
	*a += *b
	*d = bits.RotateLeft32(*d^*a, 8)
	*c += *d
	*b = bits.RotateLeft32(*b^*c, 7)
}
