package c1

import (
	"fmt"
	"strconv"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// columnCount is the challenged node's column and those of its parents.
const columnCount = 1 + sdr.Degree

// challengeCheck checks one challenge's proof, everything but its Poseidon hashes.
type challengeCheck struct {
	*checker
	partition, challenge int
	node                 uint64
	proof                *Proof
	labeler              *sdr.Labeler
}

func (c *challengeCheck) refuse(field, format string, args ...any) *InputError {
	return &InputError{
		Partition: c.partition, Challenge: c.challenge, Field: field, Offset: -1, Reason: fmt.Sprintf(format, args...),
	}
}

// all runs the checks, cheap ones first; the later ones rely on the shapes found right by the first.
func (c *challengeCheck) all() *InputError {
	for _, check := range []func() *InputError{
		c.shapes, c.nodes, c.elements, c.roots, c.dataPath, c.labels, c.encoding,
	} {
		if refusal := check(); refusal != nil {
			return refusal
		}
	}
	return nil
}

// allColumns gives the challenged node's column, then its parents' in graph order.
func allColumns(p *Proof) [columnCount]*ColumnProof {
	var columns [columnCount]*ColumnProof
	columns[0] = &p.CX
	parents := p.ParentColumns()
	copy(columns[1:], parents[:])
	return columns
}

// columnField names the columns of allColumns.
func columnField(i int) string {
	switch {
	case i == 0:
		return "replica_column_proofs.c_x"
	case i <= sdr.DRGDegree:
		return "replica_column_proofs.drg_parents[" + strconv.Itoa(i-1) + "]"
	default:
		return "replica_column_proofs.exp_parents[" + strconv.Itoa(i-1-sdr.DRGDegree) + "]"
	}
}

func labelingField(layer int) string { return "labeling_proofs[" + strconv.Itoa(layer) + "]" }

const (
	dataField     = "comm_d_proofs"
	replicaField  = "comm_r_last_proof"
	encodingField = "encoding_proof"
)

// merkleField names a value of a path as it is named in the JSON.
func (c *checker) merkleField(path string, dataTree bool, value string) string {
	variant := c.shape.variant
	if dataTree {
		variant = "Single"
	}
	return path + ".data." + variant + "." + value
}

// part is one of the lists of elements that make a path.
type part struct {
	name          string
	elements      []PathElement
	length, arity int
}

func (c *checker) parts(m *MerkleProof, dataTree bool) [3]part {
	base := part{"path", m.Base, c.shape.base, treeArity}
	if c.shape.sub > 0 {
		base.name = "base_proof"
	}
	parts := [3]part{
		base, {"sub_proof", m.Sub, c.shape.sub, treeArity}, {"top_proof", m.Top, c.shape.top, 2},
	}
	if dataTree {
		parts[0] = part{"path", m.Base, c.shape.dataPath, 2}
		parts[1].length, parts[2].length = 0, 0
	}
	return parts
}

// shapes checks every length and the range of every index.
func (c *challengeCheck) shapes() *InputError {
	if refusal := c.pathShape(dataField, &c.proof.CommDProof, true); refusal != nil {
		return refusal
	}
	if refusal := c.pathShape(replicaField, &c.proof.CommRLastProof, false); refusal != nil {
		return refusal
	}
	for i, column := range allColumns(c.proof) {
		field := columnField(i)
		if got := len(column.Column.Rows); got != c.shape.layers {
			return c.refuse(field+".column.rows", "%d rows, want %d", got, c.shape.layers)
		}
		if refusal := c.pathShape(field+".inclusion_proof", &column.Inclusion, false); refusal != nil {
			return refusal
		}
	}
	if got := len(c.proof.LabelingProofs); got != c.shape.layers {
		return c.refuse("labeling_proofs", "%d labeling proofs, want %d", got, c.shape.layers)
	}
	return nil
}

func (c *challengeCheck) pathShape(path string, m *MerkleProof, dataTree bool) *InputError {
	for _, part := range c.parts(m, dataTree) {
		if len(part.elements) != part.length {
			field := c.merkleField(path, dataTree, part.name)
			return c.refuse(field, "%d path elements, want %d", len(part.elements), part.length)
		}
		for i := range part.elements {
			e := &part.elements[i]
			if len(e.Hashes) == part.arity-1 && e.Index < uint64(part.arity) {
				continue
			}
			field := c.merkleField(path, dataTree, part.name) + ".path[" + strconv.Itoa(i) + "]"
			return c.refuse(field, "%d hashes and index %d, want %d hashes and an index below %d",
				len(e.Hashes), e.Index, part.arity-1, part.arity)
		}
	}
	return nil
}

// position is the leaf that a path of the right shape leads to.
func (c *checker) position(m *MerkleProof, dataTree bool) uint64 {
	position, weight := uint64(0), uint64(1)
	for _, part := range c.parts(m, dataTree) {
		for i := range part.elements {
			position += part.elements[i].Index * weight
			weight *= uint64(part.arity)
		}
	}
	return position
}

// nodes compares the node numbers and path positions with the challenge and its parents.
func (c *challengeCheck) nodes() *InputError {
	for k := range c.proof.LabelingProofs {
		label := &c.proof.LabelingProofs[k]
		if label.Node != c.node {
			return c.refuse(labelingField(k)+".node", "node %d, the challenge is %d: wrong seed, order or sector",
				label.Node, c.node)
		}
		if label.LayerIndex != uint32(k+1) {
			return c.refuse(labelingField(k)+".layer_index", "layer %d, want %d", label.LayerIndex, k+1)
		}
	}
	for _, path := range []struct {
		field    string
		m        *MerkleProof
		dataTree bool
	}{{dataField, &c.proof.CommDProof, true}, {replicaField, &c.proof.CommRLastProof, false}} {
		if got := c.position(path.m, path.dataTree); got != c.node {
			return c.refuse(path.field, "path leads to node %d, the challenge is %d", got, c.node)
		}
	}
	var parents sdr.Parents
	c.graph.Parents(c.node, &parents)
	for i, column := range allColumns(c.proof) {
		want := c.node
		if i > 0 {
			want = uint64(parents[i-1])
		}
		if got := uint64(column.Column.Index); got != want {
			return c.refuse(columnField(i)+".column.index", "node %d, want %d", got, want)
		}
		if got := c.position(&column.Inclusion, false); got != want {
			return c.refuse(columnField(i)+".inclusion_proof", "path leads to node %d, want %d", got, want)
		}
	}
	return nil
}

// elements checks that every 32-byte value is canonical.
func (c *challengeCheck) elements() *InputError {
	if refusal := c.pathElements(dataField, &c.proof.CommDProof, true); refusal != nil {
		return refusal
	}
	if refusal := c.pathElements(replicaField, &c.proof.CommRLastProof, false); refusal != nil {
		return refusal
	}
	for i, column := range allColumns(c.proof) {
		for k := range column.Column.Rows {
			if !canonical(&column.Column.Rows[k]) {
				return c.refuse(columnField(i)+".column.rows["+strconv.Itoa(k)+"]", notCanonical)
			}
		}
		if !c.canonicalPath(&column.Inclusion) {
			return c.pathElements(columnField(i)+".inclusion_proof", &column.Inclusion, false)
		}
	}
	// The parents of labels are compared with rows, one by one.
	return nil
}

// canonicalPath says whether all values of a path are canonical, without naming any.
func (c *checker) canonicalPath(m *MerkleProof) bool {
	ok := canonical(&m.Root) && canonical(&m.Leaf)
	for _, elements := range [][]PathElement{m.Base, m.Sub, m.Top} {
		for i := range elements {
			for j := range elements[i].Hashes {
				ok = ok && canonical(&elements[i].Hashes[j])
			}
		}
	}
	return ok
}

// pathElements names the first value of a path that is not canonical.
func (c *challengeCheck) pathElements(path string, m *MerkleProof, dataTree bool) *InputError {
	if c.canonicalPath(m) {
		return nil
	}
	field := func(value string) string { return c.merkleField(path, dataTree, value) }
	if !canonical(&m.Root) {
		return c.refuse(field("root"), notCanonical)
	}
	for _, part := range c.parts(m, dataTree) {
		for i := range part.elements {
			for j := range part.elements[i].Hashes {
				if !canonical(&part.elements[i].Hashes[j]) {
					return c.refuse(field(fmt.Sprintf("%s.path[%d].hashes[%d]", part.name, i, j)), notCanonical)
				}
			}
		}
	}
	return c.refuse(field("leaf"), notCanonical)
}

// roots compares the roots with comm_d and with those of the very first proof.
func (c *challengeCheck) roots() *InputError {
	if c.proof.CommDProof.Root != c.out.CommD {
		return c.refuse(c.merkleField(dataField, true, "root"), "differs from comm_d")
	}
	if c.proof.CommRLastProof.Root != c.first().CommRLastProof.Root {
		return c.refuse(c.merkleField(replicaField, false, "root"), "differs from that of the first challenge")
	}
	for i, column := range allColumns(c.proof) {
		if column.Inclusion.Root != c.first().CX.Inclusion.Root {
			return c.refuse(c.merkleField(columnField(i)+".inclusion_proof", false, "root"),
				"differs from that of the first challenge's c_x")
		}
	}
	return nil
}

// dataPath recomputes the root of tree D.
func (c *challengeCheck) dataPath() *InputError {
	m := &c.proof.CommDProof
	steps := make([]sdr.StepD, len(m.Base))
	for i := range m.Base {
		steps[i] = sdr.StepD{Sibling: m.Base[i].Hashes[0], Right: m.Base[i].Index == 1}
	}
	if sdr.RootD(m.Leaf, steps) != m.Root {
		return c.refuse(dataField, "path does not lead from leaf to root")
	}
	return nil
}

// labels recomputes the challenged node's label in every layer from its parents' columns.
func (c *challengeCheck) labels() *InputError {
	var parents [sdr.Degree][32]byte
	for k := range c.shape.layers {
		count := sdr.DRGDegree
		for i := range c.proof.DRGParents {
			parents[i] = c.proof.DRGParents[i].Column.Rows[k]
		}
		if k > 0 {
			count = sdr.Degree
			for i := range c.proof.ExpParents {
				parents[sdr.DRGDegree+i] = c.proof.ExpParents[i].Column.Rows[k-1]
			}
		}
		stated := &c.proof.LabelingProofs[k].Parents
		for i := range stated {
			if stated[i] != parents[i%count] {
				return c.refuse(labelingField(k)+".parents["+strconv.Itoa(i)+"]",
					"differs from the row of parent %d's column", i%count)
			}
		}
		label := c.labeler.Label(uint32(k+1), c.node, parents[:count])
		if label != c.proof.CX.Column.Rows[k] {
			return c.refuse(columnField(0)+".column.rows["+strconv.Itoa(k)+"]",
				"not the label that the parents' rows give in layer %d", k+1)
		}
	}
	if c.proof.EncodingProof != c.proof.LabelingProofs[c.shape.layers-1] {
		return c.refuse(encodingField, "differs from the last labeling proof")
	}
	return nil
}

// encoding checks that the replica's node is the last label plus the data's node.
func (c *challengeCheck) encoding() *InputError {
	label, data := element(&c.proof.CX.Column.Rows[c.shape.layers-1]), element(&c.proof.CommDProof.Leaf)
	var sum fr.Element
	if sum.Add(&label, &data) != nil && sum != element(&c.proof.CommRLastProof.Leaf) {
		return c.refuse(c.merkleField(replicaField, false, "leaf"), "not the sum of the last label and the data's leaf")
	}
	return nil
}
