package c1_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/seal"
	"github.com/proofrack/proofrack/shared/proof/sparse"
)

// sparseText is the C1 output of a sparse sector as L1 JSON, with its claim.
func sparseText(t testing.TB, proof sdr.RegisteredProof) ([]byte, c1.Claim) {
	t.Helper()
	request := seal.NewRequest(proof.Config(), 1000, 4243, "c1")
	out, err := sparse.Make(t.Context(), &request)
	if err != nil {
		t.Fatalf("make sparse sector: %v", err)
	}
	var text bytes.Buffer
	if err := c1.WriteJSON(&text, out); err != nil {
		t.Fatalf("write: %v", err)
	}
	return text.Bytes(), c1.Claim{ProverID: request.ProverID, SectorNumber: request.Sector}
}

// The large sizes have sub and top levels, eleven layers and ten partitions.
func TestLargeSectors(t *testing.T) {
	t.Parallel()
	for number, variant := range map[sdr.RegisteredProof]string{8: "Sub", 9: "Top"} {
		t.Run(number.Size().String(), func(t *testing.T) {
			t.Parallel()
			text, claim := sparseText(t, number)
			input, err := c1.Decode(bytes.NewReader(text), int64(len(text)))
			if err != nil {
				t.Fatalf("decode: %v", err)
			}
			out := input.Output
			if err := c1.Check(out, claim); err != nil {
				t.Fatalf("check: %v", err)
			}
			data, err := c1.EncodeSlice(out, 9)
			if err != nil {
				t.Fatalf("encode slice: %v", err)
			}
			slice, err := c1.DecodeSlice(data)
			node := out.VanillaProofs[9][17].EncodingProof.Node
			if err != nil || slice.Partition != 9 || slice.Challenges[17].Challenge != node {
				t.Errorf("slice of partition 9: %v, %v", slice, err)
			}
			refuse := func(what string, partition, challenge int, field string) {
				t.Helper()
				var got *c1.InputError
				if err := c1.Check(out, claim); !errors.As(err, &got) || got.Partition != partition ||
					got.Challenge != challenge || got.Field != field {
					t.Errorf("%s: got %v, want a refusal of partition %d, challenge %d, field %s", what, err, partition,
						challenge, field)
				}
			}
			p := out.VanillaProofs
			p[3], p[4] = p[4], p[3]
			refuse("swapped partitions", 3, 0, "labeling_proofs[0].node")
			p[3], p[4] = p[4], p[3]

			const column = "replica_column_proofs.exp_parents[7].inclusion_proof"
			inclusion := &p[9][17].ExpParents[7].Inclusion
			sibling := &inclusion.Sub[0].Hashes[6]
			sibling[0] ^= 1
			refuse("flipped byte in the sub level", 9, 17, column)
			sibling[0] ^= 1
			sibling[31] |= 0x80
			refuse("sibling not canonical", 9, 17, column+".data."+variant+".sub_proof.path[0].hashes[6]")
			sibling[31] &^= 0x80
			if variant == "Top" {
				inclusion.Top[0].Hashes[0][5] ^= 1
				refuse("flipped byte in the top level", 9, 17, column)
				inclusion.Top[0].Hashes[0][5] ^= 1
			}
			p[5][3].CX.Column.Rows[10][0] ^= 1
			refuse("label of the last layer", 5, 3, "replica_column_proofs.c_x.column.rows[10]")
			p[5][3].CX.Column.Rows[10][0] ^= 1
			if err := c1.Check(out, claim); err != nil {
				t.Errorf("after all changes were undone: %v", err)
			}
		})
	}
}

// A limit one byte short of the text refuses it, even when nothing but white space is beyond.
func TestDecodeHoldsTheByteLimit(t *testing.T) {
	t.Parallel()
	request := seal.NewRequest(sdr.RegisteredProof(5).Config(), 1000, 4243, "c1")
	out, err := seal.Seal(t.Context(), &request, nil)
	if err != nil {
		t.Fatalf("seal: %v", err)
	}
	var text bytes.Buffer
	if err := c1.WriteJSON(&text, out); err != nil {
		t.Fatalf("write: %v", err)
	}
	text.WriteString("  \n")
	if _, err := c1.Decode(bytes.NewReader(text.Bytes()), int64(text.Len())); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	var refusal *c1.InputError
	if _, err := c1.Decode(bytes.NewReader(text.Bytes()), int64(text.Len()-1)); !errors.As(err, &refusal) {
		t.Errorf("one byte over the limit: got %v, want a refusal", err)
	}
}
