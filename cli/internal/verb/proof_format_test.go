package verb

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/proof/groth16"
)

// A proof in any form is read as it was, with any white space around a text.
func TestProofsAreReadInEveryForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		// Bytes as proofs have them: a text of few different ones may be read in two ways.
		seed := rapid.Uint64().Draw(t, "seed")
		proof := make([]byte, groth16.ProofBytes*rapid.IntRange(1, 10).Draw(t, "proofs"))
		rand.NewChaCha8([32]byte(binary.BigEndian.AppendUint64(make([]byte, 24), seed))).Read(proof)
		proof[0] |= rawProofMark
		for _, form := range []string{proofRaw, proofHex, proofBase64} {
			var f proofForm
			if err := f.Set(form); err != nil {
				t.Fatal(err)
			}
			if got := readProof(f.write(proof)); !bytes.Equal(got, proof) {
				t.Fatalf("%s: %x became %x", form, proof, got)
			}
		}
		for _, text := range []string{
			"0x" + hex.EncodeToString(proof), "\n " + base64.StdEncoding.EncodeToString(proof) + "\r\n",
		} {
			if got := readProof([]byte(text)); !bytes.Equal(got, proof) {
				t.Fatalf("%q became %x", text, got)
			}
		}
	})
	// In base64 this one is 0xAAAA..., which looks like hex.
	looksLikeHex := append([]byte{0xd3, 0x10}, make([]byte, 190)...)
	if got := readProof([]byte(base64.StdEncoding.EncodeToString(looksLikeHex))); !bytes.Equal(got, looksLikeHex) {
		t.Errorf("base64 that looks like hex became %x", got)
	}
	for _, none := range []string{"", "0x", "zz", "\x00\x01", "  "} {
		if got := readProof([]byte(none)); len(none) > 2 && string(got) != none && len(got) != 0 {
			t.Errorf("%q became %q", none, got)
		}
	}
	var f proofForm
	if f.Set("json") == nil {
		t.Error("an unknown form is taken")
	}
}
