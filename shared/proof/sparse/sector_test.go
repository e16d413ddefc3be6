package sparse_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/seal"
	"github.com/proofrack/proofrack/shared/proof/seal/sealtest"
	"github.com/proofrack/proofrack/shared/proof/sparse"
)

func makeSector(t *testing.T, config sdr.Config, text string) (*c1.Output, sdr.Sector) {
	t.Helper()
	request := seal.NewRequest(config, 1000, 4243, text)
	output, err := sparse.Make(t.Context(), &request)
	if err != nil {
		t.Fatal(err)
	}
	return output, request.SectorOf(output)
}

func TestSparseSectorsSatisfyEveryRelation(t *testing.T) {
	t.Parallel()
	claim := c1.Claim{ProverID: sdr.ProverID(1000), SectorNumber: 4243}
	configs := map[string]sdr.Config{}
	for _, size := range sdr.Sizes() {
		configs[size.String()] = sdr.Config{Size: size, Version: sdr.APIVersion1_1, PoRepID: [32]byte{7}}
	}
	for number := range sdr.RegisteredProof(10) {
		configs[number.String()] = number.Config()
	}
	// The naive verifier takes two seconds for a large sector: one API version for each of them.
	for _, name := range []string{"32GiB", "64GiB", "StackedDrg32GiBV1", "StackedDrg64GiBV1_1"} {
		delete(configs, name)
	}
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output, sector := makeSector(t, config, name)
			if err := sealtest.Verify(output, &sector); err != nil {
				t.Error(err)
			}
			if output.RegisteredProof.Valid() {
				if err := c1.Check(output, claim); err != nil {
					t.Errorf("check before proving: %v", err)
				}
			}
		})
	}
}

// TestChallengedParentsKeepTheirLabels covers sectors so small that challenged nodes are each other's parents and node
// 0 is opened.
func TestChallengedParentsKeepTheirLabels(t *testing.T) {
	t.Parallel()
	overlapping, zero := 0, 0
	for i := range 80 {
		output, sector := makeSector(t, sdr.RegisteredProof(i%2*5).Config(), string(rune('A'+i)))
		if err := sealtest.Verify(output, &sector); err != nil {
			t.Fatalf("sector %d: %v", i, err)
		}
		partition := output.VanillaProofs[0]
		for j := range partition {
			other := partition[1-j].CX.Column.Index
			for _, column := range partition[j].ParentColumns() {
				if column.Column.Index == other {
					overlapping++
				}
				if column.Column.Index == 0 {
					zero++
				}
			}
		}
	}
	if overlapping == 0 || zero == 0 {
		t.Errorf("%d challenged parents and %d zero nodes in 80 sectors; the case is not covered", overlapping, zero)
	}
}

func TestSparseSectorIsDeterministicAndWritten(t *testing.T) {
	t.Parallel()
	first, _ := makeSector(t, sdr.RegisteredProof(7).Config(), "one")
	again, _ := makeSector(t, sdr.RegisteredProof(7).Config(), "one")
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("second run (-first +second):\n%s", diff)
	}
	other, _ := makeSector(t, sdr.RegisteredProof(7).Config(), "other")
	if first.CommD == other.CommD || first.CommR == other.CommR {
		t.Error("another text gives the same commitments")
	}
	var text bytes.Buffer
	if err := c1.WriteJSON(&text, first); err != nil {
		t.Fatal(err)
	}
	input, err := c1.Decode(&text, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, input.Output); diff != "" {
		t.Errorf("written and read (-made +read):\n%s", diff)
	}
}

func TestSparseRefusesAndStops(t *testing.T) {
	t.Parallel()
	for _, number := range []sdr.RegisteredProof{10, 18} {
		request := seal.NewRequest(number.Config(), 1000, 1, "family")
		if _, err := sparse.Make(t.Context(), &request); !errors.Is(err, sparse.ErrFamily) {
			t.Errorf("%s: %v, want ErrFamily", number, err)
		}
	}
	if _, err := sparse.Make(t.Context(), &seal.Request{}); !errors.Is(err, sdr.ErrSectorSize) {
		t.Errorf("no size: %v, want ErrSectorSize", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	request := seal.NewRequest(sdr.RegisteredProof(8).Config(), 1000, 1, "stopped")
	if _, err := sparse.Make(ctx, &request); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, want context.Canceled", err)
	}
}

func BenchmarkSparseMake(b *testing.B) {
	for _, number := range []sdr.RegisteredProof{8, 9} {
		request := seal.NewRequest(number.Config(), 1000, 4243, "benchmark")
		b.Run("size="+number.Size().String(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := sparse.Make(b.Context(), &request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
