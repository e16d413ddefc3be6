package porep

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

func oracleNames() []string {
	return []string{"2KiB-v1", "2KiB-v1_1", "2KiB-synthetic", "2KiB-non-interactive", "8MiB-v1_1"}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func c1Text(t *testing.T, name string) []byte {
	t.Helper()
	return readFile(t, "../c1/testdata/"+name+".c1.json")
}

// sectorOf is the oracle's description of a sector, which knows nothing of its C1 output.
func sectorOf(t *testing.T, name string) sdr.Sector {
	t.Helper()
	var file struct {
		RegisteredProof string `json:"registered_proof"`
		ProverID        string `json:"prover_id"`
		Sector          uint64 `json:"sector"`
		Ticket          string `json:"ticket"`
		Seed            string `json:"seed"`
		CommR           string `json:"comm_r"`
		CommD           string `json:"comm_d"`
	}
	if err := json.Unmarshal(readFile(t, "../sdr/testdata/"+name+".meta.json"), &file); err != nil {
		t.Fatal(err)
	}
	proof, err := sdr.ParseRegisteredProof(file.RegisteredProof)
	if err != nil {
		t.Fatal(err)
	}
	sector := sdr.Sector{Config: proof.Config(), Number: file.Sector}
	for text, value := range map[string]*[32]byte{
		file.ProverID: &sector.ProverID, file.Ticket: &sector.Ticket, file.Seed: &sector.Seed, file.CommR: &sector.CommR,
		file.CommD: &sector.CommD,
	} {
		if n, err := hex.Decode(value[:], []byte(text)); err != nil || n != len(value) {
			t.Fatalf("decode %q: %d bytes, %v", text, n, err)
		}
	}
	return sector
}

func claimOf(sector *sdr.Sector) circuit.Claim {
	return circuit.Claim{ProverID: sector.ProverID, SectorNumber: &sector.Number}
}

func TestInputsOfSliceAndVerifierAreTheSame(t *testing.T) {
	t.Parallel()
	for _, name := range oracleNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sector := sectorOf(t, name)
			in, err := Kind{}.Open(context.Background(), bytes.NewReader(c1Text(t, name)), claimOf(&sector))
			if err != nil {
				t.Fatal(err)
			}
			want, err := sector.AllPublicInputs()
			if err != nil {
				t.Fatal(err)
			}
			if in.PartitionCount() != len(want) {
				t.Fatalf("%d partitions, want %d", in.PartitionCount(), len(want))
			}
			for partition := range want {
				data, err := in.Slice(partition)
				if err != nil {
					t.Fatal(err)
				}
				w, err := in.Circuit().Decode(data)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want[partition], w.PublicInputs()); diff != "" {
					t.Errorf("partition %d: sector (-) and slice (+) differ:\n%s", partition, diff)
				}
				derived, err := in.PublicInputs(partition)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want[partition], derived); diff != "" {
					t.Errorf("partition %d: sector (-) and input (+) differ:\n%s", partition, diff)
				}
			}
		})
	}
}

func TestOpenedInputDescribesItsSector(t *testing.T) {
	t.Parallel()
	for _, name := range oracleNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sector := sectorOf(t, name)
			text := c1Text(t, name)
			opened, err := Kind{}.Open(context.Background(), bytes.NewReader(text), claimOf(&sector))
			if err != nil {
				t.Fatal(err)
			}
			in := opened.(*Input)
			if diff := cmp.Diff(sector, in.Sector()); diff != "" {
				t.Errorf("oracle (-) and ours (+) differ:\n%s", diff)
			}
			if in.SectorNumber() != sector.Number || in.Output().CommR != sector.CommR || len(in.Warnings()) != 0 {
				t.Errorf("sector %d, comm_r %x, warnings %q", in.SectorNumber(), in.Output().CommR, in.Warnings())
			}
			if want := strings.Contains(name, "non-interactive"); in.ForAggregation() != want {
				t.Errorf("for aggregation: %v", in.ForAggregation())
			}
			if want := "porep-" + strings.SplitN(name, "-", 2)[0]; in.Circuit().ID() != want {
				t.Errorf("circuit %s, want %s", in.Circuit().ID(), want)
			}
			warned := bytes.Replace(text, []byte("{"), []byte(`{"unknown key":1,`), 1)
			again, err := Kind{}.Open(context.Background(), bytes.NewReader(warned), claimOf(&sector))
			if err != nil {
				t.Fatal(err)
			}
			if len(again.Warnings()) != 1 || again.Hash() != in.Hash() {
				t.Errorf("with an unknown key: warnings %q, same hash: %v", again.Warnings(), again.Hash() == in.Hash())
			}
		})
	}
}

func TestManyWarningsAreCounted(t *testing.T) {
	t.Parallel()
	sector := sectorOf(t, "2KiB-v1")
	var keys strings.Builder
	const n = 1000
	for i := range n {
		fmt.Fprintf(&keys, `"k%d":0,`, i)
	}
	text := bytes.Replace(c1Text(t, "2KiB-v1"), []byte("{"), []byte("{"+keys.String()), 1)
	in, err := Kind{}.Open(context.Background(), bytes.NewReader(text), claimOf(&sector))
	if err != nil {
		t.Fatal(err)
	}
	warnings := in.Warnings()
	last := warnings[len(warnings)-1]
	if want := fmt.Sprintf("%d further unknown keys", n-len(warnings)+1); last != want || len(warnings) == n {
		t.Errorf("%d warnings, the last is %q, want %q", len(warnings), last, want)
	}
}

func TestSectorNumberComesFromEnvelopeOrClaim(t *testing.T) {
	t.Parallel()
	sector := sectorOf(t, "2KiB-v1_1")
	plain := c1Text(t, "2KiB-v1_1")
	envelope := fmt.Appendf(nil, `{"SectorNum":%d,"Phase1Out":"%s","SectorSize":2048}`, sector.Number,
		base64.StdEncoding.EncodeToString(plain))
	number := func(n uint64) *uint64 { return &n }
	var refused *c1.InputError
	for name, c := range map[string]struct {
		text    []byte
		claimed *uint64
		fault   func(error) bool
	}{
		"plain and claimed":           {plain, number(sector.Number), nil},
		"envelope alone":              {envelope, nil, nil},
		"envelope and the same claim": {envelope, number(sector.Number), nil},
		"plain alone":                 {plain, nil, func(err error) bool { return errors.Is(err, ErrSectorNumber) }},
		"envelope and another claim": {envelope, number(sector.Number + 1),
			func(err error) bool { return errors.Is(err, ErrSectorNumber) }},
		"plain and a wrong claim": {plain, number(sector.Number + 1),
			func(err error) bool { return errors.As(err, &refused) }},
	} {
		t.Run(name, func(t *testing.T) {
			claim := circuit.Claim{ProverID: sector.ProverID, SectorNumber: c.claimed}
			in, err := Kind{}.Open(context.Background(), bytes.NewReader(c.text), claim)
			switch {
			case c.fault == nil && err != nil:
				t.Error(err)
			case c.fault == nil && in.(*Input).SectorNumber() != sector.Number:
				t.Errorf("sector %d, want %d", in.(*Input).SectorNumber(), sector.Number)
			case c.fault != nil && (err == nil || !c.fault(err)):
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestOpenEndsWithItsContext(t *testing.T) {
	t.Parallel()
	sector := sectorOf(t, "2KiB-v1_1")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Kind{}.Open(ctx, bytes.NewReader(c1Text(t, "2KiB-v1_1")), claimOf(&sector))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

func TestSlicesOfAnotherCircuitAreRefused(t *testing.T) {
	t.Parallel()
	data, err := c1.EncodeSlice(readC1(t, "2KiB-v1_1"), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range sdr.Sizes() {
		_, err := ForSize(size).Decode(data)
		if size == sdr.Size2KiB && err != nil {
			t.Errorf("its own circuit: %v", err)
		}
		if size != sdr.Size2KiB && !errors.Is(err, c1.ErrSlice) {
			t.Errorf("circuit of %s: got %v, want ErrSlice", size, err)
		}
	}
	flipped := bytes.Clone(data)
	flipped[len(flipped)/2] ^= 1
	for name, bad := range map[string][]byte{
		"none": nil, "cut": data[:len(data)-1], "a byte more": append(bytes.Clone(data), 0), "a bit flipped": flipped,
	} {
		if _, err := ForSize(sdr.Size2KiB).Decode(bad); !errors.Is(err, c1.ErrSlice) {
			t.Errorf("%s: got %v, want ErrSlice", name, err)
		}
	}
}

func TestKindListsEveryCircuit(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, c := range (Kind{}).Circuits() {
		ids = append(ids, c.ID())
	}
	want := []string{
		"porep-2KiB", "porep-8MiB", "porep-512MiB", "porep-32GiB", "porep-64GiB",
		"porep-4KiB", "porep-16KiB", "porep-32KiB", "porep-16MiB", "porep-1GiB",
	}
	if diff := cmp.Diff(want, ids); diff != "" || (Kind{}).Name() != "porep" {
		t.Errorf("kind %s: want (-), got (+):\n%s", Kind{}.Name(), diff)
	}
}
