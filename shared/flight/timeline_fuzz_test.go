package flight_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/flight"
)

// FuzzReadPoints reads anything without a panic; what is accepted is written, read and drawn the same.
func FuzzReadPoints(f *testing.F) {
	f.Add([]byte(
		`{"at":"2026-01-02T03:04:05Z","process":"synth","class":"srs","stage":"mapped","pieces":1,"bytes":"5B"}` + "\n"))
	f.Add([]byte("\n\n{}"))
	f.Add([]byte(
		`{"at":"2026-01-02T03:04:05.5+01:00","process":"p","class":"evals","stage":"gone","pieces":-1,"bytes":"9e99"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		points, err := flight.ReadPoints(bytes.NewReader(data))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := flight.WritePoints(&out, points); err != nil {
			t.Fatal(err)
		}
		again, err := flight.ReadPoints(&out)
		if diff := cmp.Diff(points, again); err != nil || diff != "" {
			t.Errorf("read again: %v %s", err, diff)
		}
		if err := flight.Draw(io.Discard, "fuzz", points); err != nil {
			t.Error(err)
		}
	})
}
