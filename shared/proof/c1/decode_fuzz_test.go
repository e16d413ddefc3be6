package c1

import (
	"bytes"
	"errors"
	"reflect"
	"slices"
	"testing"
)

// decodeAny decodes whatever a fuzzer came up with and demands that a refusal is an InputError inside the text.
func decodeAny(t *testing.T, text []byte) *Output {
	t.Helper()
	input, err := Decode(bytes.NewReader(text), 1<<20)
	if err == nil {
		return input.Output
	}
	var refusal *InputError
	if !errors.As(err, &refusal) || refusal.Offset > int64(len(text)) {
		t.Fatalf("error %v is no refusal inside %d bytes", err, len(text))
	}
	return nil
}

// FuzzDecode takes short texts, which hold no whole output.
func FuzzDecode(f *testing.F) {
	text := bytes.TrimSpace(small(f).text)
	f.Add(text[:900])
	f.Add(envelopeOf(text[:600], 7, 2048))
	f.Add([]byte(`{"registered_proof":"StackedDrg2KiBV1_1","x":{"a":[1,-2.5e+7,true,null,"\ud83d\ude00"]},"SEED":1}`))
	f.Fuzz(func(t *testing.T, text []byte) { decodeAny(t, text) })
}

// FuzzDecodeChanged replaces a few bytes of a whole output. What is still accepted must survive being written and read
// again, and no other output than the original may pass the check.
func FuzzDecodeChanged(f *testing.F) {
	s := small(f)
	text := bytes.TrimSpace(s.text)
	want := mustDecode(f, s.text)
	f.Add(uint32(0), uint16(1), []byte(`{"x":[{}],`))
	f.Add(uint32(bytes.Index(text, []byte(`"index":1`))+8), uint16(1), []byte("0"))
	f.Add(uint32(bytes.LastIndex(text, []byte(`"ticket":[`))+10), uint16(2), []byte(" 9"))
	f.Add(uint32(len(text)), uint16(0), []byte("\n"))
	f.Fuzz(func(t *testing.T, offset uint32, removed uint16, inserted []byte) {
		from := int(offset) % (len(text) + 1)
		changed := slices.Concat(text[:from], inserted, text[min(len(text), from+int(removed)):])
		out := decodeAny(t, changed)
		if out == nil || reflect.DeepEqual(want, out) {
			return
		}
		if diff := diffOutputs(out, mustDecode(t, jsonOf(t, out))); diff != "" {
			t.Fatalf("written and read again (-want +got):\n%s", diff)
		}
		if Check(out, s.claim) == nil {
			t.Fatal("another output passes the check")
		}
	})
}
