package seal

import (
	"context"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/poseidon"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// Seal makes a sector and gives its Commit-Phase-1 output. It uses all processors where it can; labels of one layer
// depend on each other. progress may be nil. It fails for invalid or too large requests and when ctx ends.
func Seal(ctx context.Context, request *Request, progress Progress) (*c1.Output, error) {
	if err := request.validate(); err != nil {
		return nil, err
	}
	config := request.Config
	nodes := config.Size.Nodes()
	m := &meter{total: nodes*uint64(config.Size.LayerCount()+4) - 1, report: progress}
	data, err := newDataTree(ctx, m, request.data())
	if err != nil {
		return nil, err
	}
	output := &c1.Output{
		RegisteredProof: config.RegisteredProof(), CommD: data.root(), Seed: request.Seed, Ticket: request.Ticket,
	}
	output.ReplicaID = sdr.ReplicaID(&request.ProverID, request.Sector, &request.Ticket, &output.CommD, &config.PoRepID)
	s := &sealed{config: config, graph: config.Graph().Tabulated(), data: data}
	if err := s.label(ctx, m, &output.ReplicaID); err != nil {
		return nil, err
	}
	if err := s.commit(ctx, m); err != nil {
		return nil, err
	}
	commR := sdr.CommR(s.columns.root(), s.replica.root())
	output.CommR = sdr.Bytes(&commR)

	from := sdr.ChallengeSeed{ReplicaID: output.ReplicaID, CommR: output.CommR, Seed: output.Seed}
	for partition := range config.PartitionCount() {
		proofs := Prove(s, s.graph, config.Challenges(partition, &from))
		output.VanillaProofs = append(output.VanillaProofs, proofs)
	}
	return output, nil
}

// sealed is a sector with its labels and trees; it opens them.
type sealed struct {
	config sdr.Config
	graph  *sdr.Graph
	data   dataTree
	// layers holds the labels, layer 1 first.
	layers           [][][32]byte
	columns, replica *nodeTree
}

// label computes all layers.
func (s *sealed) label(ctx context.Context, m *meter, replicaID *[32]byte) error {
	var below [][32]byte
	for layer := range s.config.Size.LayerCount() {
		labels := make([][32]byte, s.graph.Nodes())
		counted := 0
		sdr.LabelLayer(s.graph, replicaID, uint32(layer+1), below, labels, func(done int) bool {
			m.add(done - counted)
			counted = done
			return ctx.Err() == nil
		})
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("label layer %d: %w", layer+1, err)
		}
		m.add(len(labels) - counted)
		s.layers = append(s.layers, labels)
		below = labels
	}
	return nil
}

// commit hashes the columns, encodes the data and builds both Poseidon trees.
func (s *sealed) commit(ctx context.Context, m *meter) error {
	nodes := int(s.config.Size.Nodes())
	hashes, replica := make([]fr.Element, nodes), make([]fr.Element, nodes)
	last := s.layers[len(s.layers)-1]
	err := inChunks(ctx, m, nodes, 1, func(from, to int) {
		rows := make([]fr.Element, 0, len(s.layers)*(to-from))
		for node := from; node < to; node++ {
			for _, layer := range s.layers {
				rows = append(rows, element(&layer[node]))
			}
			key, value := element(&last[node]), element(&s.data[0][node])
			replica[node].Add(&key, &value)
		}
		poseidon.HashMany(hashes[from:to], rows, len(s.layers))
	})
	if err != nil {
		return err
	}
	if s.columns, err = newNodeTree(ctx, m, s.config.Size, hashes); err != nil {
		return err
	}
	s.replica, err = newNodeTree(ctx, m, s.config.Size, replica)
	return err
}

// DataProof implements Opener.
func (s *sealed) DataProof(node uint64) c1.MerkleProof { return s.data.proof(node) }

// ReplicaProof implements Opener.
func (s *sealed) ReplicaProof(node uint64) c1.MerkleProof { return s.replica.proof(node) }

// ColumnProof implements Opener.
func (s *sealed) ColumnProof(node uint64) c1.ColumnProof {
	column := c1.Column{Index: uint32(node)}
	for _, layer := range s.layers {
		column.Rows = append(column.Rows, layer[node])
	}
	return c1.ColumnProof{Column: column, Inclusion: s.columns.proof(node)}
}

// element reads a label or data node, which is canonical because its top bits are clear.
func element(value *[32]byte) fr.Element {
	e, err := sdr.Element(value)
	if err != nil {
		panic(fmt.Sprintf("seal: %v", err))
	}
	return e
}
