package c1

import (
	"errors"
	"fmt"
	"io"
	"strconv"
)

const (
	// windowBytes is the read buffer, the only part of the text that is ever in memory.
	windowBytes = 256 << 10
	// lookaheadBytes is what the fast path of a 32-number list may read past the current position.
	lookaheadBytes = 256
	// skipDepthMax bounds the nesting inside a value of an unknown key.
	skipDepthMax = 32
	// keyBytesMax bounds a key or a short string after unescaping.
	keyBytesMax = 256
	// excerptBytesMax bounds what an error quotes of the input.
	excerptBytesMax = 24
)

// scanner reads JSON tokens from a stream through a sliding window. The first failure sticks: from then on every method
// returns at once and err says what happened. It keeps no more than the window, whatever comes in.
type scanner struct {
	src io.Reader
	// buf holds the window and lookaheadBytes of zeros behind it; buf[pos:end] is unread.
	buf      []byte
	pos, end int
	// base is the stream offset of buf[0]; bytesMax bounds the stream.
	base, bytesMax int64
	exhausted      bool
	scratch        []byte
	// where gives the place of an error, apart from the offset.
	where func() InputError
	err   error
}

func newScanner(src io.Reader, bytesMax int64, where func() InputError) *scanner {
	return &scanner{
		src: src, bytesMax: bytesMax, where: where,
		buf: make([]byte, windowBytes+lookaheadBytes), scratch: make([]byte, 0, keyBytesMax),
	}
}

// offset is the stream position of the next unread byte.
func (s *scanner) offset() int64 { return s.base + int64(s.pos) }

// fail records the first failure at the current position.
func (s *scanner) fail(format string, args ...any) { s.failAt(s.offset(), format, args...) }

func (s *scanner) failAt(offset int64, format string, args ...any) {
	if s.err != nil {
		return
	}
	place := s.where()
	place.Offset = offset
	place.Reason = fmt.Sprintf(format, args...)
	s.stop(&place)
}

// stop records the first failure and empties the window, so that every method finds the end of the input.
func (s *scanner) stop(err error) {
	if s.err != nil {
		return
	}
	s.base = s.offset()
	s.err = err
	s.pos, s.end, s.exhausted = 0, 0, true
	clear(s.buf[:lookaheadBytes])
}

// failRead records an error of the source. A refusal found further down passes unchanged.
func (s *scanner) failRead(err error) {
	if refusal := new(InputError); errors.As(err, &refusal) {
		s.stop(refusal)
		return
	}
	s.stop(fmt.Errorf("read C1 input: %w", err))
}

// fill makes at least n ≤ lookaheadBytes unread bytes available, or all that are left.
func (s *scanner) fill(n int) {
	if s.end-s.pos >= n || s.exhausted {
		return
	}
	copy(s.buf, s.buf[s.pos:s.end])
	s.base += int64(s.pos)
	s.end -= s.pos
	s.pos = 0
	for empty := 0; s.end < n && !s.exhausted; {
		got, err := s.src.Read(s.buf[s.end:windowBytes])
		s.end += got
		if s.base+int64(s.end) > s.bytesMax {
			s.failAt(s.bytesMax, "longer than the %d bytes allowed", s.bytesMax)
			return
		}
		if empty++; got > 0 {
			empty = 0
		}
		switch {
		case err == io.EOF:
			s.exhausted = true
		case err != nil:
			s.failRead(err)
			return
		case empty == 100:
			s.failRead(io.ErrNoProgress)
			return
		}
	}
	clear(s.buf[s.end : s.end+lookaheadBytes])
}

// peek gives the next byte that is not white space, without taking it; 0 at the end of the input or after a failure.
func (s *scanner) peek() byte {
	for {
		for ; s.pos < s.end; s.pos++ {
			switch c := s.buf[s.pos]; c {
			case ' ', '\n', '\t', '\r':
			case 0:
				s.fail("unexpected NUL byte")
				return 0
			default:
				return c
			}
		}
		if s.fill(1); s.pos == s.end {
			return 0
		}
	}
}

// expect takes the byte c, after white space.
func (s *scanner) expect(c byte, inside string) {
	if got := s.peek(); got != c {
		s.unexpected(got, strconv.QuoteRune(rune(c))+" "+inside)
		return
	}
	s.pos++
}

// unexpected fails with what was wanted and what is there; got is the result of peek.
func (s *scanner) unexpected(got byte, want string) {
	switch {
	case s.err != nil:
	case got == 0:
		s.fail("input ends where %s should follow", want)
	default:
		s.fail("want %s, found %s", want, s.describe(got))
	}
}

// describe is a word for what stands at the current position; got is the result of peek.
func (s *scanner) describe(got byte) string {
	switch {
	case got == 0:
		return "the end of the input"
	case got == 'n':
		return "null"
	case got == 't' || got == 'f':
		return "a truth value"
	case got == '{':
		return "an object"
	case got == '[':
		return "a list"
	case got == '"':
		return "a text"
	case got == '-' || got >= '0' && got <= '9':
		return "the number " + s.numberExcerpt()
	}
	return "byte " + quotedByte(got)
}

// next tells whether another member or element follows: it takes ',' and says true, or takes the closing byte and says
// false. first is for the place right behind the opening byte; inside names the members for an error.
func (s *scanner) next(closing byte, first bool, inside string) bool {
	got := s.peek()
	switch {
	case got == closing:
		s.pos++
		return false
	case first && s.err == nil && got != 0 && got != ',':
		return true
	case !first && got == ',':
		s.pos++
		if got = s.peek(); got != closing {
			return s.err == nil
		}
		s.fail("comma before %q in %s", closing, inside)
		return false
	}
	if first {
		s.unexpected(got, "a value in "+inside)
	} else {
		s.unexpected(got, "',' or "+strconv.QuoteRune(rune(closing))+" in "+inside)
	}
	return false
}

// finish demands that only white space is left.
func (s *scanner) finish() {
	if got := s.peek(); s.err == nil && got != 0 {
		s.fail("trailing bytes after the end of the object, starting with %s", quotedByte(got))
	}
}

// quotedByte is a byte in a form that is harmless to print.
func quotedByte(c byte) string { return strconv.QuoteToASCII(string([]byte{c})) }

// begin refuses what is no JSON text at all, with a word on what it looks like.
func (s *scanner) begin() {
	s.fill(4)
	if s.err != nil {
		return
	}
	head := s.buf[s.pos:s.end]
	has := func(prefix ...byte) bool {
		return len(head) >= len(prefix) && string(head[:len(prefix)]) == string(prefix)
	}
	switch {
	case len(head) == 0:
		s.fail("empty input")
	case has(0xef, 0xbb, 0xbf):
		s.fail("starts with a UTF-8 byte order mark; plain UTF-8 JSON is wanted")
	case has(0xff, 0xfe), has(0xfe, 0xff), has('{', 0), has(0, '{'):
		s.fail("looks like UTF-16; UTF-8 JSON is wanted")
	case has(0x1f, 0x8b):
		s.fail("looks like gzip; plain JSON is wanted")
	case has(0x28, 0xb5, 0x2f, 0xfd):
		s.fail("looks like zstd; plain JSON is wanted")
	}
}
