package sparse

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/poseidon"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/seal"
)

// ErrFamily says that a proof family's challenges depend on comm_r.
var ErrFamily = errors.New("only interactive proofs can be sparse")

// Make gives the Commit-Phase-1 output of a sparse sector, any valid size, interactive only. The same request gives
// the same output everywhere; request.DataSeed decides data, free labels and free tree nodes. At 32 GiB it takes a
// second or two and 50 MB. It fails for invalid requests and other families, and when ctx ends.
func Make(ctx context.Context, request *seal.Request) (*c1.Output, error) {
	config := request.Config
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("make sparse sector %d: %w", request.Sector, err)
	}
	if config.Family != sdr.Interactive {
		return nil, fmt.Errorf("make sparse sector %d with %s proof: %w", request.Sector, config.Family, ErrFamily)
	}
	random := source(request.DataSeed)
	s := &sector{config: config, graph: config.Graph(), random: &random, data: newDataTree(config.Size, &random)}
	output := &c1.Output{
		RegisteredProof: config.RegisteredProof(), CommD: s.data.root(), Seed: request.Seed, Ticket: request.Ticket,
	}
	output.ReplicaID = sdr.ReplicaID(&request.ProverID, request.Sector, &request.Ticket, &output.CommD, &config.PoRepID)

	from := sdr.ChallengeSeed{ReplicaID: output.ReplicaID, Seed: output.Seed}
	challenges := make([][]uint64, config.PartitionCount())
	for partition := range challenges {
		challenges[partition] = config.Challenges(partition, &from)
	}
	s.open(slices.Concat(challenges...))
	s.label(&output.ReplicaID)
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("make sparse sector %d: %w", request.Sector, err)
	}
	s.commit()
	commC, commRLast := s.columns.root(), s.replica.root()
	commR := sdr.CommR(&commC, &commRLast)
	output.CommR = sdr.Bytes(&commR)
	for _, partition := range challenges {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("make sparse sector %d: %w", request.Sector, err)
		}
		output.VanillaProofs = append(output.VanillaProofs, seal.Prove(s, s.graph, partition))
	}
	return output, nil
}

// sector holds what the challenges open.
type sector struct {
	config sdr.Config
	graph  *sdr.Graph
	random *source
	data   dataTree
	// challenged are the challenged nodes in ascending order, each once, with their parents.
	challenged []uint64
	parents    map[uint64]*sdr.Parents
	// rows holds the labels of all opened nodes, layer 1 first.
	rows             map[uint64][][32]byte
	columns, replica *nodeTree
}

// open finds the nodes that the challenges open: themselves and their parents.
func (s *sector) open(challenges []uint64) {
	s.challenged = slices.Clone(challenges)
	slices.Sort(s.challenged)
	s.challenged = slices.Compact(s.challenged)
	s.parents = make(map[uint64]*sdr.Parents, len(s.challenged))
	s.rows = make(map[uint64][][32]byte, len(s.challenged)*(sdr.Degree+1))
	layers := s.config.Size.LayerCount()
	for _, challenge := range s.challenged {
		parents := new(sdr.Parents)
		s.graph.Parents(challenge, parents)
		s.parents[challenge] = parents
		s.rows[challenge] = make([][32]byte, layers)
		for _, parent := range parents {
			s.rows[uint64(parent)] = make([][32]byte, layers)
		}
	}
}

// label fills the rows: first those of nodes that no challenge asks about, which are free, then the challenged nodes',
// layer by layer and ascending, so that whatever a label hashes is there before it.
func (s *sector) label(replicaID *[32]byte) {
	labeler := sdr.NewLabeler(replicaID)
	for node, rows := range s.rows {
		if s.parents[node] != nil {
			continue
		}
		for layer := range rows {
			if node == 0 {
				rows[layer] = labeler.Label(uint32(layer+1), 0)
			} else {
				rows[layer] = s.random.value("label", uint64(layer+1), node)
			}
		}
	}
	labels := make([][32]byte, 0, sdr.Degree)
	for layer := range s.config.Size.LayerCount() {
		for _, node := range s.challenged {
			labels = labels[:0]
			for _, parent := range s.parents[node].DRG() {
				labels = append(labels, s.rows[uint64(parent)][layer])
			}
			if layer > 0 {
				for _, parent := range s.parents[node].Exp() {
					labels = append(labels, s.rows[uint64(parent)][layer-1])
				}
			}
			s.rows[node][layer] = labeler.Label(uint32(layer+1), node, labels)
		}
	}
}

// commit hashes the opened columns, encodes the challenged nodes and builds the trees above them.
func (s *sector) commit() {
	size := s.config.Size
	layers := size.LayerCount()
	nodes := slices.Sorted(maps.Keys(s.rows))
	inputs := make([]fr.Element, 0, len(nodes)*layers)
	for _, node := range nodes {
		for layer := range layers {
			inputs = append(inputs, element(&s.rows[node][layer]))
		}
	}
	hashes := make([]fr.Element, len(nodes))
	poseidon.HashMany(hashes, inputs, layers)
	columns := make(map[uint64]fr.Element, len(nodes))
	for i, node := range nodes {
		columns[node] = hashes[i]
	}
	replica := make(map[uint64]fr.Element, len(s.challenged))
	for _, node := range s.challenged {
		value := s.data.node(0, node)
		key, data := element(&s.rows[node][layers-1]), element(&value)
		key.Add(&key, &data)
		replica[node] = key
	}
	s.columns = newNodeTree(size, "tree-c", s.random, columns)
	s.replica = newNodeTree(size, "tree-r-last", s.random, replica)
}

// DataProof implements seal.Opener.
func (s *sector) DataProof(node uint64) c1.MerkleProof { return s.data.proof(node) }

// ReplicaProof implements seal.Opener.
func (s *sector) ReplicaProof(node uint64) c1.MerkleProof { return s.replica.proof(node) }

// ColumnProof implements seal.Opener. The rows are shared between the proofs that open the node.
func (s *sector) ColumnProof(node uint64) c1.ColumnProof {
	return c1.ColumnProof{
		Column: c1.Column{Index: uint32(node), Rows: s.rows[node]}, Inclusion: s.columns.proof(node),
	}
}

// element reads a label or data node, which is canonical because its top bits are clear.
func element(value *[32]byte) fr.Element {
	e, err := sdr.Element(value)
	if err != nil {
		panic(fmt.Sprintf("sparse: %v", err))
	}
	return e
}
