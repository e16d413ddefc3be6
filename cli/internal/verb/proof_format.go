package verb

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/proof/groth16"
)

// Forms in which a proof is written. Whatever it is, it is read.
const (
	proofRaw    = "raw"
	proofHex    = "hex"
	proofBase64 = "base64"
)

// proofForm is the value of --format.
type proofForm string

// register adds the flag to a command that writes a proof.
func (f *proofForm) register(c *cobra.Command) {
	*f = proofRaw
	c.Flags().Var(f, "format", "how the proof is written: raw, hex or base64")
}

// Set parses the flag.
func (f *proofForm) Set(text string) error {
	switch text {
	case proofRaw, proofHex, proofBase64:
		*f = proofForm(text)
		return nil
	}
	return misuse("there are raw, hex and base64, not %q", text)
}

// String is the form's name.
func (f *proofForm) String() string { return string(*f) }

// Type names the flag's values in help texts.
func (f *proofForm) Type() string { return "FORM" }

// write is a proof in the form; text ends with a line feed.
func (f *proofForm) write(proof []byte) []byte {
	switch string(*f) {
	case proofHex:
		return append(hex.AppendEncode(nil, proof), '\n')
	case proofBase64:
		return append(base64.StdEncoding.AppendEncode(nil, proof), '\n')
	}
	return proof
}

// rawProofMark is set in the first byte of every proof as it is: the point there is compressed. No text has it.
const rawProofMark = 0x80

// readProof is a proof in any form. What is none is given back as it is, for the reader of proofs to say what is wrong.
func readProof(content []byte) []byte {
	if len(content) == 0 || content[0]&rawProofMark != 0 {
		return content
	}
	text := string(bytes.TrimSpace(content))
	var found []byte
	for _, form := range []struct {
		text   string
		decode func(string) ([]byte, error)
	}{
		{strings.TrimPrefix(text, "0x"), hex.DecodeString},
		{text, base64.StdEncoding.DecodeString},
	} {
		proof, err := form.decode(form.text)
		switch {
		case err != nil:
		case len(proof)%groth16.ProofBytes == 0: // a text in base64 may have hex digits alone, even after 0x
			return proof
		case found == nil:
			found = proof
		}
	}
	if found == nil {
		return content
	}
	return found
}
