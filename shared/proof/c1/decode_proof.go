package c1

import (
	"math"
)

// The keys of the objects inside a challenge's proof, in the order that Rust writes them.
func proofKeys() []string {
	return []string{
		"comm_d_proofs", "comm_r_last_proof", "replica_column_proofs", "labeling_proofs", "encoding_proof",
	}
}

func columnSetKeys() []string   { return []string{"c_x", "drg_parents", "exp_parents"} }
func columnProofKeys() []string { return []string{"column", "inclusion_proof"} }
func columnKeys() []string      { return []string{"index", "rows", "_h"} }
func labelKeys() []string       { return []string{"parents", "layer_index", "node"} }
func singleKeys() []string      { return []string{"root", "leaf", "path"} }
func subKeys() []string         { return []string{"base_proof", "sub_proof", "root", "leaf"} }
func topVariantKeys() []string {
	return []string{"base_proof", "sub_proof", "top_proof", "root", "leaf"}
}

func (d *decoder) proof(p *Proof) {
	d.object("a challenge's proof (an object)", proofKeys(), func(i int) {
		switch i {
		case 0:
			d.merkle(&p.CommDProof, true)
		case 1:
			d.merkle(&p.CommRLastProof, false)
		case 2:
			d.columnSet(p)
		case 3:
			p.LabelingProofs = make([]LabelProof, d.shape.layers)
			d.list(d.shape.layers, "labeling proofs", func(i int) { d.label(&p.LabelingProofs[i]) })
		case 4:
			d.label(&p.EncodingProof)
		}
	})
}

func (d *decoder) columnSet(p *Proof) {
	d.object("an object of columns", columnSetKeys(), func(i int) {
		switch i {
		case 0:
			d.columnProof(&p.CX)
		case 1:
			d.list(len(p.DRGParents), "columns", func(i int) { d.columnProof(&p.DRGParents[i]) })
		case 2:
			d.list(len(p.ExpParents), "columns", func(i int) { d.columnProof(&p.ExpParents[i]) })
		}
	})
}

func (d *decoder) columnProof(c *ColumnProof) {
	d.object("a column's proof (an object)", columnProofKeys(), func(i int) {
		switch i {
		case 0:
			d.column(&c.Column)
		case 1:
			d.merkle(&c.Inclusion, false)
		}
	})
}

// column reads one column. The phantom field _h must be there, whatever it says (c2-formats.md 1.2).
func (d *decoder) column(c *Column) {
	d.object("a column (an object)", columnKeys(), func(i int) {
		switch i {
		case 0:
			c.Index = uint32(d.integer(math.MaxUint32))
		case 1:
			c.Rows = d.hashList(d.shape.layers)
		case 2:
			d.skipValue(0)
		}
	})
}

func (d *decoder) label(l *LabelProof) {
	d.object("a label's proof (an object)", labelKeys(), func(i int) {
		switch i {
		case 0:
			d.list(len(l.Parents), "32-byte values", func(i int) { d.hash(&l.Parents[i]) })
		case 1:
			l.LayerIndex = uint32(d.integer(math.MaxUint32))
		case 2:
			l.Node = d.integer(math.MaxUint64)
		}
	})
}

// merkle reads a path in tree D, or in one of the Poseidon trees.
func (d *decoder) merkle(m *MerkleProof, dataTree bool) {
	d.object("a Merkle proof (an object)", []string{"data"}, func(int) {
		variant := d.shape.variant
		if dataTree {
			variant = "Single"
		}
		d.object("an object with one key, the kind of path", []string{variant}, func(int) {
			switch {
			case dataTree:
				d.single(m, d.shape.dataPath, 2)
			case variant == "Single":
				d.single(m, d.shape.base, treeArity)
			default:
				d.compound(m)
			}
		})
	})
}

// single reads a path of one part.
func (d *decoder) single(m *MerkleProof, length, arity int) {
	d.object("an object", singleKeys(), func(i int) {
		switch i {
		case 0:
			d.hash(&m.Root)
		case 1:
			d.hash(&m.Leaf)
		case 2:
			m.Base = d.inclusionPath(length, arity)
		}
	})
}

// compound reads a path of two or three parts.
func (d *decoder) compound(m *MerkleProof) {
	keys := topVariantKeys()
	if d.shape.top == 0 {
		keys = subKeys()
	}
	d.object("an object", keys, func(i int) {
		switch keys[i] {
		case "base_proof":
			m.Base = d.inclusionPath(d.shape.base, treeArity)
		case "sub_proof":
			m.Sub = d.inclusionPath(d.shape.sub, treeArity)
		case "top_proof":
			m.Top = d.inclusionPath(d.shape.top, 2)
		case "root":
			d.hash(&m.Root)
		case "leaf":
			d.hash(&m.Leaf)
		}
	})
}

func (d *decoder) inclusionPath(length, arity int) []PathElement {
	var elements []PathElement
	d.object("a path (an object)", []string{"path"}, func(int) {
		elements = d.elements.take(length)
		d.list(length, "path elements", func(i int) { d.pathElement(&elements[i], arity) })
	})
	return elements
}

func (d *decoder) pathElement(e *PathElement, arity int) {
	d.object("a path element (an object)", []string{"hashes", "index"}, func(i int) {
		switch i {
		case 0:
			e.Hashes = d.hashList(arity - 1)
		case 1:
			e.Index = d.integer(uint64(arity - 1))
		}
	})
}

func (d *decoder) hashList(count int) [][32]byte {
	hashes := d.hashes.take(count)
	d.list(count, "32-byte values", func(i int) { d.hash(&hashes[i]) })
	return hashes
}
