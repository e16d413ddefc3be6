package verb

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"testing"

	"pgregory.net/rapid"
)

// A proof in any form is read as it was, with any white space around a text.
func TestProofsAreReadInEveryForm(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		proof := rapid.SliceOfN(rapid.Byte(), 192, 192*10).Draw(t, "proof")
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
