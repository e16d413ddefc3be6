package groth16

import (
	"bytes"
	"testing"
)

// FuzzParseProof: whatever is taken has these very bytes, and nothing panics.
func FuzzParseProof(f *testing.F) {
	good := sampleProof().Bytes()
	f.Add(good[:])
	for _, c := range badProofs() {
		f.Add(c.data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		proof, err := ParseProof(data)
		if err != nil {
			return
		}
		if again := proof.Bytes(); !bytes.Equal(again[:], data) {
			t.Errorf("other bytes come back: %x", again)
		}
		if !proof.A.IsInSubGroup() || !proof.B.IsInSubGroup() || !proof.C.IsInSubGroup() ||
			proof.A.IsInfinity() || proof.B.IsInfinity() || proof.C.IsInfinity() {
			t.Error("a bad point was taken")
		}
	})
}
