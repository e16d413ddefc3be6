package groth16

import (
	"crypto/rand"
	"fmt"
	"math/big"

	"github.com/consensys/gnark-crypto/ecc"
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// BatchError tells which proofs of a batch are bad. It wraps ErrInvalid.
type BatchError struct {
	Bad   []int // indices, ascending
	Count int   // proofs in the batch
}

// Error names the bad proofs.
func (e *BatchError) Error() string {
	return fmt.Sprintf("proofs %v of %d do not verify", e.Bad, e.Count)
}

// Unwrap is ErrInvalid.
func (e *BatchError) Unwrap() error { return ErrInvalid }

// VerifyBatch checks proofs, each with its public inputs without ONE, under one key (spec c2-formats.md 3.8). A wrong
// proof passes with a chance of at most 2^-128. Errors: ErrInputCount; a *BatchError, for which the proofs are verified
// one by one; an empty batch or lists of different lengths are ErrInputCount, too.
func (k *PreparedKey) VerifyBatch(publicInputs [][]fr.Element, proofs []Proof) error {
	if len(proofs) == 0 || len(proofs) != len(publicInputs) {
		return fmt.Errorf("verify %d proofs: inputs of %d: %w", len(proofs), len(publicInputs), ErrInputCount)
	}
	for i := range publicInputs {
		if err := k.checkCount(publicInputs[i]); err != nil {
			return fmt.Errorf("verify proof %d of %d: %w", i, len(proofs), err)
		}
	}
	if len(proofs) > 1 {
		z, err := weights(len(proofs))
		if err != nil {
			return fmt.Errorf("verify %d proofs: %w", len(proofs), err)
		}
		if k.checkBatch(publicInputs, proofs, z) == nil {
			return nil
		}
	}
	bad := &BatchError{Count: len(proofs)}
	for i := range proofs {
		if k.Verify(publicInputs[i], &proofs[i]) != nil {
			bad.Bad = append(bad.Bad, i)
		}
	}
	if len(bad.Bad) > 0 {
		return bad
	}
	return nil
}

// weightBytes is the length of the random weights.
const weightBytes = 16

// weights gives n random numbers of 128 bits.
func weights(n int) ([]fr.Element, error) {
	random := make([]byte, n*weightBytes)
	if _, err := rand.Read(random); err != nil {
		return nil, fmt.Errorf("read random weights: %w", err)
	}
	z := make([]fr.Element, n)
	for i := range z {
		z[i].SetBytes(random[i*weightBytes:][:weightBytes])
	}
	return z, nil
}

// checkBatch checks the random combination: prod e(z_j A_j, B_j) e(sum z_j acc_j, -gamma) e(sum z_j C_j, -delta) is
// e(alpha, beta) to the sum of the z_j.
func (k *PreparedKey) checkBatch(publicInputs [][]fr.Element, proofs []Proof, z []fr.Element) error {
	var (
		a       = make([]bls12381.G1Affine, len(proofs), len(proofs)+2)
		b       = make([]bls12381.G2Affine, len(proofs), len(proofs)+2)
		c       = make([]bls12381.G1Affine, len(proofs))
		scalars = make([]fr.Element, len(k.key.IC))
		weight  big.Int
		term    fr.Element
	)
	for j := range proofs {
		a[j].ScalarMultiplication(&proofs[j].A, z[j].BigInt(&weight))
		b[j], c[j] = proofs[j].B, proofs[j].C
		scalars[0].Add(&scalars[0], &z[j])
		for i := range publicInputs[j] {
			term.Mul(&publicInputs[j][i], &z[j])
			scalars[i+1].Add(&scalars[i+1], &term)
		}
	}
	var sum bls12381.G1Affine
	if _, err := sum.MultiExp(c, z, ecc.MultiExpConfig{NbTasks: 1}); err != nil {
		return fmt.Errorf("verify batch: %w", err)
	}
	var want bls12381.GT
	want.Exp(k.alphaBeta, scalars[0].BigInt(&weight))
	return k.check(a, b, &sum, scalars, &want)
}
