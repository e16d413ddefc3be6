package groth16

import (
	"bytes"
	"errors"
	"fmt"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
)

// ProofBytes is the length of an encoded proof: A, B and C compressed (spec c2-formats.md 2.5).
const ProofBytes = 192

const (
	compressedG1Bytes = 48
	compressedG2Bytes = 96
)

// What an encoded proof is refused for.
var (
	// ErrLength: too few bytes, or bytes behind the end.
	ErrLength = errors.New("wrong length")
	// ErrEncoding: not compressed, a coordinate not below the field modulus, or no point on the curve has it.
	ErrEncoding = errors.New("point is not canonical or not on the curve")
	// ErrSubgroup: on the curve, but not of prime order.
	ErrSubgroup = errors.New("point is outside the prime-order subgroup")
	// ErrInfinity: the identity, which no valid proof has, or its flag together with other bits.
	ErrInfinity = errors.New("point at infinity or a bad encoding of it")
)

// Proof is one Groth16 proof.
type Proof struct {
	A bls12381.G1Affine
	B bls12381.G2Affine
	C bls12381.G1Affine
}

// Append appends the ProofBytes bytes of the proof.
func (p *Proof) Append(b []byte) []byte {
	a, q, c := p.A.Bytes(), p.B.Bytes(), p.C.Bytes()
	return append(append(append(b, a[:]...), q[:]...), c[:]...)
}

// Bytes is the encoded proof.
func (p *Proof) Bytes() [ProofBytes]byte {
	return [ProofBytes]byte(p.Append(make([]byte, 0, ProofBytes)))
}

// ParseProof reads exactly one proof and checks its points fully. Errors wrap ErrLength, ErrEncoding, ErrSubgroup or
// ErrInfinity and name the point.
func ParseProof(data []byte) (*Proof, error) {
	if len(data) != ProofBytes {
		return nil, fmt.Errorf("parse proof: %s: %w", lengthText(len(data), ProofBytes), ErrLength)
	}
	p := new(Proof)
	if err := p.decode(data); err != nil {
		return nil, fmt.Errorf("parse proof: %w", err)
	}
	return p, nil
}

// ParseProofs reads count proofs, one behind the other. Errors are those of ParseProof and name the proof.
func ParseProofs(data []byte, count int) ([]Proof, error) {
	if count < 0 || len(data) != count*ProofBytes {
		return nil, fmt.Errorf("parse %d proofs: %s: %w", count, lengthText(len(data), count*ProofBytes), ErrLength)
	}
	proofs := make([]Proof, count)
	for i := range proofs {
		if err := proofs[i].decode(data[i*ProofBytes:][:ProofBytes]); err != nil {
			return nil, fmt.Errorf("parse proof %d of %d: %w", i, count, err)
		}
	}
	return proofs, nil
}

func lengthText(have, want int) string {
	if have < want {
		return fmt.Sprintf("truncated, %d bytes of %d", have, want)
	}
	return fmt.Sprintf("%d bytes, %d expected", have, want)
}

func (p *Proof) decode(data []byte) error {
	b, c := data[compressedG1Bytes:], data[compressedG1Bytes+compressedG2Bytes:]
	if err := decodePoint(data[:compressedG1Bytes], &p.A, p.A.IsInSubGroup); err != nil {
		return fmt.Errorf("point A: %w", err)
	}
	if err := decodePoint(b[:compressedG2Bytes], &p.B, p.B.IsInSubGroup); err != nil {
		return fmt.Errorf("point B: %w", err)
	}
	if err := decodePoint(c, &p.C, p.C.IsInSubGroup); err != nil {
		return fmt.Errorf("point C: %w", err)
	}
	return nil
}

// Flag bits of a point's first byte (spec c2-formats.md 3.2).
const (
	flagCompressed = 0x80
	flagInfinity   = 0x40
)

// decodePoint reads one compressed point into to; inSubgroup tells about to afterwards.
func decodePoint(data []byte, to any, inSubgroup func() bool) error {
	switch first := data[0]; {
	case first&flagCompressed == 0:
		return fmt.Errorf("compression flag is not set: %w", ErrEncoding)
	case first&flagInfinity != 0:
		return ErrInfinity
	}
	decoder := bls12381.NewDecoder(bytes.NewReader(data), bls12381.NoSubgroupChecks())
	if err := decoder.Decode(to); err != nil {
		return fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	if !inSubgroup() {
		return ErrSubgroup
	}
	return nil
}
