package groth16

import (
	"errors"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc"
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/srs"
)

// What verification fails for.
var (
	// ErrInvalid: the pairing equation does not hold.
	ErrInvalid = errors.New("proof does not verify")
	// ErrInputCount: the key is for another number of public inputs.
	ErrInputCount = errors.New("wrong number of public inputs")
)

// PreparedKey is a verifying key with what every verification under it shares. It may be used from several goroutines.
type PreparedKey struct {
	key                *srs.VerifyingKey
	alphaBeta          bls12381.GT // e(alpha, beta)
	minusGamma, minusD bls12381.G2Affine
}

// Prepare computes e(alpha, beta) of a key. The key must not change afterwards.
func Prepare(key *srs.VerifyingKey) (*PreparedKey, error) {
	k := &PreparedKey{key: key}
	var err error
	k.alphaBeta, err = bls12381.Pair([]bls12381.G1Affine{key.AlphaG1}, []bls12381.G2Affine{key.BetaG2})
	if err != nil {
		return nil, fmt.Errorf("prepare verifying key: %w", err)
	}
	k.minusGamma.Neg(&key.GammaG2)
	k.minusD.Neg(&key.DeltaG2)
	return k, nil
}

// VerifyingKey is the key that was prepared.
func (k *PreparedKey) VerifyingKey() *srs.VerifyingKey { return k.key }

// Verify prepares the key and verifies one proof; see PreparedKey.Verify.
func Verify(key *srs.VerifyingKey, publicInputs []fr.Element, proof *Proof) error {
	k, err := Prepare(key)
	if err != nil {
		return err
	}
	return k.Verify(publicInputs, proof)
}

// Verify checks one proof against its public inputs, ONE left out (spec c2-formats.md 3.7):
// e(A, B) = e(alpha, beta) e(ic_0 + sum x_i ic_i, gamma) e(C, delta). Errors wrap ErrInputCount or ErrInvalid. The
// proof's points must be in the subgroup, as ParseProof makes sure.
func (k *PreparedKey) Verify(publicInputs []fr.Element, proof *Proof) error {
	if err := k.checkCount(publicInputs); err != nil {
		return fmt.Errorf("verify proof: %w", err)
	}
	scalars := make([]fr.Element, len(k.key.IC))
	scalars[0].SetOne()
	copy(scalars[1:], publicInputs)
	return k.check([]bls12381.G1Affine{proof.A}, []bls12381.G2Affine{proof.B}, &proof.C, scalars, &k.alphaBeta)
}

func (k *PreparedKey) checkCount(publicInputs []fr.Element) error {
	if have, want := len(publicInputs), len(k.key.IC)-1; have != want {
		return fmt.Errorf("%d, the verifying key is for %d: %w", have, want, ErrInputCount)
	}
	return nil
}

// check compares prod e(a_j, b_j) e(sum scalars_i ic_i, -gamma) e(c, -delta) with want.
func (k *PreparedKey) check(
	a []bls12381.G1Affine, b []bls12381.G2Affine, c *bls12381.G1Affine, scalars []fr.Element, want *bls12381.GT,
) error {
	var acc bls12381.G1Affine
	if _, err := acc.MultiExp(k.key.IC, scalars, ecc.MultiExpConfig{NbTasks: 1}); err != nil {
		return fmt.Errorf("verify proof: combine public inputs: %w", err)
	}
	got, err := bls12381.Pair(append(a, acc, *c), append(b, k.minusGamma, k.minusD))
	if err != nil {
		return fmt.Errorf("verify proof: %w", err)
	}
	if !got.Equal(want) {
		return ErrInvalid
	}
	return nil
}
