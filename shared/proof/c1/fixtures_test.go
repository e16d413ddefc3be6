package c1

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/internal/fixture"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// sample is one C1 output made by Rust, with what travels beside it.
type sample struct {
	name  string
	text  []byte
	claim Claim
}

// localSamples are those in testdata, made for miner 1000, sector 4243.
func localSamples(t testing.TB) []sample {
	t.Helper()
	var samples []sample
	for _, name := range []string{"2KiB-v1", "2KiB-v1_1", "2KiB-synthetic", "8MiB-v1_1"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".c1.json"))
		if err != nil {
			t.Fatalf("read sample: %v", err)
		}
		meta, err := os.ReadFile(filepath.Join("testdata", name+".meta.json"))
		if err != nil {
			t.Fatalf("read sample: %v", err)
		}
		samples = append(samples, sample{name: name, text: text, claim: claimOf(t, meta)})
	}
	return samples
}

// claimOf reads prover id and sector number from either kind of meta file.
func claimOf(t testing.TB, meta []byte) Claim {
	t.Helper()
	var fields struct {
		ProverID    string `json:"prover_id"`
		ProverIDHex string `json:"prover_id_hex"`
		Sector      uint64 `json:"sector"`
	}
	if err := json.Unmarshal(meta, &fields); err != nil {
		t.Fatalf("decode meta file: %v", err)
	}
	id, err := hex.DecodeString(fields.ProverID + fields.ProverIDHex)
	if err != nil || len(id) != 32 {
		t.Fatalf("prover id %q: %v", fields.ProverID+fields.ProverIDHex, err)
	}
	return Claim{ProverID: [32]byte(id), SectorNumber: fields.Sector}
}

// small is the 2 KiB sample of api 1.1.
func small(t testing.TB) sample {
	t.Helper()
	return localSamples(t)[1]
}

func mustDecode(t testing.TB, text []byte) *Output {
	t.Helper()
	input, err := Decode(bytes.NewReader(text), 0)
	if err != nil {
		t.Fatalf("decode: %v", err)
	}
	return input.Output
}

// foreignSamples are the fixtures that stay outside the repository; the test is skipped where they are absent.
func foreignSamples(t testing.TB) []sample {
	t.Helper()
	return []sample{
		{
			name: "c1-8MiB", text: fixture.Bytes(t, "c1-8MiB.json"),
			claim: Claim{ProverID: sdr.ProverID(1006), SectorNumber: 1498},
		},
		{
			name: "2KiB-non-interactive", text: fixture.Bytes(t, "oracle/2KiB-non-interactive.c1.json"),
			claim: claimOf(t, fixture.Bytes(t, "oracle/2KiB-non-interactive.meta.json")),
		},
	}
}

// diffOutputs is cmp.Diff, which takes a second for two outputs, only for those that differ.
func diffOutputs(want, got *Output) string {
	if reflect.DeepEqual(want, got) {
		return ""
	}
	return cmp.Diff(want, got)
}
