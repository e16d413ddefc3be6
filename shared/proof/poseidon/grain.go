package poseidon

import (
	"math/big"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

const (
	grainStateBits = 80
	grainWarmUp    = 160
)

// grain is the self-shrinking Grain LFSR of c2-circuit.md 2.9. The state is a ring: bit i of the register is
// state[(head+i) mod 80].
type grain struct {
	state [grainStateBits]uint8
	head  int
}

// newGrain seeds the register for one instance: field type, S-box type, field size, width and round numbers, most
// significant bit first, then ones; and discards the warm-up output.
func newGrain(width, fullRounds, partialRounds int) *grain {
	g := new(grain)
	at := 0
	put := func(value, bits int) {
		for i := bits - 1; i >= 0; i-- {
			g.state[at] = uint8(value>>i) & 1
			at++
		}
	}
	put(1, 2)
	put(1, 4)
	put(fr.Bits, 12)
	put(width, 12)
	put(fullRounds, 10)
	put(partialRounds, 10)
	for ; at < grainStateBits; at++ {
		g.state[at] = 1
	}
	for range grainWarmUp {
		g.step()
	}
	return g
}

// step clocks the register once and returns the new bit.
func (g *grain) step() uint8 {
	tap := func(i int) uint8 { return g.state[(g.head+i)%grainStateBits] }
	bit := tap(62) ^ tap(51) ^ tap(38) ^ tap(23) ^ tap(13) ^ tap(0)
	g.state[g.head] = bit
	g.head = (g.head + 1) % grainStateBits
	return bit
}

// bit is the next bit of the shrunk stream: of each pair of register bits the second, if the first is one.
func (g *grain) bit() uint8 {
	for {
		keep := g.step()
		bit := g.step()
		if keep == 1 {
			return bit
		}
	}
}

// element takes 255 bits, most significant first, until they are below the modulus.
func (g *grain) element() fr.Element {
	modulus := fr.Modulus()
	for {
		value := new(big.Int)
		for i := fr.Bits - 1; i >= 0; i-- {
			value.SetBit(value, i, uint(g.bit()))
		}
		if value.Cmp(modulus) < 0 {
			var e fr.Element
			e.SetBigInt(value)
			return e
		}
	}
}

// rawConstants gives the (full + partial)·width round constants in order of use.
func rawConstants(width, fullRounds, partialRounds int) []fr.Element {
	g := newGrain(width, fullRounds, partialRounds)
	constants := make([]fr.Element, (fullRounds+partialRounds)*width)
	for i := range constants {
		constants[i] = g.element()
	}
	return constants
}
