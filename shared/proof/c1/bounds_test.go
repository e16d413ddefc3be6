package c1

import (
	"encoding/base64"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
)

// endless gives the same text for ever.
type endless struct {
	text []byte
	read int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.text)
	}
	e.read += int64(n)
	return n, nil
}

func TestEndlessInputStopsAtOnceOrAtTheLimit(t *testing.T) {
	t.Parallel()
	const limit = 1 << 20
	for text, want := range map[string]int64{
		"[": windowBytes, "{": windowBytes, `{"a":`: windowBytes, " ": limit + windowBytes, "1": windowBytes,
	} {
		source := &endless{text: []byte(text)}
		_, err := Decode(source, limit)
		var refusal *InputError
		if !errors.As(err, &refusal) || source.read > want {
			t.Errorf("endless %q: %v after %d bytes, want a refusal after at most %d", text, err, source.read, want)
		}
	}
	for prefix, text := range map[string]string{
		`{"a":"`: "aaaaaaaaaaa", `{"Phase1Out":"`: "ICAg", `{"a":[`: "1,1,", `{"registered_proof":"`: "a",
		`{"x":1`: "1",
	} {
		source := &endless{text: []byte(text)}
		_, err := Decode(io.MultiReader(strings.NewReader(prefix), source), limit)
		var refusal *InputError
		if !errors.As(err, &refusal) || source.read > limit+windowBytes {
			t.Errorf("%s and endless %q: %v after %d bytes", prefix, text, err, source.read)
		}
	}
}

func TestReaderErrorsPassUnchanged(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken pipe")
	s := small(t)
	for _, prefix := range []string{"", string(s.text[:5000]), `{"Phase1Out":"e30`} {
		_, err := Decode(io.MultiReader(strings.NewReader(prefix), failing{broken}), 0)
		var refusal *InputError
		if !errors.Is(err, broken) || errors.As(err, &refusal) {
			t.Errorf("after %d bytes: %v, want the reader's error", len(prefix), err)
		}
	}
	if _, err := Decode(failing{nil}, 0); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("reader that gives nothing: %v, want ErrNoProgress", err)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// A small text must not make the decoder take much memory, whatever it announces.
func TestSmallTextTakesLittleMemory(t *testing.T) {
	for name, text := range map[string]string{
		"largest shape": `{"registered_proof":"StackedDrg64GiBV1_2_Feat_NonInteractivePoRep","vanilla_proofs":` +
			`{"StackedDrg64GiBV1":[[{"labeling_proofs":[{"parents":[[1`,
		"column": `{"vanilla_proofs":{"StackedDrg64GiBV1":[[{"replica_column_proofs":{"c_x":{"column":{"rows":[[`,
		"path": `{"vanilla_proofs":{"StackedDrg64GiBV1":[[{"comm_d_proofs":{"data":{"Single":{"path":` +
			`{"path":[{"hashes":[`,
		"warnings":     `{` + strings.Repeat(`"x":1,`, 200),
		"deep unknown": `{"x":` + strings.Repeat("[", 1000),
		"envelope": `{"Phase1Out":"` +
			base64.StdEncoding.EncodeToString([]byte(`{"vanilla_proofs":{"StackedDrg64GiBV1":[[{`)),
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Decode(strings.NewReader(text), 0)
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: accepted", name)
		}
		if taken := after.TotalAlloc - before.TotalAlloc; taken > 1<<20 {
			t.Errorf("%s: %d bytes of text took %d bytes of memory", name, len(text), taken)
		}
	}
}
