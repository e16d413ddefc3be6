package sdr

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// ErrNotCanonical says that 32 bytes are not below the modulus of the scalar field.
var ErrNotCanonical = errors.New("not a canonical field element")

// clearTop clears the two top bits of a little-endian value, which makes every hash a canonical field element.
const clearTop = 0x3f

// Element reads a little-endian field element and refuses values that are not canonical.
func Element(value *[32]byte) (fr.Element, error) {
	e, err := fr.LittleEndian.Element(value)
	if err != nil {
		return fr.Element{}, fmt.Errorf("read field element %x: %w", value[:], ErrNotCanonical)
	}
	return e, nil
}

// Bytes writes a field element as 32 bytes, little-endian.
func Bytes(e *fr.Element) [32]byte {
	var value [32]byte
	fr.LittleEndian.PutElement(&value, *e)
	return value
}

// ReplicaID is SHA-256(prover_id ‖ sector u64 BE ‖ ticket ‖ comm_d ‖ porep_id) with its two top bits cleared
// (c2-formats.md 2.2).
func ReplicaID(proverID *[32]byte, sector uint64, ticket, commD, porepID *[32]byte) [32]byte {
	message := make([]byte, 0, 4*32+8)
	message = append(message, proverID[:]...)
	message = binary.BigEndian.AppendUint64(message, sector)
	message = append(message, ticket[:]...)
	message = append(message, commD[:]...)
	message = append(message, porepID[:]...)
	id := sha256.Sum256(message)
	id[31] &= clearTop
	return id
}
