package c1

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"testing"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// jsonOf is an output as L1 JSON.
func jsonOf(t testing.TB, out *Output) []byte {
	t.Helper()
	var text bytes.Buffer
	if err := WriteJSON(&text, out); err != nil {
		t.Fatalf("write: %v", err)
	}
	return text.Bytes()
}

// envelopeOf wraps L1 JSON.
func envelopeOf(text []byte, number uint64, size sdr.SectorSize) []byte {
	return fmt.Appendf(nil, `{"SectorNum":%d,"Phase1Out":"%s","SectorSize":%d}`, number,
		base64.StdEncoding.EncodeToString(text), uint64(size))
}

func BenchmarkOutputDecode(b *testing.B) {
	for _, name := range []string{"StackedDrg2KiBV1_1", "StackedDrg32GiBV1_1"} {
		proof, err := sdr.ParseRegisteredProof(name)
		if err != nil {
			b.Fatal(err)
		}
		text := jsonOf(b, randomOutput(proof, 1))
		for form, text := range map[string][]byte{"l1": text, "envelope": envelopeOf(text, 1, proof.Size())} {
			b.Run("proof="+name+"/form="+form, func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Decode(bytes.NewReader(text), 0); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
