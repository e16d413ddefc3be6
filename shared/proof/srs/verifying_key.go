package srs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
)

// What an encoded point can be refused for; wrapped in errors of ParseKey and in a Refusal.
var (
	// ErrEncoding: flags of a compressed point or of the identity, or coordinates that are not canonical, not on the
	// curve or outside the subgroup.
	ErrEncoding = errors.New("point is not a valid uncompressed one")
	// ErrLength: the bytes end too early or go on after the end.
	ErrLength = errors.New("length does not fit the counts")
)

// VerifyingKey is a Groth16 verifying key (spec c2-formats.md 3.3). Its points are in the prime-order subgroup and none
// is the identity.
type VerifyingKey struct {
	AlphaG1, BetaG1 bls12381.G1Affine
	BetaG2, GammaG2 bls12381.G2Affine
	DeltaG1         bls12381.G1Affine
	DeltaG2         bls12381.G2Affine
	IC              []bls12381.G1Affine // one for each input, ONE first; at least one
}

// icCountMax bounds the inputs of a circuit; the largest Filecoin circuit has 23,491.
const icCountMax = 1 << 17

// ParseKey reads a `.vk` file's content; nothing may follow. Every point is checked fully. Errors wrap ErrEncoding or
// ErrLength.
func ParseKey(data []byte) (*VerifyingKey, error) {
	key, n, err := parseKeyHead(data)
	if err != nil {
		return nil, err
	}
	if n != len(data) {
		return nil, fmt.Errorf("parse verifying key: %d bytes after %d ic points: %w",
			len(data)-n, len(key.IC), ErrLength)
	}
	return key, nil
}

// parseKeyHead reads the key that data starts with and gives its length.
func parseKeyHead(data []byte) (*VerifyingKey, int, error) {
	if len(data) < icOffset {
		return nil, 0, fmt.Errorf("parse verifying key: %d bytes, at least %d expected: %w",
			len(data), icOffset, ErrLength)
	}
	count := int64(binary.BigEndian.Uint32(data[keyHeadBytes:]))
	end := icOffset + G1Bytes*count
	if count == 0 || count > icCountMax || end > int64(len(data)) {
		return nil, 0, fmt.Errorf("parse verifying key: %d ic points in %d bytes, 1 to %d expected: %w",
			count, len(data), min(icCountMax, (len(data)-icOffset)/G1Bytes), ErrLength)
	}
	key := &VerifyingKey{IC: make([]bls12381.G1Affine, count)}
	r := keyReader{rest: data[:end]}
	r.g1("alpha_g1", &key.AlphaG1)
	r.g1("beta_g1", &key.BetaG1)
	r.g2("beta_g2", &key.BetaG2)
	r.g2("gamma_g2", &key.GammaG2)
	r.g1("delta_g1", &key.DeltaG1)
	r.g2("delta_g2", &key.DeltaG2)
	r.rest = r.rest[countBytes:]
	for i := range key.IC {
		if r.err != nil {
			break
		}
		r.g1(fmt.Sprintf("ic point %d", i), &key.IC[i])
	}
	if r.err != nil {
		return nil, 0, fmt.Errorf("parse verifying key: %w", r.err)
	}
	return key, int(end), nil
}

// keyReader takes points off a list of known length and keeps the first error.
type keyReader struct {
	rest []byte
	err  error
}

func (r *keyReader) g1(name string, to *bls12381.G1Affine) {
	if err := decodeG1(r.rest[:G1Bytes], to); err != nil && r.err == nil {
		r.err = fmt.Errorf("%s: %w", name, err)
	}
	r.rest = r.rest[G1Bytes:]
}

func (r *keyReader) g2(name string, to *bls12381.G2Affine) {
	if err := decodeG2(r.rest[:G2Bytes], to); err != nil && r.err == nil {
		r.err = fmt.Errorf("%s: %w", name, err)
	}
	r.rest = r.rest[G2Bytes:]
}

// Flag bits of a point's first byte (spec c2-formats.md 3.2).
const (
	flagCompressed = 0x80
	flagInfinity   = 0x40
	flagSign       = 0x20
)

// checkFlags refuses everything but an ordinary uncompressed point.
func checkFlags(first byte) error {
	switch {
	case first&flagCompressed != 0:
		return fmt.Errorf("compressed flag is set: %w", ErrEncoding)
	case first&flagInfinity != 0:
		return fmt.Errorf("point at infinity: %w", ErrEncoding)
	case first&flagSign != 0:
		return fmt.Errorf("sign flag on an uncompressed point: %w", ErrEncoding)
	}
	return nil
}

// decodeG1 reads one uncompressed point and checks it fully: flags, canonical coordinates, curve and subgroup.
func decodeG1(b []byte, to *bls12381.G1Affine) error {
	if err := checkFlags(b[0]); err != nil {
		return err
	}
	if _, err := to.SetBytes(b); err != nil {
		return fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	return nil
}

// decodeG2 is decodeG1 for G2.
func decodeG2(b []byte, to *bls12381.G2Affine) error {
	if err := checkFlags(b[0]); err != nil {
		return err
	}
	if _, err := to.SetBytes(b); err != nil {
		return fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	return nil
}

// Append appends the content of the `.vk` file, which is also the head of the `.params` file.
func (k *VerifyingKey) Append(b []byte) []byte {
	g1 := func(p *bls12381.G1Affine) { raw := p.RawBytes(); b = append(b, raw[:]...) }
	g2 := func(p *bls12381.G2Affine) { raw := p.RawBytes(); b = append(b, raw[:]...) }
	g1(&k.AlphaG1)
	g1(&k.BetaG1)
	g2(&k.BetaG2)
	g2(&k.GammaG2)
	g1(&k.DeltaG1)
	g2(&k.DeltaG2)
	b = binary.BigEndian.AppendUint32(b, uint32(len(k.IC)))
	for i := range k.IC {
		g1(&k.IC[i])
	}
	return b
}

// WriteTo writes the content of the `.vk` file.
func (k *VerifyingKey) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(k.Append(nil))
	if err != nil {
		return int64(n), fmt.Errorf("write verifying key: %w", err)
	}
	return int64(n), nil
}
