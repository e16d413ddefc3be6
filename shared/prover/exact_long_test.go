//go:build long

package prover_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/groth16/groth16test"
	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/prover"
)

// openSector reads a Commit-Phase-1 output that the published crates wrote (shared/fixtures/README.md).
func openSector(t testing.TB, name string) circuit.Input {
	t.Helper()
	read := func(suffix string) []byte {
		data, err := os.ReadFile(filepath.Join("..", "proof", "c1", "testdata", name+suffix))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	var meta struct {
		ProverID string `json:"prover_id"`
		Sector   uint64 `json:"sector"`
	}
	if err := json.Unmarshal(read(".meta.json"), &meta); err != nil {
		t.Fatal(err)
	}
	id, err := hex.DecodeString(meta.ProverID)
	if err != nil {
		t.Fatal(err)
	}
	claim := circuit.Claim{ProverID: [32]byte(id), SectorNumber: &meta.Sector}
	input, err := porep.Kind{}.Open(t.Context(), bytes.NewReader(read(".c1.json")), claim)
	if err != nil {
		t.Fatal(err)
	}
	return input
}

// segmentOf synthesizes the first partition of an input.
func segmentOf(t testing.TB, input circuit.Input) *compact.Segment {
	t.Helper()
	slice, err := input.Slice(0)
	if err != nil {
		t.Fatal(err)
	}
	return groth16test.Segment(t, input.Circuit(), slice)
}

// checkExactProofs proves sectors of one size under exact parameters with r = 29 and s = 31: the published crates give
// the same bytes.
func checkExactProofs(t *testing.T, names ...string) {
	t.Helper()
	var params prover.Params
	params.SRS, params.Artifact = groth16test.Params(t, openSector(t, names[0]).Circuit())
	device := prover.NewCPU(prover.CPUConfig{
		Options: []groth16.Option{groth16test.Blinding(groth16test.KnownAnswerR, groth16test.KnownAnswerS)},
	})
	defer device.Close()
	for _, name := range names {
		input := openSector(t, name)
		segment := segmentOf(t, input)
		pending, err := device.Start(t.Context(), prover.Source{Segment: segment}, params)
		if err != nil {
			t.Fatal(err)
		}
		proof, err := pending.Finish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %+v", name, pending.Timings())
		want, err := os.ReadFile(filepath.Join("testdata", name+".exact-proof.hex"))
		if err != nil {
			t.Fatal(err)
		}
		got := proof.Bytes()
		if diff := cmp.Diff(strings.TrimSpace(string(want)), hex.EncodeToString(got[:])); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		inputs, err := input.PublicInputs(0)
		if err != nil {
			t.Fatal(err)
		}
		if err := groth16.Verify(params.SRS.Key, inputs, proof); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLongExactProofsOf2KiB(t *testing.T) {
	checkExactProofs(t, "2KiB-v1", "2KiB-v1_1", "2KiB-synthetic")
}

// Parameters of 8 MiB take 1.4 GB of disk.
func TestLongExactProofsOf8MiB(t *testing.T) {
	checkExactProofs(t, "8MiB-v1_1")
}
