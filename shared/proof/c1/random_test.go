package c1

import (
	"math/rand/v2"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// randomOutput has the counts and shapes of a registered proof and random values: it decodes and fails any check.
func randomOutput(proof sdr.RegisteredProof, seed uint64) *Output {
	g := &generator{random: rand.NewChaCha8([32]byte{byte(seed)}), shape: shapeOf(proof.Size())}
	out := &Output{RegisteredProof: proof}
	for _, value := range []*[32]byte{&out.CommR, &out.CommD, &out.ReplicaID, &out.Seed, &out.Ticket} {
		g.hash(value)
	}
	out.VanillaProofs = make([][]Proof, proof.Config().PartitionCount())
	for k := range out.VanillaProofs {
		out.VanillaProofs[k] = make([]Proof, g.shape.challenges)
		for i := range out.VanillaProofs[k] {
			g.proof(&out.VanillaProofs[k][i])
		}
	}
	return out
}

type generator struct {
	random *rand.ChaCha8
	shape  shape
}

func (g *generator) hash(value *[32]byte) {
	_, _ = g.random.Read(value[:])
	value[31] &= 0x3f
}

func (g *generator) hashes(n int) [][32]byte {
	values := make([][32]byte, n)
	for i := range values {
		g.hash(&values[i])
	}
	return values
}

func (g *generator) path(length, arity int) []PathElement {
	elements := make([]PathElement, length)
	for i := range elements {
		elements[i] = PathElement{Hashes: g.hashes(arity - 1), Index: g.random.Uint64() % uint64(arity)}
	}
	return elements
}

func (g *generator) merkle(m *MerkleProof) {
	g.hash(&m.Root)
	g.hash(&m.Leaf)
	m.Base, m.Sub, m.Top = g.path(g.shape.base, treeArity), g.path(g.shape.sub, treeArity), g.path(g.shape.top, 2)
}

func (g *generator) label(l *LabelProof) {
	for i := range l.Parents {
		g.hash(&l.Parents[i])
	}
	l.LayerIndex, l.Node = uint32(g.random.Uint64()), g.random.Uint64()
}

func (g *generator) proof(p *Proof) {
	g.hash(&p.CommDProof.Root)
	g.hash(&p.CommDProof.Leaf)
	p.CommDProof.Base = g.path(g.shape.dataPath, 2)
	g.merkle(&p.CommRLastProof)
	for _, column := range allColumns(p) {
		column.Column = Column{Index: uint32(g.random.Uint64()), Rows: g.hashes(g.shape.layers)}
		g.merkle(&column.Inclusion)
	}
	p.LabelingProofs = make([]LabelProof, g.shape.layers)
	for k := range p.LabelingProofs {
		g.label(&p.LabelingProofs[k])
	}
	g.label(&p.EncodingProof)
}
