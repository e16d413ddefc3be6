package c1

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
)

// strictBase64 is the standard alphabet with padding; bits behind the last byte must be zero.
var strictBase64 = base64.StdEncoding.Strict()

// base64Reader decodes the JSON string at the current position of the outer scanner, which must be behind its opening
// quote, and takes the closing quote. Line breaks, other alphabets and missing padding are refused. A refusal sticks to
// the outer scanner and is what Read returns.
type base64Reader struct {
	outer *scanner
	// quad collects characters when the string cannot be taken in bulk.
	quad      [4]byte
	quadCount int
	// spare holds decoded bytes that did not fit the caller's buffer.
	spare      [3]byte
	spareBytes []byte
	padded     bool
	closed     bool
}

func (b *base64Reader) Read(p []byte) (int, error) {
	if len(b.spareBytes) > 0 {
		n := copy(p, b.spareBytes)
		b.spareBytes = b.spareBytes[n:]
		return n, nil
	}
	for !b.closed && b.outer.err == nil {
		if n := b.bulk(p); n > 0 {
			return n, nil
		}
		if b.single(); len(b.spareBytes) > 0 {
			n := copy(p, b.spareBytes)
			b.spareBytes = b.spareBytes[n:]
			return n, nil
		}
	}
	if b.outer.err != nil {
		return 0, b.outer.err
	}
	return 0, io.EOF
}

// bulk decodes whole groups of four from the window into p, up to the next character that is special in JSON, and gives
// the number of bytes written.
func (b *base64Reader) bulk(p []byte) int {
	s := b.outer
	s.fill(4)
	text := s.buf[s.pos:s.end]
	text = text[:min(len(text), len(p)/3*4)]
	if end := bytes.IndexByte(text, '"'); end >= 0 {
		text = text[:end]
	}
	for _, special := range []byte{'\\', '\n', '\r'} {
		if end := bytes.IndexByte(text, special); end >= 0 {
			text = text[:end]
		}
	}
	text = text[:len(text)/4*4]
	if b.quadCount > 0 || b.padded || len(text) == 0 {
		return 0
	}
	n, err := strictBase64.Decode(p, text)
	if err != nil {
		b.refuse(s.offset()+int64(corruptAt(err)), "a character, or padding,")
		return 0
	}
	b.padded = n != len(text)/4*3
	s.pos += len(text)
	return n
}

// single takes one character of the string, and decodes when a group of four is complete.
func (b *base64Reader) single() {
	at := b.outer.offset()
	r, more := b.outer.char()
	switch {
	case b.outer.err != nil:
		return
	case !more && b.quadCount != 0:
		b.refuse(at, "the length (no multiple of four characters)")
		return
	case !more:
		b.closed = true
		return
	case r >= 0x80 || r == '\n' || r == '\r' || b.padded:
		b.refuse(at, "a character")
		return
	}
	b.quad[b.quadCount] = byte(r)
	if b.quadCount++; b.quadCount < len(b.quad) {
		return
	}
	b.quadCount = 0
	n, err := strictBase64.Decode(b.spare[:], b.quad[:])
	if err != nil {
		b.refuse(at, "a character, or padding, of the group that ends here")
		return
	}
	b.padded = n < len(b.spare)
	b.spareBytes = b.spare[:n]
}

func (b *base64Reader) refuse(offset int64, what string) {
	b.outer.failAt(offset, "%s is not standard base64 (A-Z a-z 0-9 + / with = padding, no line breaks)", what)
}

// corruptAt is where in the decoded text the library found the fault.
func corruptAt(err error) int {
	var at base64.CorruptInputError
	if errors.As(err, &at) {
		return int(at)
	}
	return 0
}
