package msm

import (
	"fmt"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
)

// Sizes of encoded points, bytes: uncompressed, big-endian, c2-formats.md section 3.
const (
	// G1Bytes is x, y of 48 bytes each.
	G1Bytes = 96
	// G2Bytes is x.c1, x.c0, y.c1, y.c0 of 48 bytes each.
	G2Bytes = 192
	// coordBytes is one base field element.
	coordBytes = 48
)

// Flag bits of the first byte of an encoded point.
const (
	flagCompressed = 0x80
	flagInfinity   = 0x40
	flagSign       = 0x20
	flagMask       = flagCompressed | flagInfinity | flagSign
)

// Bases is a list of points, either encoded (for example a mapped parameter file) or already decoded. It refers to
// the caller's memory, which must not change while an accumulator reads it. The zero value is an empty list.
type Bases[A any] struct {
	encoded []byte
	size    int // bytes per encoded point, 0 for decoded ones
	affine  []A
}

// G1Bases and G2Bases are the lists that the two groups take.
type (
	G1Bases = Bases[bls12381.G1Affine]
	G2Bases = Bases[bls12381.G2Affine]
)

// EncodedG1 refers to uncompressed points of G1Bytes each; a length that is no multiple gives ErrLength. Coordinates
// are checked when a point is used: one that is not below p, or a wrong flag, gives ErrEncoding then. Neither the
// curve equation nor the subgroup is checked.
func EncodedG1(b []byte) (G1Bases, error) { return encodedBases[bls12381.G1Affine](b, G1Bytes) }

// EncodedG2 is EncodedG1 for points of G2Bytes each.
func EncodedG2(b []byte) (G2Bases, error) { return encodedBases[bls12381.G2Affine](b, G2Bytes) }

func encodedBases[A any](b []byte, size int) (Bases[A], error) {
	if len(b)%size != 0 {
		return Bases[A]{}, fmt.Errorf("read %d bytes as points of %d: %w", len(b), size, ErrLength)
	}
	return Bases[A]{encoded: b, size: size}, nil
}

// AffineG1 refers to decoded points.
func AffineG1(p []bls12381.G1Affine) G1Bases { return G1Bases{affine: p} }

// AffineG2 refers to decoded points.
func AffineG2(p []bls12381.G2Affine) G2Bases { return G2Bases{affine: p} }

// Len is the number of points.
func (b Bases[A]) Len() int {
	if b.size > 0 {
		return len(b.encoded) / b.size
	}
	return len(b.affine)
}

// Slice is the list of the points from..to-1; it panics when they are out of range, as slicing does.
func (b Bases[A]) Slice(from, to int) Bases[A] {
	if b.size > 0 {
		return Bases[A]{encoded: b.encoded[from*b.size : to*b.size], size: b.size}
	}
	return Bases[A]{affine: b.affine[from:to]}
}

// point returns the encoding of point i of an encoded list.
func (b Bases[A]) point(i int) []byte { return b.encoded[i*b.size : (i+1)*b.size : (i+1)*b.size] }

// checkFlags returns whether the encoded point is the identity, and an error for flags that an uncompressed point
// cannot have.
func checkFlags(p []byte) (infinite bool, err error) {
	switch p[0] & flagMask {
	case 0:
		return false, nil
	case flagInfinity:
		rest := p[0] &^ flagInfinity
		for _, b := range p[1:] {
			rest |= b
		}
		if rest != 0 {
			return false, fmt.Errorf("identity with coordinates: %w", ErrEncoding)
		}
		return true, nil
	default:
		return false, fmt.Errorf("flags %#x: %w", p[0]&flagMask, ErrEncoding)
	}
}
