package c1

import (
	"bytes"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

func TestDecodedOutputIsWrittenAsRustWroteIt(t *testing.T) {
	t.Parallel()
	for _, s := range append(localSamples(t), foreignSamples(t)...) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			input, err := Decode(bytes.NewReader(s.text), 0)
			if err != nil {
				t.Fatalf("decode: %v", err)
			}
			if len(input.Warnings) > 0 || input.Envelope != nil {
				t.Errorf("warnings %q, envelope %v, want none", input.Warnings, input.Envelope)
			}
			var written bytes.Buffer
			if err := WriteJSON(&written, input.Output); err != nil {
				t.Fatalf("write: %v", err)
			}
			if want := bytes.TrimSpace(s.text); !bytes.Equal(written.Bytes(), want) {
				t.Errorf("written JSON differs: %s", firstDifference(want, written.Bytes()))
			}
		})
	}
}

// firstDifference shows where two texts part.
func firstDifference(want, got []byte) string {
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	excerpt := func(b []byte) string { return string(b[min(at, len(b)):min(at+60, len(b))]) }
	return cmp.Diff(excerpt(want), excerpt(got))
}

func TestDecodeReadsAnyChunking(t *testing.T) {
	t.Parallel()
	s := small(t)
	want := mustDecode(t, s.text)
	got, err := Decode(iotest.OneByteReader(bytes.NewReader(s.text)), 0)
	if err != nil {
		t.Fatalf("decode byte by byte: %v", err)
	}
	if diff := diffOutputs(want, got.Output); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
