package gateway

import (
	"encoding/binary"
	"errors"
	"io"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
)

// peekBytesMax is how far into a request its kind is looked for. Encoders write fields by number, so that before the
// kind there is only the request's name.
const peekBytesMax = 4 << 10

// prefixBytes is what stands before a message: whether it is compressed, and its length.
const prefixBytes = 5

// Fields that are looked at.
const (
	fieldSubmit    = 1 // of ProveRequest
	fieldProofKind = 2 // of SubmitProofRequest
)

// head is the beginning of a request.
type head struct {
	bytes  []byte // that were read
	length int64  // of the message that follows the prefix
	kind   cuzkv1.ProofKind
	clear  bool // the kind was found
}

// errNoMessage is wrapped when a request ends before its message begins.
var errNoMessage = errors.New("request without a message")

// peek reads as much of a request as it takes to know the kind of proof that it asks for.
func peek(r io.Reader, wrapped bool) (head, error) {
	buffer := make([]byte, prefixBytes, prefixBytes+peekBytesMax)
	if n, err := io.ReadFull(r, buffer); err != nil {
		return head{bytes: buffer[:n]}, errors.Join(errNoMessage, err)
	}
	h := head{length: int64(binary.BigEndian.Uint32(buffer[1:]))}
	body := buffer[prefixBytes : prefixBytes+min(h.length, peekBytesMax)]
	n, err := io.ReadFull(r, body)
	h.bytes = buffer[:prefixBytes+n]
	if err != nil {
		return h, errors.Join(errNoMessage, err)
	}
	if buffer[0] == 0 { // what is compressed is not looked into
		h.kind, h.clear = kindIn(body, wrapped)
	}
	return h, nil
}

// kindIn finds the kind in the beginning of a SubmitProofRequest, or of a ProveRequest that wraps one.
func kindIn(b []byte, wrapped bool) (kind cuzkv1.ProofKind, found bool) {
	for len(b) > 0 {
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return 0, false
		}
		b = b[n:]
		switch {
		case wrapped && number == fieldSubmit && wire == protowire.BytesType:
			length, n := protowire.ConsumeVarint(b)
			if n < 0 {
				return 0, false
			}
			b = b[n:]
			return kindIn(b[:min(length, uint64(len(b)))], false)
		case !wrapped && number == fieldProofKind && wire == protowire.VarintType:
			value, n := protowire.ConsumeVarint(b)
			if n < 0 || value > kindsMax {
				return 0, false
			}
			return cuzkv1.ProofKind(value), true
		}
		if n = protowire.ConsumeFieldValue(number, wire, b); n < 0 {
			return 0, false
		}
		b = b[n:]
	}
	return 0, false
}

// kindsMax bounds the numbers of kinds: more than there will be, and small enough for every integer.
const kindsMax = 1 << 16
