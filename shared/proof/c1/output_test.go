package c1

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/internal/fixture"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// The types below decode L1 JSON by reflection: slow, unchecked and for these tests alone.
type (
	jsonOutput struct {
		RegisteredProof string                   `json:"registered_proof"`
		VanillaProofs   map[string][][]jsonProof `json:"vanilla_proofs"`
		CommR           [32]byte                 `json:"comm_r"`
		CommD           [32]byte                 `json:"comm_d"`
		ReplicaID       [32]byte                 `json:"replica_id"`
		Seed            [32]byte                 `json:"seed"`
		Ticket          [32]byte                 `json:"ticket"`
	}
	jsonProof struct {
		CommD   jsonMerkle `json:"comm_d_proofs"`
		CommR   jsonMerkle `json:"comm_r_last_proof"`
		Columns struct {
			CX  jsonColumn                `json:"c_x"`
			DRG [sdr.DRGDegree]jsonColumn `json:"drg_parents"`
			Exp [sdr.ExpDegree]jsonColumn `json:"exp_parents"`
		} `json:"replica_column_proofs"`
		Labels   []jsonLabel `json:"labeling_proofs"`
		Encoding jsonLabel   `json:"encoding_proof"`
	}
	jsonColumn struct {
		Column struct {
			Index uint32     `json:"index"`
			Rows  [][32]byte `json:"rows"`
		} `json:"column"`
		Inclusion jsonMerkle `json:"inclusion_proof"`
	}
	jsonLabel struct {
		Parents    [sdr.LabelParents][32]byte `json:"parents"`
		LayerIndex uint32                     `json:"layer_index"`
		Node       uint64                     `json:"node"`
	}
	jsonMerkle struct {
		Data map[string]struct {
			Root [32]byte `json:"root"`
			Leaf [32]byte `json:"leaf"`
			Path jsonPath `json:"path"`
			Base jsonPath `json:"base_proof"`
			Sub  jsonPath `json:"sub_proof"`
			Top  jsonPath `json:"top_proof"`
		} `json:"data"`
	}
	jsonPath struct {
		Path []struct {
			Hashes [][32]byte `json:"hashes"`
			Index  uint64     `json:"index"`
		} `json:"path"`
	}
)

func (p jsonPath) elements() []PathElement {
	var elements []PathElement
	for _, e := range p.Path {
		elements = append(elements, PathElement{Hashes: e.Hashes, Index: e.Index})
	}
	return elements
}

func (m jsonMerkle) proof() MerkleProof {
	for _, p := range m.Data {
		return MerkleProof{
			Root: p.Root, Leaf: p.Leaf, Base: append(p.Path.elements(), p.Base.elements()...),
			Sub: p.Sub.elements(), Top: p.Top.elements(),
		}
	}
	return MerkleProof{}
}

func (c jsonColumn) proof() ColumnProof {
	return ColumnProof{Column: Column{Index: c.Column.Index, Rows: c.Column.Rows}, Inclusion: c.Inclusion.proof()}
}

func (p *jsonProof) proof() Proof {
	out := Proof{
		CommDProof: p.CommD.proof(), CommRLastProof: p.CommR.proof(), CX: p.Columns.CX.proof(),
		EncodingProof: LabelProof(p.Encoding),
	}
	for i := range out.DRGParents {
		out.DRGParents[i] = p.Columns.DRG[i].proof()
	}
	for i := range out.ExpParents {
		out.ExpParents[i] = p.Columns.Exp[i].proof()
	}
	for _, label := range p.Labels {
		out.LabelingProofs = append(out.LabelingProofs, LabelProof(label))
	}
	return out
}

// decodeLoosely reads L1 JSON with no check beyond the registered proof.
func decodeLoosely(t *testing.T, content []byte) *Output {
	t.Helper()
	var j jsonOutput
	if err := json.Unmarshal(content, &j); err != nil {
		t.Fatal(err)
	}
	number, err := sdr.ParseRegisteredProof(j.RegisteredProof)
	if err != nil {
		t.Fatal(err)
	}
	output := &Output{
		RegisteredProof: number, CommR: j.CommR, CommD: j.CommD, ReplicaID: j.ReplicaID, Seed: j.Seed, Ticket: j.Ticket,
	}
	for _, partition := range j.VanillaProofs[number.Tag()] {
		var proofs []Proof
		for i := range partition {
			proofs = append(proofs, partition[i].proof())
		}
		output.VanillaProofs = append(output.VanillaProofs, proofs)
	}
	return output
}

func checkRewrite(t *testing.T, want []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := WriteJSON(&got, decodeLoosely(t, want)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		at := 0
		for at < min(got.Len(), len(want)) && got.Bytes()[at] == want[at] {
			at++
		}
		t.Errorf("%d bytes, want %d; first difference at %d", got.Len(), len(want), at)
	}
}

func TestWriterReproducesRustOutputs(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.c1.json"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("find oracle outputs: %d, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			checkRewrite(t, content)
		})
	}
}

func TestWriterReproducesTheReal8MiBOutput(t *testing.T) {
	t.Parallel()
	checkRewrite(t, fixture.Bytes(t, "c1-8MiB.json"))
}

func TestWriterOrdersSubAndTopProofs(t *testing.T) {
	t.Parallel()
	element := func(b byte) []PathElement { return []PathElement{{Hashes: [][32]byte{{b}}, Index: uint64(b)}} }
	zeros := ",0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]"
	path := func(n string) string { return `{"path":[{"hashes":[[` + n + zeros + `],"index":` + n + `}]}` }
	proof := MerkleProof{Root: [32]byte{8}, Leaf: [32]byte{9}, Base: element(1), Sub: element(2)}
	ends := `"root":[8` + zeros + `,"leaf":[9` + zeros
	for want, proof := range map[string]MerkleProof{
		`{"data":{"Sub":{"base_proof":` + path("1") + `,"sub_proof":` + path("2") + `,` + ends + `}}}`: proof,
		`{"data":{"Top":{"base_proof":` + path("1") + `,"sub_proof":` + path("2") + `,"top_proof":` + path("3") +
			`,` + ends + `}}}`: {Root: proof.Root, Leaf: proof.Leaf, Base: proof.Base, Sub: proof.Sub, Top: element(3)},
	} {
		var got bytes.Buffer
		w := jsonWriter{out: bufio.NewWriter(&got)}
		w.merkle(&proof)
		if err := w.out.Flush(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got.String()); diff != "" {
			t.Errorf("proof (-want +got):\n%s", diff)
		}
	}
}

// brokenWriter takes a number of bytes and then fails.
type brokenWriter struct{ left int }

var errBroken = errors.New("broken pipe")

func (w *brokenWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return 0, errBroken
	}
	w.left -= len(p)
	return len(p), nil
}

func TestWriterReportsErrors(t *testing.T) {
	t.Parallel()
	output := &Output{VanillaProofs: [][]Proof{make([]Proof, 100)}}
	if err := WriteJSON(&brokenWriter{left: 1 << 17}, output); !errors.Is(err, errBroken) {
		t.Errorf("broken writer: %v, want errBroken", err)
	}
	output.RegisteredProof = sdr.Unregistered
	if err := WriteJSON(new(bytes.Buffer), output); !errors.Is(err, ErrUnregistered) {
		t.Errorf("unregistered: %v, want ErrUnregistered", err)
	}
}
