package prover

import (
	"fmt"

	"github.com/proofrack/proofrack/shared/proof/groth16"
)

// Verified parses the bytes of a proof back, as whoever receives them will, and verifies it against the inputs of the
// source that it was made from. Every device ends with it. Errors wrap ErrProof and what package groth16 says.
func Verified(proof *groth16.Proof, key *groth16.PreparedKey, s Source) (*groth16.Proof, error) {
	data := proof.Bytes()
	parsed, err := groth16.ParseProof(data[:])
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	if err := key.Verify(s.Segment.Inputs()[1:], parsed); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrProof, err)
	}
	return parsed, nil
}
