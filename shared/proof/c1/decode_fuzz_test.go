package c1

import (
	"bytes"
	"errors"
	"testing"
)

// FuzzDecode demands of every text that it is refused with an InputError or decodes to an output that survives being
// written and read again.
func FuzzDecode(f *testing.F) {
	s := small(f)
	want := mustDecode(f, s.text)
	text := bytes.TrimSpace(s.text)
	f.Add(text)
	f.Add(reordered(f, text))
	f.Add(envelopeOf(text[:600], 7, 2048))
	f.Add([]byte(`{"registered_proof":"StackedDrg2KiBV1_1","x":{"a":[1,-2.5e+7,true,null,"\ud83d\ude00"]},"SEED":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		input, err := Decode(bytes.NewReader(text), 1<<20)
		if err != nil {
			var refusal *InputError
			if !errors.As(err, &refusal) || refusal.Offset > int64(len(text)) {
				t.Fatalf("error %v is no refusal inside %d bytes", err, len(text))
			}
			return
		}
		again, err := Decode(bytes.NewReader(jsonOf(t, input.Output)), 0)
		if err != nil {
			t.Fatalf("decode what was written: %v", err)
		}
		if diff := diffOutputs(input.Output, again.Output); diff != "" {
			t.Fatalf("written and read again (-want +got):\n%s", diff)
		}
		// No other output than the one that Rust made passes the check, and none makes it panic.
		if err := Check(input.Output, s.claim); err == nil && diffOutputs(want, input.Output) != "" {
			t.Fatal("another output passes the check")
		}
	})
}
