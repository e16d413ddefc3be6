package c1

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

// listEnds are the bytes behind each number of a 32-number list.
const listEnds = ",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,]"

// hash reads one 32-byte value: a list of exactly 32 integers from 0 to 255.
//
// The fast path takes four bytes at a time and finds the end of the number by bit tricks instead of a branch for each
// digit, since the number of digits is as good as random. It only collects whether anything was unusual; the slow path
// then reads the list again and accepts it or says what is wrong.
func (s *scanner) hash(dst *[32]byte) {
	s.fill(lookaheadBytes)
	if s.buf[s.pos] != '[' {
		s.hashSlowly(dst)
		return
	}
	var unusual uint32
	text := s.buf[s.pos+1 : s.pos+lookaheadBytes]
	at := 0
	for i := range dst {
		word := binary.LittleEndian.Uint32(text[at:]) ^ 0x30303030
		stops := (word + 0x76767676 | word) & 0x80808080
		digits := uint32(bits.TrailingZeros32(stops)) >> 3
		aligned := word << (32 - 8*digits)
		value := (aligned>>8&0xff)*100 + (aligned>>16&0xff)*10 + aligned>>24
		dst[i] = byte(value)
		unusual |= value>>8 | (digits-1)>>31 | digits>>2 | uint32(text[at+int(digits)]^listEnds[i])
		if digits > 1 && word&0xff == 0 {
			unusual = 1
		}
		at += int(digits) + 1
	}
	if unusual != 0 {
		s.hashSlowly(dst)
		return
	}
	s.pos += 1 + at
}

// hashSlowly reads the same list number by number, with white space where JSON allows it.
func (s *scanner) hashSlowly(dst *[32]byte) {
	if got := s.peek(); got != '[' {
		s.unexpected(got, "a list of 32 integers from 0 to 255")
		return
	}
	start := s.offset()
	s.pos++
	count := 0
	for s.next(']', count == 0, "a list of 32 integers") {
		if count == len(dst) {
			s.fail("list of more than 32 integers, want 32")
			return
		}
		dst[count] = byte(s.integer(255))
		count++
	}
	if s.err == nil && count != len(dst) {
		s.failAt(start, "list of %d integers, want 32", count)
	}
}

// integer reads a JSON integer from 0 to limit. A sign, a fraction, an exponent or a leading zero is refused.
func (s *scanner) integer(limit uint64) uint64 {
	got := s.peek()
	if got < '0' || got > '9' {
		s.notInteger(got, limit)
		return 0
	}
	s.fill(lookaheadBytes)
	var value uint64
	digits := 0
	for ; ; digits++ {
		c := s.buf[s.pos+digits]
		if c < '0' || c > '9' {
			break
		}
		high, low := bits.Mul64(value, 10)
		next, carry := bits.Add64(low, uint64(c-'0'), 0)
		if value = next; high != 0 || carry != 0 || value > limit || digits > 0 && s.buf[s.pos] == '0' {
			s.notInteger(got, limit)
			return 0
		}
	}
	if c := s.buf[s.pos+digits]; c == '.' || c == 'e' || c == 'E' {
		s.notInteger(got, limit)
		return 0
	}
	s.pos += digits
	return value
}

func (s *scanner) notInteger(got byte, limit uint64) {
	s.unexpected(got, "an integer from 0 to "+strconv.FormatUint(limit, 10))
}

// numberExcerpt is the start of the number at the current position, for an error.
func (s *scanner) numberExcerpt() string {
	s.fill(lookaheadBytes)
	end := s.pos
	for end < s.end && isNumberByte(s.buf[end]) {
		if end-s.pos == excerptBytesMax {
			return string(s.buf[s.pos:end]) + "…"
		}
		end++
	}
	return string(s.buf[s.pos:end])
}

func isNumberByte(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// skipNumber passes over any JSON number.
func (s *scanner) skipNumber() {
	digits := func() {
		count := 0
		for s.one(func(c byte) bool { return c >= '0' && c <= '9' }) != 0 {
			count++
		}
		if count == 0 {
			s.fail("number without digits")
		}
	}
	s.one(func(c byte) bool { return c == '-' })
	if s.one(func(c byte) bool { return c == '0' }) == 0 {
		digits()
	}
	if s.one(func(c byte) bool { return c == '.' }) != 0 {
		digits()
	}
	if s.one(func(c byte) bool { return c == 'e' || c == 'E' }) != 0 {
		s.one(func(c byte) bool { return c == '-' || c == '+' })
		digits()
	}
	if s.fill(1); s.err == nil && s.pos < s.end && isNumberByte(s.buf[s.pos]) {
		s.fail("malformed number")
	}
}

// one takes the next byte if it is of the given kind; otherwise it gives 0.
func (s *scanner) one(kind func(byte) bool) byte {
	if s.fill(1); s.pos < s.end && kind(s.buf[s.pos]) {
		s.pos++
		return s.buf[s.pos-1]
	}
	return 0
}
