package sdr

import (
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// ErrCommitment says that a text is no commitment.
var ErrCommitment = errors.New("no commitment")

// Commitment is one of a sector's two commitments, as the chain tells them apart.
type Commitment uint8

// The commitments.
const (
	DataCommitment    Commitment = iota // to its data: fil-commitment-unsealed
	ReplicaCommitment                   // to its replica: fil-commitment-sealed
)

// String is its name.
func (c Commitment) String() string { return [...]string{"comm_d", "comm_r"}[c] }

// prefix is what stands before the 32 bytes in a CID: version 1, codec, hash function and its length.
func (c Commitment) prefix() []byte {
	numbers := [...][]uint64{
		DataCommitment:    {1, 0xf101, 0x1012, 32}, // sha2-256-trunc254-padded
		ReplicaCommitment: {1, 0xf102, 0xb401, 32}, // poseidon-bls12_381-a2-fc1
	}[c]
	var out []byte
	for _, n := range numbers {
		out = binary.AppendUvarint(out, n)
	}
	return out
}

// base32Lower is multibase b.
func base32Lower() *base32.Encoding {
	return base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)
}

// CID is the commitment's value as the chain writes it: a CID of version 1 in base 32, "baga6ea4seaq…" or
// "bagboea4b5abc…".
func (c Commitment) CID(value [32]byte) string {
	return "b" + base32Lower().EncodeToString(append(c.prefix(), value[:]...))
}

// Parse reads 64 hex digits or the CID of a commitment of this kind. Any other text is ErrCommitment, with the reason.
func (c Commitment) Parse(text string) (value [32]byte, err error) {
	isCID := strings.HasPrefix(text, "b") && strings.ContainsFunc(text, func(c rune) bool { return c > 'f' })
	switch {
	case !isCID && len(text) == hex.EncodedLen(len(value)):
		raw, err := hex.DecodeString(text)
		if err != nil {
			return value, fmt.Errorf("%w: %s is not hex: %w", ErrCommitment, c, err)
		}
		return [32]byte(raw), nil
	case !isCID || len(text) > cidBytesMax:
		return value, fmt.Errorf("%w: %s has %d characters: it is neither 64 hex digits nor a CID in base 32 (bag…)",
			ErrCommitment, c, len(text))
	}
	raw, err := base32Lower().DecodeString(text[1:])
	if err != nil {
		return value, fmt.Errorf("%w: %s is a damaged CID: %w", ErrCommitment, c, err)
	}
	for _, kind := range []Commitment{DataCommitment, ReplicaCommitment} {
		prefix := string(kind.prefix())
		rest, ok := strings.CutPrefix(string(raw), prefix)
		switch {
		case !ok || len(rest) != len(value):
		case kind != c:
			return value, fmt.Errorf("%w: %s is given, the CID is of a %s", ErrCommitment, c, kind)
		case c.CID([32]byte([]byte(rest))) != text:
			return value, fmt.Errorf("%w: %s is a CID with bits that say nothing", ErrCommitment, c)
		default:
			return [32]byte([]byte(rest)), nil
		}
	}
	return value, fmt.Errorf("%w: %s is a CID of something else", ErrCommitment, c)
}

// cidBytesMax bounds a CID: more than any of a commitment has.
const cidBytesMax = 128
