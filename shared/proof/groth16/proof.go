package groth16

import (
	"bytes"
	"errors"
	"fmt"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fp"
)

// ProofBytes is the length of an encoded proof: A, B and C compressed (spec c2-formats.md 2.5).
const ProofBytes = 192

const (
	compressedG1Bytes = 48
	compressedG2Bytes = 96
)

// What an encoded proof is refused for. An error of ParseProof or ParseProofs wraps exactly one of them.
var (
	// ErrProofLength: too few bytes, or bytes behind the end.
	ErrProofLength = errors.New("wrong length")
	// ErrNotCanonical: the compression flag is missing, or a coordinate is not below the field modulus.
	ErrNotCanonical = errors.New("point is not canonical")
	// ErrNotOnCurve: no point on the curve has the coordinate.
	ErrNotOnCurve = errors.New("point is not on the curve")
	// ErrSubgroup: on the curve, but not of prime order.
	ErrSubgroup = errors.New("point is outside the prime-order subgroup")
	// ErrInfinity: the identity, well encoded; no valid proof has it (spec c2-formats.md 2.6).
	ErrInfinity = errors.New("point is at infinity")
	// ErrInfinityEncoding: the flag of the identity together with other bits.
	ErrInfinityEncoding = errors.New("bad encoding of the point at infinity")
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

// ParseProof reads exactly one proof and checks its points fully. What it takes has these very bytes again. Errors wrap
// one of the errors above; all but ErrProofLength name the point and the byte where its encoding begins.
func ParseProof(data []byte) (*Proof, error) {
	if len(data) != ProofBytes {
		return nil, fmt.Errorf("parse proof: %s: %w", lengthText(len(data), ProofBytes), ErrProofLength)
	}
	p := new(Proof)
	if err := p.decode(data, 0); err != nil {
		return nil, fmt.Errorf("parse proof: %w", err)
	}
	return p, nil
}

// ParseProofs reads count proofs, one behind the other. Errors are those of ParseProof and name the proof, too; bytes
// are counted from the first proof's start.
func ParseProofs(data []byte, count int) ([]Proof, error) {
	if count < 0 || len(data) != count*ProofBytes {
		return nil, fmt.Errorf("parse %d proofs: %s: %w", count, lengthText(len(data), count*ProofBytes), ErrProofLength)
	}
	proofs := make([]Proof, count)
	for i := range proofs {
		if err := proofs[i].decode(data, i*ProofBytes); err != nil {
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

// decode reads the proof that starts at byte from; data holds it whole.
func (p *Proof) decode(data []byte, from int) error {
	for _, point := range []struct {
		name       string
		bytes      int
		to         any
		inSubgroup func() bool
	}{
		{"A", compressedG1Bytes, &p.A, p.A.IsInSubGroup},
		{"B", compressedG2Bytes, &p.B, p.B.IsInSubGroup},
		{"C", compressedG1Bytes, &p.C, p.C.IsInSubGroup},
	} {
		if err := decodePoint(data[from:][:point.bytes], point.to, point.inSubgroup); err != nil {
			return fmt.Errorf("point %s at byte %d: %w", point.name, from, err)
		}
		from += point.bytes
	}
	return nil
}

// Flag bits of a point's first byte (spec c2-formats.md 3.2). The third one, the sign of y, may be set or not.
const (
	flagCompressed = 0x80
	flagInfinity   = 0x40
	flagsAll       = 0xe0
)

// decodePoint reads one compressed point, of one or two coordinates, into to; inSubgroup tells about to afterwards.
func decodePoint(data []byte, to any, inSubgroup func() bool) error {
	switch first := data[0]; {
	case first&flagCompressed == 0:
		return fmt.Errorf("%w: the compression flag is not set", ErrNotCanonical)
	case first&flagInfinity == 0:
	case first == flagCompressed|flagInfinity && bytes.Count(data[1:], []byte{0}) == len(data)-1:
		return ErrInfinity
	default:
		return ErrInfinityEncoding
	}
	if !canonical(data) {
		return fmt.Errorf("%w: a coordinate is not below the field modulus", ErrNotCanonical)
	}
	decoder := bls12381.NewDecoder(bytes.NewReader(data), bls12381.NoSubgroupChecks())
	if err := decoder.Decode(to); err != nil {
		return fmt.Errorf("%w: %w", ErrNotOnCurve, err)
	}
	if !inSubgroup() {
		return ErrSubgroup
	}
	return nil
}

// canonical tells whether every coordinate of a compressed point is below the field modulus. The decoder looks, too,
// but its error does not tell this from other faults.
func canonical(data []byte) bool {
	for at := 0; at < len(data); at += fp.Bytes {
		x := [fp.Bytes]byte(data[at:])
		if at == 0 {
			x[0] &^= flagsAll
		}
		if new(fp.Element).SetBytesCanonical(x[:]) != nil {
			return false
		}
	}
	return true
}
