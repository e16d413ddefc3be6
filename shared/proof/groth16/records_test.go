package groth16

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/proofrack/proofrack/shared/internal/fixture"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/srs"
)

// sealRecord is one line of the published seal records.
type sealRecord struct {
	Config struct {
		Size       uint64   `json:"sector_size"`
		Partitions int      `json:"partitions"`
		PoRepID    [32]byte `json:"porep_id"`
		Version    string   `json:"api_version"`
		Features   []string `json:"api_features"`
	} `json:"porep_config"`
	CommR    [32]byte `json:"comm_r"`
	CommD    [32]byte `json:"comm_d"`
	ProverID [32]byte `json:"prover_id"`
	Number   uint64   `json:"sector_id"`
	Ticket   [32]byte `json:"ticket"`
	Seed     [32]byte `json:"seed"`
	Proof    []uint16 `json:"proof"` // bytes; []byte would be read as base64
}

func readSealRecords(t testing.TB) []sealRecord {
	t.Helper()
	var records []sealRecord
	lines := bufio.NewScanner(bytes.NewReader(fixture.Bytes(t, "seal-records-v16.jsonl")))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r sealRecord
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return records
}

func (r *sealRecord) proofBytes() []byte {
	b := make([]byte, len(r.Proof))
	for i, v := range r.Proof {
		b[i] = byte(v)
	}
	return b
}

func (r *sealRecord) sector(t testing.TB) *sdr.Sector {
	t.Helper()
	versions := map[string]sdr.APIVersion{
		"V1_0_0": sdr.APIVersion1_0, "V1_1_0": sdr.APIVersion1_1, "V1_2_0": sdr.APIVersion1_2,
	}
	version, ok := versions[r.Config.Version]
	if !ok {
		t.Fatalf("api version %q", r.Config.Version)
	}
	family := sdr.Interactive
	for _, feature := range r.Config.Features {
		switch feature {
		case "SyntheticPoRep":
			family = sdr.Synthetic
		default:
			t.Fatalf("api feature %q", feature)
		}
	}
	return &sdr.Sector{
		Config: sdr.Config{
			Size: sdr.SectorSize(r.Config.Size), Version: version, Family: family, PoRepID: r.Config.PoRepID,
		},
		ProverID: r.ProverID, Number: r.Number, Ticket: r.Ticket, Seed: r.Seed, CommR: r.CommR, CommD: r.CommD,
	}
}

func TestSealRecordsAllDecode(t *testing.T) {
	t.Parallel()
	records, proofs := readSealRecords(t), 0
	for i := range records {
		r := &records[i]
		count := r.sector(t).Config.PartitionCount()
		if count != r.Config.Partitions {
			t.Errorf("record %d: %d partitions, want %d", i+1, r.Config.Partitions, count)
		}
		got, err := ParseProofs(r.proofBytes(), count)
		if err != nil {
			t.Errorf("record %d: %v", i+1, err)
			continue
		}
		var data []byte
		for k := range got {
			data = got[k].Append(data)
		}
		if !bytes.Equal(data, r.proofBytes()) {
			t.Errorf("record %d: other bytes come back", i+1)
		}
		proofs += count
	}
	if len(records) != 448 || proofs != 502 {
		t.Errorf("%d records with %d proofs, want 448 with 502", len(records), proofs)
	}
}

// keysFolderEnv names the folder with published `.vk` files, as for every Filecoin node.
const keysFolderEnv = "FIL_PROOFS_PARAMETER_CACHE"

// publishedKeys prepares the keys in the folder that have a published digest, and skips the test if there are none. A
// file with any other digest is refused by srs, unless a manifest beside it marks it as a development one: such a key
// says nothing about the records and is left out.
func publishedKeys(t *testing.T) map[sdr.SectorSize]*PreparedKey {
	t.Helper()
	folder := os.Getenv(keysFolderEnv)
	if folder == "" {
		t.Skipf("%s is not set: let it name a folder with published .vk files", keysFolderEnv)
	}
	keys := map[sdr.SectorSize]*PreparedKey{}
	for _, size := range sdr.PublishedSizes() {
		path := filepath.Join(folder, sdr.ParamsName(size)+srs.KeyExtension)
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			continue
		}
		key, err := srs.OpenKey(t.Context(), path, 0, srs.Options{DigestCache: filepath.Join(t.TempDir(), "digests")})
		if err != nil {
			t.Fatal(err)
		}
		if key.Development {
			t.Logf("%s is a development key", path)
			continue
		}
		if keys[size], err = Prepare(key.VerifyingKey); err != nil {
			t.Fatal(err)
		}
	}
	if len(keys) == 0 {
		t.Skipf("no published .vk file in %s (%s)", folder, keysFolderEnv)
	}
	return keys
}

func TestSealRecordsVerifyUnderPublishedKeys(t *testing.T) {
	t.Parallel()
	keys := publishedKeys(t)
	verified := map[sdr.SectorSize]int{}
	for i, r := range readSealRecords(t) {
		key := keys[sdr.SectorSize(r.Config.Size)]
		if key == nil {
			continue
		}
		inputs, err := r.sector(t).AllPublicInputs()
		if err != nil {
			t.Errorf("record %d: %v", i+1, err)
			continue
		}
		proofs, err := ParseProofs(r.proofBytes(), len(inputs))
		if err != nil {
			t.Errorf("record %d: %v", i+1, err)
			continue
		}
		if err := key.VerifyBatch(inputs, proofs); err != nil {
			t.Errorf("record %d: %v", i+1, err)
		}
		verified[sdr.SectorSize(r.Config.Size)]++
	}
	for size := range keys {
		if verified[size] == 0 {
			t.Errorf("sector size %d has a key, but no record", size)
		}
	}
}
