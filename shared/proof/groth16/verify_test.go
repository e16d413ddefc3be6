package groth16

import (
	"errors"
	"math/rand/v2"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

func TestForeignProofVerifies(t *testing.T) {
	t.Parallel()
	f := readForeign(t)
	if err := Verify(f.key(t), publicInputs(t, &f.sector), f.proof(t)); err != nil {
		t.Fatal(err)
	}
}

func TestForeignProofFailsWithTheOtherParentOrder(t *testing.T) {
	t.Parallel()
	f := readForeign(t)
	f.sector.Config.Version = sdr.APIVersion1_0
	if err := Verify(f.key(t), publicInputs(t, &f.sector), f.proof(t)); !errors.Is(err, ErrInvalid) {
		t.Fatalf("got %v, want ErrInvalid", err)
	}
}

func TestForeignProofFailsWithAnyFlippedBit(t *testing.T) {
	t.Parallel()
	f := readForeign(t)
	key, err := Prepare(f.key(t))
	if err != nil {
		t.Fatal(err)
	}
	inputs := publicInputs(t, &f.sector)
	verified := 0
	for bit := range 8 * ProofBytes {
		flipped := append([]byte(nil), f.proofBytes...)
		flipped[bit/8] ^= 1 << (bit % 8)
		proof, err := ParseProof(flipped)
		if err != nil {
			continue
		}
		verified++
		if err := key.Verify(inputs, proof); !errors.Is(err, ErrInvalid) {
			t.Errorf("bit %d: got %v, want ErrInvalid", bit, err)
		}
	}
	if verified < 3 { // the three sign bits always decode
		t.Errorf("only %d changed proofs decoded", verified)
	}
}

func TestForeignProofFailsWithAnyInputChanged(t *testing.T) {
	t.Parallel()
	f := readForeign(t)
	key, err := Prepare(f.key(t))
	if err != nil {
		t.Fatal(err)
	}
	proof, random := f.proof(t), rand.New(rand.NewPCG(1, 2))
	for i, good := range publicInputs(t, &f.sector) {
		inputs := publicInputs(t, &f.sector)
		b := good.Bits()
		b[random.IntN(3)] ^= 1 << random.IntN(64)
		for k := len(b) - 1; k >= 0; k-- { // the number in b, whatever its size
			inputs[i].Mul(&inputs[i], power64())
			if k == len(b)-1 {
				inputs[i].SetZero()
			}
			word := fr.NewElement(b[k])
			inputs[i].Add(&inputs[i], &word)
		}
		if inputs[i].Equal(&good) {
			t.Fatalf("input %d is as before", i)
		}
		if err := key.Verify(inputs, proof); !errors.Is(err, ErrInvalid) {
			t.Errorf("input %d: got %v, want ErrInvalid", i, err)
		}
	}
}

// The fixture's node_inputs list has 56 in its fifth place, where the graph has 36: a DRG parent never lies above its
// node, here 37. The proof was made with 36.
func TestForeignProofFailsWithTheFixturesFifthNodeInput(t *testing.T) {
	t.Parallel()
	const fifth = 3 + 4 // replica id, comm_d and comm_r come first
	f := readForeign(t)
	inputs := publicInputs(t, &f.sector)
	if want := fr.NewElement(36); inputs[fifth] != want {
		t.Fatalf("fifth node input is %s, want %s", inputs[fifth].String(), want.String())
	}
	inputs[fifth] = fr.NewElement(56)
	if err := Verify(f.key(t), inputs, f.proof(t)); !errors.Is(err, ErrInvalid) {
		t.Errorf("got %v, want ErrInvalid", err)
	}
}

// power64 is 2^64.
func power64() *fr.Element {
	e := fr.NewElement(1 << 63)
	return e.Double(&e)
}

// A flipped bit in the key is found when the key is read: the point leaves the curve.
func TestForeignProofFailsWithAFlippedBitInTheKey(t *testing.T) {
	t.Parallel()
	f := readForeign(t)
	inputs, proof := publicInputs(t, &f.sector), f.proof(t)
	random := rand.New(rand.NewPCG(3, 4))
	for range 250 {
		bit := random.IntN(8 * len(f.keyBytes))
		flipped := append([]byte(nil), f.keyBytes...)
		flipped[bit/8] ^= 1 << (bit % 8)
		key, err := srs.ParseKey(flipped)
		if err != nil {
			continue
		}
		if err := Verify(key, inputs, proof); err == nil {
			t.Errorf("bit %d of the key: the proof verifies", bit)
		}
	}
}

// Points that are well formed but others than the key's.
func TestForeignProofFailsWithAnotherKey(t *testing.T) {
	t.Parallel()
	f := readForeign(t)
	inputs, proof := publicInputs(t, &f.sector), f.proof(t)
	g1 := func(p *bls12381.G1Affine) { p.Double(p) }
	g2 := func(p *bls12381.G2Affine) { p.Double(p) }
	changes := map[string]func(*srs.VerifyingKey){
		"alpha": func(k *srs.VerifyingKey) { g1(&k.AlphaG1) },
		"beta":  func(k *srs.VerifyingKey) { g2(&k.BetaG2) },
		"gamma": func(k *srs.VerifyingKey) { g2(&k.GammaG2) },
		"delta": func(k *srs.VerifyingKey) { g2(&k.DeltaG2) },
		"swap":  func(k *srs.VerifyingKey) { k.IC[4], k.IC[5] = k.IC[5], k.IC[4] },
	}
	for name, change := range changes {
		key := f.key(t)
		change(key)
		if err := Verify(key, inputs, proof); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
}
