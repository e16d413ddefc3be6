package c1

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/crypto/blake2b"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// EncodeSlice writes the slice of one partition, 0 … partitions − 1. The output must have passed Check; of that,
// shapes, canonical elements and the agreement of paths with node numbers are checked again and refused with an
// *InputError, because the format could not hold anything else.
func EncodeSlice(out *Output, partition int) ([]byte, error) {
	if !out.RegisteredProof.Valid() {
		return nil, topError("registered_proof", "%s", out.RegisteredProof)
	}
	size := out.RegisteredProof.Size()
	c := &checker{out: out, config: out.RegisteredProof.Config(), shape: shapeOf(size)}
	if err := c.checkCounts(); err != nil {
		return nil, err
	}
	if partition < 0 || partition >= len(out.VanillaProofs) {
		return nil, fmt.Errorf("encode slice of partition %d: the sector has %d: %w", partition, len(out.VanillaProofs),
			ErrPartition)
	}
	layout := layoutOf(size)
	w := sliceWriter(make([]byte, 0, layout.bytes()))
	w.header(size, partition, layout)
	first := c.first()
	for _, value := range []struct {
		name  string
		value *[32]byte
	}{
		{"replica_id", &out.ReplicaID}, {"comm_d", &out.CommD}, {"comm_r", &out.CommR},
		{"comm_r_last", &first.CommRLastProof.Root}, {"comm_c", &first.CX.Inclusion.Root},
	} {
		if !canonical(value.value) {
			return nil, topError(value.name, notCanonical)
		}
		w.value(value.value)
	}
	for i := range out.VanillaProofs[partition] {
		cc := &challengeCheck{checker: c, partition: partition, challenge: i, proof: &out.VanillaProofs[partition][i]}
		if refusal := cc.sliceable(); refusal != nil {
			return nil, refusal
		}
		w.challenge(cc.proof)
	}
	digest := blake2b.Sum256(w)
	return append(w, digest[:]...), nil
}

// sliceable checks what a slice leaves to be inferred, and what DecodeSlice demands.
func (c *challengeCheck) sliceable() *InputError {
	if refusal := c.shapes(); refusal != nil {
		return refusal
	}
	if refusal := c.elements(); refusal != nil {
		return refusal
	}
	c.node = c.proof.LabelingProofs[0].Node
	if c.node == 0 || c.node >= c.shape.nodes {
		return c.refuse(labelingField(0)+".node", "node %d, want one from 1 to %d", c.node, c.shape.nodes-1)
	}
	if got := c.position(&c.proof.CommDProof, true); got != c.node {
		return c.refuse(dataField, "path leads to node %d, the challenge is %d", got, c.node)
	}
	if got := c.position(&c.proof.CommRLastProof, false); got != c.node {
		return c.refuse(replicaField, "path leads to node %d, the challenge is %d", got, c.node)
	}
	for i, column := range allColumns(c.proof) {
		want := uint64(column.Column.Index)
		if i == 0 {
			want = c.node
		}
		if got := c.position(&column.Inclusion, false); got != want {
			return c.refuse(columnField(i)+".inclusion_proof", "path leads to node %d, want %d", got, want)
		}
	}
	return nil
}

// sliceWriter appends to a slice; numbers are little-endian.
type sliceWriter []byte

func (w *sliceWriter) u32(n int)           { *w = binary.LittleEndian.AppendUint32(*w, uint32(n)) }
func (w *sliceWriter) value(v *[32]byte)   { *w = append(*w, v[:]...) }
func (w *sliceWriter) text(s string)       { *w = append(*w, s...) }
func (w *sliceWriter) values(v [][32]byte) { *w = appendValues(*w, v) }

func appendValues(to []byte, values [][32]byte) []byte {
	for i := range values {
		to = append(to, values[i][:]...)
	}
	return to
}

func (w *sliceWriter) header(size sdr.SectorSize, partition int, l sliceLayout) {
	var id [circuitIDBytes]byte
	copy(id[:], CircuitID(size))
	w.text(sliceMagic)
	w.u32(sliceVersion)
	*w = append(*w, id[:]...)
	for _, n := range []int{partition, l.challenges, l.layers, l.dataPath} {
		w.u32(n)
	}
}

func (w *sliceWriter) path(m *MerkleProof) {
	for _, elements := range [][]PathElement{m.Base, m.Sub, m.Top} {
		for i := range elements {
			w.values(elements[i].Hashes)
		}
	}
}

func (w *sliceWriter) challenge(p *Proof) {
	*w = binary.LittleEndian.AppendUint64(*w, p.LabelingProofs[0].Node)
	w.value(&p.CommDProof.Leaf)
	w.path(&p.CommDProof)
	for _, column := range p.ParentColumns() {
		w.u32(int(column.Column.Index))
		w.values(column.Column.Rows)
		w.path(&column.Inclusion)
	}
	w.path(&p.CommRLastProof)
	w.path(&p.CX.Inclusion)
}
