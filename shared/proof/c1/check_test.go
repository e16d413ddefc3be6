package c1

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

func TestCheckAcceptsWhatRustMade(t *testing.T) {
	t.Parallel()
	for _, s := range append(localSamples(t), foreignSamples(t)...) {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			if err := Check(mustDecode(t, s.text), s.claim); err != nil {
				t.Errorf("check: %v", err)
			}
		})
	}
}

// checkRefusal is a change to the small sample with the refusal that follows: its place and words of its reason.
type checkRefusal struct {
	change func(*Output, *Claim)
	want   place
	words  string
}

// Parts of field names.
const (
	columns   = "replica_column_proofs"
	inclusion = ".inclusion_proof"
	treePart  = ".data.Single.path"
)

func TestCheckNamesWhatIsWrongWithTheSector(t *testing.T) {
	t.Parallel()
	expectCheckRefusals(t, map[string]checkRefusal{
		"wrong miner":   {func(_ *Output, c *Claim) { c.ProverID[0]++ }, top("replica_id"), "wrong miner or sector"},
		"wrong sector":  {func(_ *Output, c *Claim) { c.SectorNumber++ }, top("replica_id"), "wrong miner or sector"},
		"wrong ticket":  {func(o *Output, _ *Claim) { o.Ticket[0]++ }, top("replica_id"), "ticket"},
		"all-zero seed": {func(o *Output, _ *Claim) { o.Seed = [32]byte{} }, top("seed"), "all zero"},
		"zero comm_d":   {func(o *Output, _ *Claim) { o.CommD = [32]byte{} }, top("comm_d"), "all zero"},
		"zero comm_r":   {func(o *Output, _ *Claim) { o.CommR = [32]byte{} }, top("comm_r"), "all zero"},
		"other comm_r":  {func(o *Output, _ *Claim) { o.CommR[0] ^= 1 }, top("comm_r"), "not the hash of comm_c"},
		"comm_d ≥ r": {
			func(o *Output, _ *Claim) { o.CommD = modulus() }, top("comm_d"), "not a canonical field element",
		},
		"comm_r ≥ r": {
			func(o *Output, _ *Claim) { o.CommR = modulus() }, top("comm_r"), "not a canonical field element",
		},
		"other seed": {
			func(o *Output, _ *Claim) { o.Seed[31] ^= 1 }, place{0, 0, "labeling_proofs[0].node"}, "wrong seed",
		},
		"another version": {
			func(o *Output, _ *Claim) { o.RegisteredProof = 0 }, top("replica_id"), "registered_proof StackedDrg2KiBV1",
		},
		"no registered proof": {
			func(o *Output, _ *Claim) { o.RegisteredProof = sdr.Unregistered }, top("registered_proof"), "unregistered",
		},
		"no partition": {
			func(o *Output, _ *Claim) { o.VanillaProofs = nil }, top("vanilla_proofs"), "0 partitions, want 1",
		},
		"empty partition": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0] = nil }, place{0, -1, ""}, "0 challenges, want 2",
		},
		"swapped challenges": {
			func(o *Output, _ *Claim) { p := o.VanillaProofs[0]; p[0], p[1] = p[1], p[0] },
			place{0, 0, "labeling_proofs[0].node"}, "the challenge is",
		},
		"repeated challenge": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][1] = o.VanillaProofs[0][0] },
			place{0, 1, "labeling_proofs[0].node"},
			"the challenge is",
		},
		"layers in another order": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][1].LabelingProofs[1].LayerIndex = 1 },
			place{0, 1, "labeling_proofs[1].layer_index"}, "layer 1, want 2",
		},
		"swapped parents": {
			func(o *Output, _ *Claim) { p := &o.VanillaProofs[0][1].ExpParents; p[2], p[3] = p[3], p[2] },
			place{0, 1, columns + ".exp_parents[2].column.index"}, "want",
		},
	})
}

func TestCheckNamesWhatIsWrongInTrees(t *testing.T) {
	t.Parallel()
	expectCheckRefusals(t, map[string]checkRefusal{
		"flipped byte in tree D": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][1].CommDProof.Base[5].Hashes[0][7] ^= 0x80 },
			place{0, 1, "comm_d_proofs"}, "does not lead from leaf to root",
		},
		"flipped byte in tree R-last": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][1].CommRLastProof.Base[1].Hashes[6][7] ^= 0x80 },
			place{0, 1, "comm_r_last_proof"}, "does not lead from leaf to root",
		},
		"flipped byte in tree C": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][1].DRGParents[4].Inclusion.Base[0].Hashes[0][0] ^= 1 },
			place{0, 1, columns + ".drg_parents[4]" + inclusion}, "does not lead from leaf to root",
		},
		"sibling ≥ r": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][0].CX.Inclusion.Base[1].Hashes[6] = modulus() },
			place{0, 0, columns + ".c_x" + inclusion + treePart + ".path[1].hashes[6]"}, "not a canonical field element",
		},
		"data leaf ≥ r": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][0].CommDProof.Leaf = modulus() },
			place{0, 0, "comm_d_proofs.data.Single.leaf"}, "not a canonical field element",
		},
		"row ≥ r": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][0].ExpParents[7].Column.Rows[1] = modulus() },
			place{0, 0, columns + ".exp_parents[7].column.rows[1]"}, "not a canonical field element",
		},
		"other root of tree D": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][1].CommDProof.Root[0] ^= 1 },
			place{0, 1, "comm_d_proofs.data.Single.root"}, "differs from comm_d",
		},
		"other root of tree C": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][1].CX.Inclusion.Root[0] ^= 1 },
			place{0, 1, columns + ".c_x" + inclusion + ".data.Single.root"}, "differs from that of the first",
		},
		"other root of tree R-last": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][1].CommRLastProof.Root[0] ^= 1 },
			place{0, 1, "comm_r_last_proof.data.Single.root"}, "differs from that of the first",
		},
	})
}

func TestCheckNamesWhatIsWrongInLabelsAndShapes(t *testing.T) {
	t.Parallel()
	expectCheckRefusals(t, map[string]checkRefusal{
		"row of a parent": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][1].DRGParents[3].Column.Rows[0][0] ^= 1 },
			place{0, 1, "labeling_proofs[0].parents[3]"}, "differs from the row of parent 3",
		},
		"last row of an expander parent": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][1].ExpParents[3].Column.Rows[1][0] ^= 1 },
			place{0, 1, columns + ".exp_parents[3]" + inclusion + ".data.Single.leaf"},
			"not the hash of the column's rows",
		},
		"own label": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][1].CX.Column.Rows[0][0] ^= 1 },
			place{0, 1, columns + ".c_x.column.rows[0]"}, "not the label",
		},
		"repeated parent label": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][1].LabelingProofs[1].Parents[36][0] ^= 1 },
			place{0, 1, "labeling_proofs[1].parents[36]"}, "differs from the row of parent 8",
		},
		"encoding proof": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][1].EncodingProof.Parents[0][0] ^= 1 },
			place{0, 1, "encoding_proof"}, "differs from the last labeling proof",
		},
		"replica leaf": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][1].CommRLastProof.Leaf[0] ^= 1 },
			place{0, 1, "comm_r_last_proof.data.Single.leaf"}, "not the sum",
		},
		"path too short": {
			func(o *Output, _ *Claim) { m := &o.VanillaProofs[0][1].CX.Inclusion; m.Base = m.Base[:1] },
			place{0, 1, columns + ".c_x" + inclusion + treePart}, "1 path elements, want 2",
		},
		"path with a sub level": {
			func(o *Output, _ *Claim) { m := &o.VanillaProofs[0][1].CommDProof; m.Sub = m.Base[:1] },
			place{0, 1, "comm_d_proofs.data.Single.sub_proof"}, "1 path elements, want 0",
		},
		"index beyond the arity": {
			func(o *Output, _ *Claim) { o.VanillaProofs[0][1].CommRLastProof.Base[1].Index = 8 },
			place{0, 1, "comm_r_last_proof" + treePart + ".path[1]"}, "index below 8",
		},
		"too few siblings": {
			func(o *Output, _ *Claim) { e := &o.VanillaProofs[0][1].CommRLastProof.Base[1]; e.Hashes = e.Hashes[1:] },
			place{0, 1, "comm_r_last_proof" + treePart + ".path[1]"}, "6 hashes",
		},
		"too few rows": {
			func(o *Output, _ *Claim) { c := &o.VanillaProofs[0][1].CX.Column; c.Rows = c.Rows[1:] },
			place{0, 1, columns + ".c_x.column.rows"}, "1 rows, want 2",
		},
		"too few labels": {
			func(o *Output, _ *Claim) { p := &o.VanillaProofs[0][1]; p.LabelingProofs = p.LabelingProofs[1:] },
			place{0, 1, "labeling_proofs"}, "1 labeling proofs, want 2",
		},
	})
}

func expectCheckRefusals(t *testing.T, cases map[string]checkRefusal) {
	t.Helper()
	for name, c := range cases {
		s := small(t)
		out := mustDecode(t, s.text)
		c.change(out, &s.claim)
		var got *InputError
		if err := Check(out, s.claim); !errors.As(err, &got) {
			t.Errorf("%s: got %v, want a refusal", name, err)
			continue
		}
		if diff := cmp.Diff(c.want, place{got.Partition, got.Challenge, got.Field}); diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", name, got, diff)
		}
		if !strings.Contains(got.Error(), c.words) || got.Offset != -1 {
			t.Errorf("%s: error %q, want %q and no offset", name, got.Error(), c.words)
		}
	}
}

// modulus is the smallest value that is not canonical.
func modulus() (value [32]byte) {
	fr.Modulus().FillBytes(value[:])
	slices.Reverse(value[:])
	return value
}

func TestCheckRefusesSwappedPartitions(t *testing.T) {
	t.Parallel()
	s := foreignSamples(t)[1]
	out := mustDecode(t, s.text)
	p := out.VanillaProofs
	p[3], p[4] = p[4], p[3]
	var got *InputError
	if err := Check(out, s.claim); !errors.As(err, &got) {
		t.Fatalf("got %v, want a refusal", err)
	}
	want := place{3, 0, "labeling_proofs[0].node"}
	if diff := cmp.Diff(want, place{got.Partition, got.Challenge, got.Field}); diff != "" {
		t.Errorf("%v (-want +got):\n%s", got, diff)
	}
}

func TestCheckKeepsTheOutput(t *testing.T) {
	t.Parallel()
	s := small(t)
	out := mustDecode(t, s.text)
	if err := Check(out, s.claim); err != nil {
		t.Fatalf("check: %v", err)
	}
	if diff := diffOutputs(mustDecode(t, s.text), out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
