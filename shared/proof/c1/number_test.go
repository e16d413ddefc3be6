package c1

import (
	"bytes"
	"testing"
)

// The number that the chain has for a registered proof is as good as its name: the input is the same one.
func TestRegisteredProofMayBeANumber(t *testing.T) {
	t.Parallel()
	for _, s := range localSamples(t) {
		named, err := Decode(bytes.NewReader(s.text), 0)
		if err != nil {
			t.Fatal(err)
		}
		name := named.Output.RegisteredProof
		number := map[string]string{
			"2KiB-v1": "0", "2KiB-v1_1": "5", "2KiB-synthetic": "10", "8MiB-v1_1": "6",
		}[s.name]
		text := bytes.Replace(s.text, []byte(`"`+name.String()+`"`), []byte(number), 1)
		numbered, err := Decode(bytes.NewReader(text), 0)
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		if err := Check(numbered.Output, s.claim); err != nil {
			t.Errorf("%s: %v", s.name, err)
		}
		if InputHash(numbered.Output, s.claim) != InputHash(named.Output, s.claim) {
			t.Errorf("%s by its number is another input", s.name)
		}
	}
}
