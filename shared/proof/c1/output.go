package c1

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// ErrUnregistered says that an output can't be written because its sector has no registered proof.
var ErrUnregistered = errors.New("no registered proof")

// Output is a Commit-Phase-1 output (spec/c2-formats.md 1.4, 1.6). 32-byte values are little-endian field elements,
// except Seed and Ticket, which are opaque.
type Output struct {
	// RegisteredProof is sdr.Unregistered for sectors that have none; those can't be written.
	RegisteredProof sdr.RegisteredProof
	// VanillaProofs has one list per partition with one proof per challenge.
	VanillaProofs [][]Proof
	// CommR, CommD and ReplicaID are canonical.
	CommR, CommD, ReplicaID [32]byte
	// Seed is the interactive randomness, Ticket the sealing randomness.
	Seed, Ticket [32]byte
}

// Proof is the vanilla proof of one challenge.
type Proof struct {
	CommDProof     MerkleProof
	CommRLastProof MerkleProof
	// CX is the column of the challenged node; the parents' columns follow in graph order.
	CX         ColumnProof
	DRGParents [sdr.DRGDegree]ColumnProof
	ExpParents [sdr.ExpDegree]ColumnProof
	// LabelingProofs has one entry per layer, layer 1 first; EncodingProof is a copy of the last.
	LabelingProofs []LabelProof
	EncodingProof  LabelProof
}

// ColumnProof is a column and its path in tree C, whose leaf is the column's hash.
type ColumnProof struct {
	Column    Column
	Inclusion MerkleProof
}

// Column holds the labels of one node in all layers, layer 1 first.
type Column struct {
	Index uint32
	Rows  [][32]byte
}

// LabelProof is what one label hashes: the 37 parents' labels, after cyclic repetition. Layers count from 1.
type LabelProof struct {
	Parents    [sdr.LabelParents][32]byte
	LayerIndex uint32
	Node       uint64
}

// MerkleProof is a path from a leaf to a root. Base is never empty; Sub and Top have at most one element and are empty
// in trees without that level, Top also where Sub is.
type MerkleProof struct {
	Root, Leaf     [32]byte
	Base, Sub, Top []PathElement
}

// PathElement is one level of a path: the siblings in child order without the own node, and its position among them.
type PathElement struct {
	Hashes [][32]byte
	Index  uint64
}

// ParentColumns gives the 14 parents' columns in graph order.
func (p *Proof) ParentColumns() [sdr.Degree]*ColumnProof {
	var columns [sdr.Degree]*ColumnProof
	for i := range p.DRGParents {
		columns[i] = &p.DRGParents[i]
	}
	for i := range p.ExpParents {
		columns[sdr.DRGDegree+i] = &p.ExpParents[i]
	}
	return columns
}

// Elements gives the levels of a path, leaf side first: base, sub, top.
func (p *MerkleProof) Elements() []PathElement {
	elements := make([]PathElement, 0, len(p.Base)+len(p.Sub)+len(p.Top))
	elements = append(elements, p.Base...)
	elements = append(elements, p.Sub...)
	return append(elements, p.Top...)
}

// WriteJSON writes an output as L1 JSON, byte for byte as Rust's writer does: no whitespace, fields in declared order,
// the phantom field _h (c2-formats.md 1.2).
func WriteJSON(w io.Writer, output *Output) error {
	if !output.RegisteredProof.Valid() {
		return fmt.Errorf("write c1 output: %w", ErrUnregistered)
	}
	buffer := jsonWriter{out: bufio.NewWriterSize(w, 1<<16)}
	buffer.output(output)
	if err := buffer.out.Flush(); err != nil {
		return fmt.Errorf("write c1 output: %w", err)
	}
	return nil
}

// jsonWriter appends JSON text. The buffered writer keeps the first error and reports it when flushed.
type jsonWriter struct {
	out     *bufio.Writer
	scratch [4 * 33]byte
}

func (w *jsonWriter) text(s string) { _, _ = w.out.WriteString(s) }

func (w *jsonWriter) number(n uint64) {
	_, _ = w.out.Write(strconv.AppendUint(w.scratch[:0], n, 10))
}

// hash writes 32 bytes as an array of numbers.
func (w *jsonWriter) hash(h *[32]byte) {
	text := append(w.scratch[:0], '[')
	for i, b := range h {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendUint(text, uint64(b), 10)
	}
	_, _ = w.out.Write(append(text, ']'))
}

func (w *jsonWriter) hashes(list [][32]byte) {
	w.list(len(list), func(i int) { w.hash(&list[i]) })
}

func (w *jsonWriter) list(count int, item func(i int)) {
	w.text("[")
	for i := range count {
		if i > 0 {
			w.text(",")
		}
		item(i)
	}
	w.text("]")
}

func (w *jsonWriter) output(o *Output) {
	w.text(`{"registered_proof":"`)
	w.text(o.RegisteredProof.String())
	w.text(`","vanilla_proofs":{"`)
	w.text(o.RegisteredProof.Tag())
	w.text(`":`)
	w.list(len(o.VanillaProofs), func(k int) {
		partition := o.VanillaProofs[k]
		w.list(len(partition), func(i int) { w.proof(&partition[i]) })
	})
	w.text(`},"comm_r":`)
	w.hash(&o.CommR)
	w.text(`,"comm_d":`)
	w.hash(&o.CommD)
	w.text(`,"replica_id":`)
	w.hash(&o.ReplicaID)
	w.text(`,"seed":`)
	w.hash(&o.Seed)
	w.text(`,"ticket":`)
	w.hash(&o.Ticket)
	w.text("}")
}

func (w *jsonWriter) proof(p *Proof) {
	w.text(`{"comm_d_proofs":`)
	w.merkle(&p.CommDProof)
	w.text(`,"comm_r_last_proof":`)
	w.merkle(&p.CommRLastProof)
	w.text(`,"replica_column_proofs":{"c_x":`)
	w.column(&p.CX)
	w.text(`,"drg_parents":`)
	w.list(len(p.DRGParents), func(i int) { w.column(&p.DRGParents[i]) })
	w.text(`,"exp_parents":`)
	w.list(len(p.ExpParents), func(i int) { w.column(&p.ExpParents[i]) })
	w.text(`},"labeling_proofs":`)
	w.list(len(p.LabelingProofs), func(i int) { w.label(&p.LabelingProofs[i]) })
	w.text(`,"encoding_proof":`)
	w.label(&p.EncodingProof)
	w.text("}")
}

func (w *jsonWriter) column(c *ColumnProof) {
	w.text(`{"column":{"index":`)
	w.number(uint64(c.Column.Index))
	w.text(`,"rows":`)
	w.hashes(c.Column.Rows)
	w.text(`,"_h":null},"inclusion_proof":`)
	w.merkle(&c.Inclusion)
	w.text("}")
}

func (w *jsonWriter) label(l *LabelProof) {
	w.text(`{"parents":`)
	w.hashes(l.Parents[:])
	w.text(`,"layer_index":`)
	w.number(uint64(l.LayerIndex))
	w.text(`,"node":`)
	w.number(l.Node)
	w.text("}")
}

// merkle writes a path. Single has root and leaf before the path, the other variants have them behind the paths.
func (w *jsonWriter) merkle(p *MerkleProof) {
	switch {
	case len(p.Top) > 0:
		w.text(`{"data":{"Top":{"base_proof":`)
		w.path(p.Base)
		w.text(`,"sub_proof":`)
		w.path(p.Sub)
		w.text(`,"top_proof":`)
		w.path(p.Top)
		w.text(",")
		w.ends(p)
	case len(p.Sub) > 0:
		w.text(`{"data":{"Sub":{"base_proof":`)
		w.path(p.Base)
		w.text(`,"sub_proof":`)
		w.path(p.Sub)
		w.text(",")
		w.ends(p)
	default:
		w.text(`{"data":{"Single":{`)
		w.ends(p)
		w.text(`,"path":`)
		w.path(p.Base)
	}
	w.text("}}}")
}

func (w *jsonWriter) ends(p *MerkleProof) {
	w.text(`"root":`)
	w.hash(&p.Root)
	w.text(`,"leaf":`)
	w.hash(&p.Leaf)
}

func (w *jsonWriter) path(elements []PathElement) {
	w.text(`{"path":`)
	w.list(len(elements), func(i int) {
		w.text(`{"hashes":`)
		w.hashes(elements[i].Hashes)
		w.text(`,"index":`)
		w.number(elements[i].Index)
		w.text("}")
	})
	w.text("}")
}
