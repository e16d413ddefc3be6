package gadget

import "github.com/proofrack/proofrack/shared/proof/r1cs"

// packBitCount is how many bits fit a field element for certain (spec 0.3 CAPACITY).
const packBitCount = r1cs.NumBitCount - 1

// limbSum is the linear combination of a 256-bit string's first n bits.
func limbSum(s *r1cs.System, limbs r1cs.Limbs, n int) r1cs.Lin {
	sum := s.BitSum()
	for i, limb := range limbs {
		if k := min(32, n-32*i); k > 0 {
			sum.Add(limb.Slice(0, k), 32*i)
		}
	}
	return sum.Lin()
}

// PackLimbs allocates the number made of the first 254 bits (spec 2.6 pack_bits).
func PackLimbs(s *r1cs.System, limbs r1cs.Limbs) r1cs.Num {
	return s.Assign(limbSum(s, limbs, packBitCount))
}

// PackIntoInput exposes at most 64 bits as one public input (spec 2.6 pack_into_inputs).
func PackIntoInput(s *r1cs.System, b r1cs.Bits) {
	sum := s.BitSum()
	sum.Add(b, 0)
	s.AssignInput(sum.Lin())
}

// MessageWords turns a 256-bit little-endian string into the eight words SHA-256 reads from its bytes (spec 2.6
// reverse_bit_numbering, then from_bits_be).
func MessageWords(limbs r1cs.Limbs) []r1cs.Bits {
	words := make([]r1cs.Bits, len(limbs))
	for i, limb := range limbs {
		words[i] = limb.ReverseBytes()
	}
	return words
}

// DigestLimbs reads a digest as a little-endian 256-bit string; the inverse of MessageWords.
func DigestLimbs(state State) r1cs.Limbs {
	var limbs r1cs.Limbs
	for i, word := range state {
		limbs[i] = word.ReverseBytes()
	}
	return limbs
}

// Uint64 allocates a 64-bit number, least significant bit first (spec 2.4 UInt64.alloc).
func Uint64(s *r1cs.System, v uint64) r1cs.Bits { return s.AllocBits(64, v) }
