package groth16

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"testing"

	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/internal/fixture"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// foreign is the real 2 KiB proof of another project with its own key. The file's node_inputs are not read, because one
// of them is wrong (see TestForeignProofFailsWithTheFixturesFifthNodeInput); package sdr computes the public inputs.
type foreign struct {
	keyBytes, proofBytes []byte // `.vk` file content; proof
	sector               sdr.Sector
}

func readForeign(t testing.TB) *foreign {
	t.Helper()
	var file struct {
		PoRepID  [32]byte `json:"porep_id"`
		ProverID [32]byte `json:"prover_id"`
		Number   uint64   `json:"sector_id"`
		Ticket   [32]byte `json:"ticket"`
		Seed     [32]byte `json:"seed"`
		CommR    string   `json:"comm_r"`
		CommD    string   `json:"comm_d"`
		Key      string   `json:"vk_compressed"`
		Proof    string   `json:"proof"`
	}
	if err := json.Unmarshal(fixture.Bytes(t, "porep-2KiB-foreign-verify.json"), &file); err != nil {
		t.Fatal(err)
	}
	return &foreign{
		keyBytes: uncompressedKey(t, unhex(t, file.Key)), proofBytes: unhex(t, file.Proof),
		sector: sdr.Sector{
			Config:   sdr.Config{Size: sdr.Size2KiB, Version: sdr.APIVersion1_1, PoRepID: file.PoRepID},
			ProverID: file.ProverID, Number: file.Number, Ticket: file.Ticket, Seed: file.Seed,
			CommR: [32]byte(unhex(t, file.CommR)), CommD: [32]byte(unhex(t, file.CommD)),
		},
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// uncompressedKey rewrites a key of compressed points as the content of a `.vk` file.
func uncompressedKey(t testing.TB, compressed []byte) []byte {
	t.Helper()
	const g1, g2 = 48, 96
	var key srs.VerifyingKey
	take := func(n int, set func([]byte) (int, error)) {
		if _, err := set(compressed[:n]); err != nil {
			t.Fatal(err)
		}
		compressed = compressed[n:]
	}
	take(g1, key.AlphaG1.SetBytes)
	take(g1, key.BetaG1.SetBytes)
	take(g2, key.BetaG2.SetBytes)
	take(g2, key.GammaG2.SetBytes)
	take(g1, key.DeltaG1.SetBytes)
	take(g2, key.DeltaG2.SetBytes)
	key.IC = make([]bls12381.G1Affine, binary.BigEndian.Uint32(compressed))
	compressed = compressed[4:]
	for i := range key.IC {
		take(g1, key.IC[i].SetBytes)
	}
	return key.Append(nil)
}

func (f *foreign) key(t testing.TB) *srs.VerifyingKey {
	t.Helper()
	key, err := srs.ParseKey(f.keyBytes)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func (f *foreign) proof(t testing.TB) *Proof {
	t.Helper()
	proof, err := ParseProof(f.proofBytes)
	if err != nil {
		t.Fatal(err)
	}
	return proof
}

func publicInputs(t testing.TB, s *sdr.Sector) []fr.Element {
	t.Helper()
	inputs, err := s.PublicInputs(0)
	if err != nil {
		t.Fatal(err)
	}
	return inputs
}
