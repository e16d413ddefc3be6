package groth16

import (
	"math/big"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/groth16/internal/blinding"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// blind are the random scalars of one proof.
type blind struct{ r, s, rs *big.Int }

func newBlind(source blinding.Source) (*blind, error) {
	r, s, err := source.Draw()
	if err != nil {
		return nil, err
	}
	var rs fr.Element
	rs.Mul(&r, &s)
	return &blind{r: r.BigInt(new(big.Int)), s: s.BigInt(new(big.Int)), rs: rs.BigInt(new(big.Int))}, nil
}

// Sums are those over the lists of a parameter file for one assignment; C is over H and L.
type Sums struct {
	A, B1, C bls12381.G1Affine
	B2       bls12381.G2Affine
}

// Assemble blinds sums that somebody else computed, such as a device, and puts the proof together. Of the options
// WithBlinding and WithObserver count. The proof is not verified here.
func Assemble(key *srs.VerifyingKey, sums *Sums, options ...Option) (*Proof, error) {
	p := newProver(options)
	defer p.observe(StageAssemble)()
	b, err := newBlind(p.blinding)
	if err != nil {
		return nil, err
	}
	return b.assemble(key, sums), nil
}

// assemble is spec c2-formats.md 3.6:
//
//	A = alpha + A' + r·delta
//	B = beta + B2' + s·delta
//	C = H + L + s·(A' + alpha) + r·(B1' + beta) + rs·delta
func (b *blind) assemble(key *srs.VerifyingKey, sums *Sums) *Proof {
	var proof Proof
	var a, b1, c, term bls12381.G1Jac
	a.FromAffine(&sums.A)
	a.AddMixed(&key.AlphaG1)
	b1.FromAffine(&sums.B1)
	b1.AddMixed(&key.BetaG1)

	c.FromAffine(&sums.C)
	c.AddAssign(term.ScalarMultiplication(&a, b.s))
	c.AddAssign(term.ScalarMultiplication(&b1, b.r))
	var delta bls12381.G1Jac
	delta.FromAffine(&key.DeltaG1)
	c.AddAssign(term.ScalarMultiplication(&delta, b.rs))
	a.AddAssign(term.ScalarMultiplication(&delta, b.r))

	var bTwo, deltaTwo bls12381.G2Jac
	bTwo.FromAffine(&sums.B2)
	bTwo.AddMixed(&key.BetaG2)
	deltaTwo.FromAffine(&key.DeltaG2)
	bTwo.AddAssign(deltaTwo.ScalarMultiplication(&deltaTwo, b.s))

	proof.A.FromJacobian(&a)
	proof.B.FromJacobian(&bTwo)
	proof.C.FromJacobian(&c)
	return &proof
}
