package c1

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// text reads a JSON string of at most keyBytesMax bytes. The result is valid until the next call of any method.
func (s *scanner) text(want string) []byte {
	if got := s.peek(); got != '"' {
		s.unexpected(got, want)
		return nil
	}
	s.scratch = s.scratch[:0]
	if s.fill(lookaheadBytes); s.err != nil {
		return nil
	}
	for at := s.pos + 1; at < min(s.end, s.pos+lookaheadBytes); at++ {
		switch c := s.buf[at]; {
		case c == '"':
			text := s.buf[s.pos+1 : at]
			s.pos = at + 1
			return text
		case c == '\\' || c < ' ' || c >= utf8.RuneSelf:
			return s.textSlowly(want)
		}
	}
	return s.textSlowly(want)
}

// textSlowly reads a string with escapes or other than ASCII.
func (s *scanner) textSlowly(want string) []byte {
	start := s.offset()
	s.pos++
	for {
		r, more := s.char()
		if !more {
			return s.scratch
		}
		if len(s.scratch)+utf8.UTFMax > keyBytesMax {
			s.failAt(start, "text longer than %d bytes where %s should be", keyBytesMax-utf8.UTFMax, want)
			return nil
		}
		s.scratch = utf8.AppendRune(s.scratch, r)
	}
}

// char reads one character inside a string, unescaped. At the closing quote, which it takes, and after a failure it
// says that there are no more.
func (s *scanner) char() (rune, bool) {
	s.fill(utf8.UTFMax)
	if s.pos == s.end {
		s.fail("input ends inside a text")
		return 0, false
	}
	switch c := s.buf[s.pos]; {
	case c == '"':
		s.pos++
		return 0, false
	case c == '\\':
		return s.escape()
	case c < ' ':
		s.fail("control character %#02x inside a text", c)
		return 0, false
	case c < utf8.RuneSelf:
		s.pos++
		return rune(c), true
	}
	r, size := utf8.DecodeRune(s.buf[s.pos:s.end])
	if r == utf8.RuneError && size <= 1 {
		s.fail("text is not valid UTF-8")
		return 0, false
	}
	s.pos += size
	return r, true
}

// escape reads a backslash sequence, a surrogate pair included.
func (s *scanner) escape() (rune, bool) {
	s.fill(12)
	if s.pos+1 >= s.end {
		s.fail("input ends inside a text")
		return 0, false
	}
	var plain = [...]rune{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
	c := s.buf[s.pos+1]
	if int(c) < len(plain) && plain[c] != 0 {
		s.pos += 2
		return plain[c], true
	}
	r, ok := s.unicodeEscape(s.pos)
	if !ok {
		s.fail("unknown escape in a text")
		return 0, false
	}
	s.pos += 6
	if !utf16.IsSurrogate(r) {
		return r, true
	}
	low, ok := s.unicodeEscape(s.pos)
	if r = utf16.DecodeRune(r, low); !ok || r == utf8.RuneError {
		s.fail("half of a surrogate pair in a text")
		return 0, false
	}
	s.pos += 6
	return r, true
}

// unicodeEscape reads the \uXXXX at the given place of the window.
func (s *scanner) unicodeEscape(at int) (rune, bool) {
	if at+6 > s.end || s.buf[at] != '\\' || s.buf[at+1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range s.buf[at+2 : at+6] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// skipValue passes over any JSON value, checking its form.
func (s *scanner) skipValue(depth int) {
	switch got := s.peek(); {
	case got == '{' || got == '[':
		if depth == skipDepthMax {
			s.fail("nested more than %d deep inside an unknown field", skipDepthMax)
			return
		}
		s.pos++
		s.skipMembers(got, depth)
	case got == '"':
		s.pos++
		for more := true; more; {
			_, more = s.char()
		}
	case got == '-' || got >= '0' && got <= '9':
		s.skipNumber()
	case got == 'n':
		s.literal("null")
	case got == 't':
		s.literal("true")
	case got == 'f':
		s.literal("false")
	default:
		s.unexpected(got, "a value")
	}
}

// skipMembers passes over the rest of an object or a list whose opening byte has been taken.
func (s *scanner) skipMembers(opening byte, depth int) {
	closing := opening + 2
	for first := true; s.next(closing, first, "an unknown field"); first = false {
		if opening == '{' {
			if got := s.peek(); got != '"' {
				s.unexpected(got, "a key")
				return
			}
			s.skipValue(depth + 1)
			s.expect(':', "after a key")
		}
		s.skipValue(depth + 1)
	}
}

// literal takes one of the three words.
func (s *scanner) literal(word string) {
	s.fill(len(word))
	for i := range len(word) {
		switch {
		case s.pos == s.end:
			s.unexpected(0, word[i:])
			return
		case s.buf[s.pos] != word[i]:
			s.fail("malformed word, want %s", word)
			return
		}
		s.pos++
	}
}

// quoted makes outside text harmless and short.
func quoted(text string) string {
	if len(text) > excerptBytesMax {
		return strconv.QuoteToASCII(text[:excerptBytesMax]) + "…"
	}
	return strconv.QuoteToASCII(text)
}
