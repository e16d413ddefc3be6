package srs

import (
	"context"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"golang.org/x/crypto/blake2b"
)

// digestHexLength is the length of a digest by the parameters.json rule.
const digestHexLength = 32

// Digest computes a digest by the parameters.json rule (spec c2-circuit.md 7.3): the first 16 bytes of BLAKE2b-512.
type Digest struct{ hash hash.Hash }

// NewDigest starts a digest.
func NewDigest() *Digest {
	h, err := blake2b.New512(nil)
	if err != nil {
		panic(err) // only a key can be at fault, and there is none
	}
	return &Digest{h}
}

// Write adds bytes; it never fails.
func (d *Digest) Write(p []byte) (int, error) { return d.hash.Write(p) }

// Hex is the digest of what was written so far: 32 lowercase hex digits.
func (d *Digest) Hex() string { return hex.EncodeToString(d.hash.Sum(nil))[:digestHexLength] }

// digestBlock is how much is read at a time.
const digestBlock = 4 << 20

// digestReader hashes total bytes of r.
func digestReader(ctx context.Context, r io.Reader, total int64, progress func(done, total int64)) (string, error) {
	d := NewDigest()
	block := make([]byte, min(digestBlock, total+1))
	for done := int64(0); done < total; {
		if err := ctx.Err(); err != nil {
			return "", err
		}
		n, err := r.Read(block)
		_, _ = d.Write(block[:n])
		done += int64(n)
		if progress != nil {
			progress(done, total)
		}
		if err == io.EOF && done != total {
			return "", fmt.Errorf("file became shorter while it was read: %w", io.ErrUnexpectedEOF)
		}
		if err != nil && err != io.EOF {
			return "", err
		}
	}
	return d.Hex(), nil
}
