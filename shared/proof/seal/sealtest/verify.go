package sealtest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/poseidon"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// ErrRelation says that a value of an output is not what the relations demand.
var ErrRelation = errors.New("relation does not hold")

// Verify checks every relation of an output for a sector: replica id, challenges, parents, tree paths, column hashes,
// labels, encoding and comm_r. It gives the first violation.
func Verify(output *c1.Output, sector *sdr.Sector) error {
	v := verifier{output: output, sector: sector, graph: sector.Config.Graph()}
	if err := v.top(); err != nil {
		return err
	}
	for k, partition := range output.VanillaProofs {
		challenges := sector.Challenges(k)
		if len(partition) != len(challenges) {
			return fmt.Errorf("partition %d has %d challenges, want %d: %w", k, len(partition), len(challenges),
				ErrRelation)
		}
		for i, challenge := range challenges {
			if err := v.proof(&partition[i], challenge); err != nil {
				return fmt.Errorf("partition %d, challenge %d: %w", k, i, err)
			}
		}
	}
	return nil
}

type verifier struct {
	output *c1.Output
	sector *sdr.Sector
	graph  *sdr.Graph
	// commC and commRLast are the roots of the first challenge.
	commC, commRLast [32]byte
}

// equal compares two values under a name.
func equal[T comparable](name string, got, want T) error {
	if got != want {
		return fmt.Errorf("%s = %x, want %x: %w", name, any(got), any(want), ErrRelation)
	}
	return nil
}

// top checks what belongs to the whole sector.
func (v *verifier) top() error {
	o, s := v.output, v.sector
	if err := s.Validate(); err != nil {
		return err
	}
	if len(o.VanillaProofs) != s.Config.PartitionCount() || len(o.VanillaProofs[0]) == 0 {
		return fmt.Errorf("%d partitions, want %d: %w", len(o.VanillaProofs), s.Config.PartitionCount(), ErrRelation)
	}
	first := &o.VanillaProofs[0][0]
	v.commC, v.commRLast = first.CX.Inclusion.Root, first.CommRLastProof.Root
	commC, errC := sdr.Element(&v.commC)
	commRLast, errR := sdr.Element(&v.commRLast)
	commR := sdr.CommR(&commC, &commRLast)
	return errors.Join(errC, errR,
		equal("registered proof", o.RegisteredProof, s.Config.RegisteredProof()),
		equal("replica id", o.ReplicaID, s.ReplicaID()),
		equal("ticket", o.Ticket, s.Ticket),
		equal("seed", o.Seed, s.Seed),
		equal("comm_d", o.CommD, s.CommD),
		equal("comm_r of the sector", o.CommR, s.CommR),
		equal("comm_r", o.CommR, sdr.Bytes(&commR)),
	)
}

// proof checks one challenge.
func (v *verifier) proof(p *c1.Proof, challenge uint64) error {
	var parents sdr.Parents
	v.graph.Parents(challenge, &parents)
	columns := p.ParentColumns()
	errs := []error{
		v.dataPath(&p.CommDProof, challenge),
		v.nodePath("comm_r_last", &p.CommRLastProof, challenge, v.commRLast),
		v.column("c_x", &p.CX, challenge),
	}
	for i, column := range columns {
		errs = append(errs, v.column(fmt.Sprintf("parent %d", i), column, uint64(parents[i])))
	}
	layers := v.sector.Config.Size.LayerCount()
	if len(p.LabelingProofs) != layers {
		return fmt.Errorf("%d labeling proofs, want %d: %w", len(p.LabelingProofs), layers, ErrRelation)
	}
	for layer := range layers {
		errs = append(errs, v.label(p, layer, challenge))
	}
	key, err := sdr.Element(&p.CX.Column.Rows[layers-1])
	data, err2 := sdr.Element(&p.CommDProof.Leaf)
	key.Add(&key, &data)
	return errors.Join(append(errs, err, err2,
		equal("encoded node", p.CommRLastProof.Leaf, sdr.Bytes(&key)),
		equal("encoding proof", p.EncodingProof, p.LabelingProofs[layers-1]),
	)...)
}

// dataPath checks a path in tree D.
func (v *verifier) dataPath(p *c1.MerkleProof, node uint64) error {
	position := uint64(0)
	var path []sdr.StepD
	for level, element := range p.Base {
		if len(element.Hashes) != 1 || element.Index > 1 {
			return fmt.Errorf("comm_d path, level %d has %d siblings, index %d: %w", level, len(element.Hashes),
				element.Index, ErrRelation)
		}
		position |= element.Index << level
		path = append(path, sdr.StepD{Sibling: element.Hashes[0], Right: element.Index == 1})
	}
	return errors.Join(
		equal("comm_d levels", len(p.Elements()), v.sector.Config.Size.TreeDLevels()),
		equal("comm_d position", position, node),
		equal("comm_d root", sdr.RootD(p.Leaf, path), v.sector.CommD),
		equal("comm_d stated root", p.Root, v.sector.CommD),
	)
}

// nodePath checks a path in tree C or R-last.
func (v *verifier) nodePath(name string, p *c1.MerkleProof, node uint64, root [32]byte) error {
	size := v.sector.Config.Size
	shape := size.Shape()
	arities := size.TreeLevels()
	elements := p.Elements()
	counts := [3]int{len(p.Base), len(p.Sub), len(p.Top)}
	want := [3]int{shape.BaseLevels(size.Nodes()), min(shape.Sub, 1), min(shape.Top, 1)}
	if err := equal(name+" levels", counts, want); err != nil {
		return err
	}
	path := make([]sdr.Step, len(elements))
	for level, element := range elements {
		if len(element.Hashes) != arities[level]-1 || element.Index >= uint64(arities[level]) {
			return fmt.Errorf("%s path, level %d has %d siblings, index %d: %w", name, level, len(element.Hashes),
				element.Index, ErrRelation)
		}
		path[level].Index = int(element.Index)
		for i := range element.Hashes {
			sibling, err := sdr.Element(&element.Hashes[i])
			if err != nil {
				return fmt.Errorf("%s path, level %d: %w", name, level, err)
			}
			path[level].Siblings = append(path[level].Siblings, sibling)
		}
	}
	leaf, err := sdr.Element(&p.Leaf)
	if err != nil {
		return fmt.Errorf("%s leaf: %w", name, err)
	}
	computed := sdr.Root(&leaf, path)
	return errors.Join(
		equal(name+" position", sdr.Position(path), node),
		equal(name+" root", sdr.Bytes(&computed), root),
		equal(name+" stated root", p.Root, root),
	)
}

// column checks the column of a node: its number, its hash and its path in tree C.
func (v *verifier) column(name string, p *c1.ColumnProof, node uint64) error {
	layers := v.sector.Config.Size.LayerCount()
	if len(p.Column.Rows) != layers {
		return fmt.Errorf("%s has %d rows, want %d: %w", name, len(p.Column.Rows), layers, ErrRelation)
	}
	rows := make([]fr.Element, layers)
	for i := range rows {
		row, err := sdr.Element(&p.Column.Rows[i])
		if err != nil {
			return fmt.Errorf("%s, row %d: %w", name, i, err)
		}
		rows[i] = row
	}
	hash := poseidon.Hash(rows)
	return errors.Join(
		equal(name+" index", uint64(p.Column.Index), node),
		equal(name+" hash", sdr.Bytes(&hash), p.Inclusion.Leaf),
		v.nodePath(name, &p.Inclusion, node, v.commC),
	)
}

// label checks the label of the challenged node in one layer, counted from 0: that its parents are the rows of the
// parents' columns, and that its hash is the row of the node's own column.
func (v *verifier) label(p *c1.Proof, layer int, challenge uint64) error {
	var short [][32]byte
	for i, column := range p.ParentColumns() {
		switch {
		case i < sdr.DRGDegree:
			short = append(short, column.Column.Rows[layer])
		case layer > 0:
			short = append(short, column.Column.Rows[layer-1])
		}
	}
	want := slices.Repeat(short, sdr.LabelParents)[:sdr.LabelParents]
	l := &p.LabelingProofs[layer]
	name := fmt.Sprintf("layer %d ", layer+1)
	label := sdr.NewLabeler(&v.output.ReplicaID).Label(uint32(layer+1), challenge, l.Parents[:])
	return errors.Join(
		equal(name+"parents", l.Parents, [sdr.LabelParents][32]byte(want)),
		equal(name+"index", int(l.LayerIndex), layer+1),
		equal(name+"node", l.Node, challenge),
		equal(name+"label", p.CX.Column.Rows[layer], label),
	)
}
