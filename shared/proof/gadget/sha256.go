package gadget

import (
	"math/bits"

	"github.com/proofrack/proofrack/shared/proof/r1cs"
)

// Block is one SHA-256 message block: 16 words, each 32 bits, least significant first.
type Block [16]r1cs.Bits

// State is a SHA-256 chaining value: eight words of 32 bits, least significant first.
type State [8]r1cs.Bits

var sha256IV = [8]uint32{
	0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
}

var sha256K = [64]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}

func constant(v uint32) r1cs.Bits { return r1cs.ConstBits(32, uint64(v)) }

// SHA256IV is the initial state, all constants.
func SHA256IV() State {
	var s State
	for i, v := range sha256IV {
		s[i] = constant(v)
	}
	return s
}

// SHA256 hashes a message of whole words (spec 2.7). The result is the final state: word 0 is the first of the digest.
func SHA256(s *r1cs.System, message []r1cs.Bits) State {
	state := SHA256IV()
	var block Block
	for _, word := range pad(message) {
		block = Block(word)
		state = Compress(s, block, state)
	}
	return state
}

// pad appends the padding of spec 2.7, all constants, and cuts the message into blocks.
func pad(message []r1cs.Bits) [][]r1cs.Bits {
	length := uint64(len(message)) * 32
	words := append(append([]r1cs.Bits(nil), message...), constant(1<<31))
	for len(words)%16 != 14 {
		words = append(words, constant(0))
	}
	words = append(words, constant(uint32(length>>32)), constant(uint32(length)))
	var blocks [][]r1cs.Bits
	for ; len(words) > 0; words = words[16:] {
		blocks = append(blocks, words[:16])
	}
	return blocks
}

// Compress is one SHA-256 compression (spec 2.7 compress). The sums for e and a of a round are materialized only in the
// next round, e first; the last ones take the incoming word into the same sum.
func Compress(s *r1cs.System, block Block, state State) State {
	eq := newMultiEq(s)
	m := &eq
	var w [64]r1cs.Bits
	schedule(s, m, &block, &w)
	a, b, c, d, e, f, g, h := state[0], state[1], state[2], state[3], state[4], state[5], state[6], state[7]
	var pendingA, pendingE []r1cs.Bits
	var termsA, termsE [8]r1cs.Bits
	for i := range 64 {
		if pendingE != nil {
			e = addMany(s, m, pendingE)
		}
		s1 := s.Xor(s.Xor(e.RotateRight(6), e.RotateRight(11)), e.RotateRight(25))
		ch := s.Ch(e, f, g)
		t1 := [5]r1cs.Bits{h, s1, ch, constant(sha256K[i]), w[i]}
		if pendingA != nil {
			a = addMany(s, m, pendingA)
		}
		s0 := s.Xor(s.Xor(a.RotateRight(2), a.RotateRight(13)), a.RotateRight(22))
		maj := s.Maj(a, b, c)
		pendingE = append(append(termsE[:0], t1[:]...), d)
		pendingA = append(append(termsA[:0], t1[:]...), s0, maj)
		h, g, f, d, c, b = g, f, e, c, b, a
	}
	out := State{
		addMany(s, m, append(pendingA, state[0])), addMany(s, m, []r1cs.Bits{state[1], b}),
		addMany(s, m, []r1cs.Bits{state[2], c}), addMany(s, m, []r1cs.Bits{state[3], d}),
		addMany(s, m, append(pendingE, state[4])), addMany(s, m, []r1cs.Bits{state[5], f}),
		addMany(s, m, []r1cs.Bits{state[6], g}), addMany(s, m, []r1cs.Bits{state[7], h}),
	}
	m.finish()
	return out
}

// schedule expands the message block to 64 words.
func schedule(s *r1cs.System, m *multiEq, block *Block, w *[64]r1cs.Bits) {
	copy(w[:], block[:])
	for i := 16; i < 64; i++ {
		s0 := s.Xor(w[i-15].RotateRight(7), w[i-15].RotateRight(18))
		s0 = s.Xor(s0, w[i-15].ShiftRight(3))
		s1 := s.Xor(w[i-2].RotateRight(17), w[i-2].RotateRight(19))
		s1 = s.Xor(s1, w[i-2].ShiftRight(10))
		w[i] = addMany(s, m, []r1cs.Bits{w[i-16], s0, w[i-7], s1})
	}
}

// multiEq batches additions into few constraints (spec 2.5).
type multiEq struct {
	system      *r1cs.System
	used        int
	left, right r1cs.BitSum
}

// multiEqBitsMax is the capacity of a field element: sums of fewer bits cannot wrap.
const multiEqBitsMax = 254

func newMultiEq(s *r1cs.System) multiEq {
	return multiEq{system: s, left: s.BitSum(), right: s.BitSum()}
}

// reserve makes room for an equation of n bits and gives its place.
func (m *multiEq) reserve(n int) (shift int) {
	if m.used+n >= multiEqBitsMax {
		m.flush()
	}
	shift = m.used
	m.used += n
	return shift
}

func (m *multiEq) flush() {
	m.system.EqualSums(&m.left, &m.right)
	m.used = 0
}

func (m *multiEq) finish() {
	if m.used > 0 {
		m.flush()
	}
}

// addMany is the sum modulo 2^32 of 2 to 8 words (spec 2.5 addmany).
func addMany(s *r1cs.System, m *multiEq, words []r1cs.Bits) r1cs.Bits {
	var sum uint64
	allConst := true
	for _, w := range words {
		sum += w.Val
		allConst = allConst && w.AllConst()
	}
	if allConst {
		return constant(uint32(sum))
	}
	n := bits.Len64(uint64(len(words)) * (1<<32 - 1))
	out := s.AllocBits(n, sum)
	shift := m.reserve(n)
	for _, w := range words {
		m.left.Add(w, shift)
	}
	m.right.Add(out, shift)
	return out.Slice(0, 32)
}
