package sdr

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/internal/fixture"
)

// sectorFile has the keys of the oracle's .meta.json files.
type sectorFile struct {
	RegisteredProof string `json:"registered_proof"`
	ProverID        string `json:"prover_id"`
	Sector          uint64 `json:"sector"`
	Ticket          string `json:"ticket"`
	Seed            string `json:"seed"`
	CommR           string `json:"comm_r"`
	CommD           string `json:"comm_d"`
}

func decodeHex(t *testing.T, text string) (value [32]byte) {
	t.Helper()
	if n, err := hex.Decode(value[:], []byte(text)); err != nil || n != len(value) {
		t.Fatalf("decode %q: %d bytes, %v", text, n, err)
	}
	return value
}

func readSector(t *testing.T, path string) *Sector {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file sectorFile
	if err := json.Unmarshal(content, &file); err != nil {
		t.Fatal(err)
	}
	number, err := ParseRegisteredProof(file.RegisteredProof)
	if err != nil {
		t.Fatal(err)
	}
	return &Sector{
		Config: number.Config(), ProverID: decodeHex(t, file.ProverID), Number: file.Sector,
		Ticket: decodeHex(t, file.Ticket), Seed: decodeHex(t, file.Seed),
		CommR: decodeHex(t, file.CommR), CommD: decodeHex(t, file.CommD),
	}
}

func TestPublicInputsEqualTheOracle(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"2KiB-v1", "2KiB-v1_1", "2KiB-synthetic", "2KiB-non-interactive", "8MiB-v1_1",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sector := readSector(t, filepath.Join("testdata", name+".meta.json"))
			want, err := os.ReadFile(filepath.Join("testdata", name+".inputs.txt"))
			if err != nil {
				t.Fatal(err)
			}
			all, err := sector.AllPublicInputs()
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for partition, inputs := range all {
				for i := range inputs {
					fmt.Fprintf(&got, "%d %x\n", partition, inputs[i].Bytes())
				}
				one, err := sector.PublicInputs(partition)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(inputs, one); diff != "" {
					t.Errorf("partition %d alone (-all +alone):\n%s", partition, diff)
				}
			}
			if diff := cmp.Diff(strings.TrimSpace(string(want)), strings.TrimSpace(got.String())); diff != "" {
				t.Errorf("public inputs (-want +got):\n%s", diff)
			}
		})
	}
}

// nodeInputs gives the inputs behind the three shared ones as numbers.
func nodeInputs(t *testing.T, sector *Sector) []uint64 {
	t.Helper()
	inputs, err := sector.PublicInputs(0)
	if err != nil {
		t.Fatal(err)
	}
	var nodes []uint64
	for _, input := range inputs[inputsShared:] {
		nodes = append(nodes, input.Uint64())
	}
	return nodes
}

func TestPublicInputsOfTheReal8MiBSector(t *testing.T) {
	t.Parallel()
	var c1 struct {
		CommR     [32]byte `json:"comm_r"`
		CommD     [32]byte `json:"comm_d"`
		ReplicaID [32]byte `json:"replica_id"`
		Seed      [32]byte `json:"seed"`
		Ticket    [32]byte `json:"ticket"`
	}
	if err := json.Unmarshal(fixture.Bytes(t, "c1-8MiB.json"), &c1); err != nil {
		t.Fatal(err)
	}
	sector := &Sector{
		Config: RegisteredProof(6).Config(), ProverID: ProverID(1006), Number: 1498,
		Ticket: c1.Ticket, Seed: c1.Seed, CommR: c1.CommR, CommD: c1.CommD,
	}
	if got := sector.ReplicaID(); got != c1.ReplicaID {
		t.Errorf("replica id = %x, want %x", got, c1.ReplicaID)
	}
	want := []uint64{
		151786, 151785, 151785, 151785, 151740, 151616, 151785, 156850, 185828, 128537, 121364, 183781, 164990, 92372,
		230258, 151786, 151786, 151786, 237493, 237492, 104173, 237492, 237480, 237298, 237475, 237273, 150456, 245980,
		93652, 11259, 20305, 245589, 106071, 237493, 237493, 237493,
	}
	if diff := cmp.Diff(want, nodeInputs(t, sector)); diff != "" {
		t.Errorf("node inputs (-want +got):\n%s", diff)
	}
}

func TestPublicInputsOfTheForeign2KiBProof(t *testing.T) {
	t.Parallel()
	var foreign struct {
		PoRepID  [32]byte `json:"porep_id"`
		ProverID [32]byte `json:"prover_id"`
		CommR    string   `json:"comm_r"`
		CommD    string   `json:"comm_d"`
	}
	if err := json.Unmarshal(fixture.Bytes(t, "porep-2KiB-foreign-verify.json"), &foreign); err != nil {
		t.Fatal(err)
	}
	sector := &Sector{
		Config:   Config{Size: Size2KiB, Version: APIVersion1_1, PoRepID: foreign.PoRepID},
		ProverID: foreign.ProverID, Number: 77, Ticket: *filled(12), Seed: *filled(13),
		CommR: decodeHex(t, foreign.CommR), CommD: decodeHex(t, foreign.CommD),
	}
	replicaID := sector.ReplicaID()
	const wantID = "b9a46849a25004df1345838204c76a324d7adb7bbb100cdf323d7996a5ac9b34"
	if got := hex.EncodeToString(replicaID[:]); got != wantID {
		t.Errorf("replica id = %s, want %s", got, wantID)
	}
	// The fixture's node_inputs and c2-formats.md 6.2 have 56 in the fifth place. No DRG parent lies above its node,
	// and the proof verifies with 36 and fails with 56.
	want := []uint64{
		37, 36, 31, 35, 36, 11, 36, 20, 54, 46, 50, 16, 17, 9, 27, 37, 37, 37,
		29, 28, 27, 28, 27, 11, 28, 14, 21, 31, 58, 41, 12, 62, 55, 29, 29, 29,
	}
	if diff := cmp.Diff(want, nodeInputs(t, sector)); diff != "" {
		t.Errorf("node inputs (-want +got):\n%s", diff)
	}
}

func TestPublicInputsRefuseBadCommitments(t *testing.T) {
	t.Parallel()
	good := readSector(t, filepath.Join("testdata", "2KiB-v1.meta.json"))
	for name, c := range map[string]struct {
		change func(*Sector)
		want   error
	}{
		"zero comm_r":          {func(s *Sector) { s.CommR = [32]byte{} }, ErrZeroCommitment},
		"zero comm_d":          {func(s *Sector) { s.CommD = [32]byte{} }, ErrZeroCommitment},
		"comm_r not canonical": {func(s *Sector) { s.CommR[31] = 0x74 }, ErrNotCanonical},
		"comm_d not canonical": {func(s *Sector) { s.CommD[31] = 0xff }, ErrNotCanonical},
		"unknown size":         {func(s *Sector) { s.Config.Size = 1000 }, ErrSectorSize},
	} {
		sector := *good
		c.change(&sector)
		if _, err := sector.PublicInputs(0); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		if _, err := sector.AllPublicInputs(); !errors.Is(err, c.want) {
			t.Errorf("%s, all partitions: %v, want %v", name, err, c.want)
		}
	}
}

func BenchmarkSectorPublicInputs(b *testing.B) {
	sector := Sector{Config: RegisteredProof(8).Config(), CommR: *filled(1), CommD: *filled(2)}
	for b.Loop() {
		if _, err := sector.AllPublicInputs(); err != nil {
			b.Fatal(err)
		}
	}
}
