package seal_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/seal"
	"github.com/proofrack/proofrack/shared/proof/seal/sealtest"
)

// claim is whose sectors these tests seal.
func claim() c1.Claim { return c1.Claim{ProverID: sdr.ProverID(1000), SectorNumber: 4243} }

// sealSector seals one sector of miner 1000 and gives what its public inputs follow from.
func sealSector(t *testing.T, config sdr.Config, text string) (*c1.Output, sdr.Sector) {
	t.Helper()
	request := seal.NewRequest(config, 1000, 4243, text)
	output, err := seal.Seal(t.Context(), &request, nil)
	if err != nil {
		t.Fatal(err)
	}
	return output, request.SectorOf(output)
}

func TestSealedSectorsSatisfyEveryRelation(t *testing.T) {
	t.Parallel()
	configs := map[string]sdr.Config{
		"4KiB":  {Size: sdr.Size4KiB, Version: sdr.APIVersion1_1},
		"16KiB": {Size: sdr.Size16KiB, Version: sdr.APIVersion1_0, PoRepID: [32]byte{1, 2, 3}},
		"32KiB": {Size: sdr.Size32KiB, Version: sdr.APIVersion1_2, Family: sdr.NonInteractive},
	}
	for _, number := range []sdr.RegisteredProof{0, 5, 10, 15, 6} {
		configs[number.String()] = number.Config()
	}
	for name, config := range configs {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output, sector := sealSector(t, config, name)
			if err := sealtest.Verify(output, &sector); err != nil {
				t.Error(err)
			}
			var text bytes.Buffer
			err := c1.WriteJSON(&text, output)
			if registered := output.RegisteredProof.Valid(); registered != (err == nil) {
				t.Errorf("write: %v; registered: %t", err, registered)
			}
			if output.RegisteredProof.Valid() {
				if err := c1.Check(output, claim()); err != nil {
					t.Errorf("check before proving: %v", err)
				}
			}
		})
	}
}

func TestSealingIsDeterministic(t *testing.T) {
	t.Parallel()
	first, _ := sealSector(t, sdr.RegisteredProof(10).Config(), "one")
	again, _ := sealSector(t, sdr.RegisteredProof(10).Config(), "one")
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("second run (-first +second):\n%s", diff)
	}
	other, _ := sealSector(t, sdr.RegisteredProof(10).Config(), "other")
	if first.CommD == other.CommD || first.CommR == other.CommR || first.Ticket == other.Ticket {
		t.Error("another text gives the same commitments or ticket")
	}
}

// TestEveryChangeIsNoticed holds the naive verifier and the check before proving against each other.
func TestEveryChangeIsNoticed(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*c1.Output){
		"replica id":      func(o *c1.Output) { o.ReplicaID[0] ^= 1 },
		"comm_r":          func(o *c1.Output) { o.CommR[0] ^= 1 },
		"comm_d":          func(o *c1.Output) { o.CommD[0] ^= 1 },
		"seed":            func(o *c1.Output) { o.Seed[0] ^= 1 },
		"partition":       func(o *c1.Output) { o.VanillaProofs = o.VanillaProofs[:0] },
		"swapped":         func(o *c1.Output) { p := o.VanillaProofs[0]; p[0], p[1] = p[1], p[0] },
		"data sibling":    func(o *c1.Output) { o.VanillaProofs[0][1].CommDProof.Base[5].Hashes[0][3] ^= 1 },
		"data index":      func(o *c1.Output) { o.VanillaProofs[0][1].CommDProof.Base[0].Index ^= 1 },
		"replica sibling": func(o *c1.Output) { o.VanillaProofs[0][0].CommRLastProof.Base[1].Hashes[6][3] ^= 1 },
		"replica leaf":    func(o *c1.Output) { o.VanillaProofs[0][0].CommRLastProof.Leaf[3] ^= 1 },
		"column row":      func(o *c1.Output) { o.VanillaProofs[0][0].ExpParents[7].Column.Rows[1][3] ^= 1 },
		"column index":    func(o *c1.Output) { o.VanillaProofs[0][0].DRGParents[5].Column.Index++ },
		"own row":         func(o *c1.Output) { o.VanillaProofs[0][0].CX.Column.Rows[0][3] ^= 1 },
		"column sibling":  func(o *c1.Output) { o.VanillaProofs[0][1].CX.Inclusion.Base[0].Hashes[0][3] ^= 1 },
		"label parent":    func(o *c1.Output) { o.VanillaProofs[0][1].LabelingProofs[1].Parents[36][0] ^= 1 },
		"label layer":     func(o *c1.Output) { o.VanillaProofs[0][1].LabelingProofs[1].LayerIndex = 3 },
		"label node":      func(o *c1.Output) { o.VanillaProofs[0][1].LabelingProofs[0].Node++ },
		"encoding":        func(o *c1.Output) { o.VanillaProofs[0][1].EncodingProof.Parents[0][0] ^= 1 },
	} {
		output, sector := sealSector(t, sdr.RegisteredProof(5).Config(), "changed")
		change(output)
		if err := sealtest.Verify(output, &sector); !errors.Is(err, sealtest.ErrRelation) {
			t.Errorf("%s: %v, want ErrRelation", name, err)
		}
		if err := c1.Check(output, claim()); err == nil {
			t.Errorf("%s: the check before proving accepts it", name)
		}
	}
}

func TestSealReportsProgressToTheEnd(t *testing.T) {
	t.Parallel()
	request := seal.NewRequest(sdr.RegisteredProof(5).Config(), 1000, 1, "progress")
	var last, total uint64
	_, err := seal.Seal(t.Context(), &request, func(done, all uint64) {
		if done < last || done > all {
			t.Errorf("progress %d of %d after %d", done, all, last)
		}
		last, total = done, all
	})
	if err != nil || last != total || total == 0 {
		t.Errorf("ended at %d of %d, %v", last, total, err)
	}
}

func TestSealRefusesAndStops(t *testing.T) {
	t.Parallel()
	large := seal.NewRequest(sdr.RegisteredProof(7).Config(), 1000, 1, "large")
	if _, err := seal.Seal(t.Context(), &large, nil); !errors.Is(err, seal.ErrTooLarge) {
		t.Errorf("512 MiB: %v, want ErrTooLarge", err)
	}
	invalid := seal.Request{Config: sdr.Config{Size: 100}}
	if _, err := seal.Seal(t.Context(), &invalid, nil); !errors.Is(err, sdr.ErrSectorSize) {
		t.Errorf("100 bytes: %v, want ErrSectorSize", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	request := seal.NewRequest(sdr.RegisteredProof(6).Config(), 1000, 1, "stopped")
	_, err := seal.Seal(ctx, &request, func(done, total uint64) {
		if done > total/3 {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v, want context.Canceled", err)
	}
	cancel()
}

// TestLabelsAndColumnTreeEqualRust holds the sealer against outputs that Rust made: labels and tree C follow from the
// replica id alone, so every opened column and path of tree C must come out again, whatever the data was.
func TestLabelsAndColumnTreeEqualRust(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"2KiB-v1", "2KiB-v1_1", "2KiB-synthetic", "2KiB-non-interactive", "8MiB-v1_1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(filepath.Join("..", "c1", "testdata", name+".c1.json"))
			if err != nil {
				t.Fatal(err)
			}
			input, err := c1.Decode(bytes.NewReader(content), 0)
			if err != nil {
				t.Fatal(err)
			}
			rust := input.Output
			opener, err := seal.LabelsOnly(t.Context(), rust.RegisteredProof.Config(), rust.ReplicaID)
			if err != nil {
				t.Fatal(err)
			}
			for k, partition := range rust.VanillaProofs {
				for i := range partition {
					p := &partition[i]
					parents := p.ParentColumns()
					for j, column := range append(parents[:], &p.CX) {
						want := opener.ColumnProof(uint64(column.Column.Index))
						if diff := cmp.Diff(&want, column); diff != "" {
							t.Fatalf("partition %d, challenge %d, column %d (-ours +rust):\n%s", k, i, j, diff)
						}
					}
				}
			}
		})
	}
}
