package sdr

import (
	"errors"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

const (
	inputsShared       = 3
	inputsPerChallenge = 1 + Degree + 3
)

// ErrZeroCommitment says that comm_r or comm_d is all zero.
var ErrZeroCommitment = errors.New("all-zero commitment")

// Sector is everything the public inputs of a sector's proofs follow from.
type Sector struct {
	Config Config
	// ProverID is the payload of the miner's ID address, see the function ProverID.
	ProverID [32]byte
	// Number is the sector number.
	Number uint64
	// Ticket and Seed are opaque randomness.
	Ticket, Seed [32]byte
	// CommR and CommD are canonical and not zero.
	CommR, CommD [32]byte
}

// Validate refuses an invalid configuration and commitments that are zero or not canonical.
func (s *Sector) Validate() error {
	if err := s.Config.Validate(); err != nil {
		return fmt.Errorf("check configuration of sector %d: %w", s.Number, err)
	}
	for _, commitment := range []struct {
		name  string
		value *[32]byte
	}{{"comm_r", &s.CommR}, {"comm_d", &s.CommD}} {
		if *commitment.value == [32]byte{} {
			return fmt.Errorf("check %s of sector %d: %w", commitment.name, s.Number, ErrZeroCommitment)
		}
		if _, err := Element(commitment.value); err != nil {
			return fmt.Errorf("check %s of sector %d: %w", commitment.name, s.Number, err)
		}
	}
	return nil
}

// ReplicaID is the sector's replica id.
func (s *Sector) ReplicaID() [32]byte {
	return ReplicaID(&s.ProverID, s.Number, &s.Ticket, &s.CommD, &s.Config.PoRepID)
}

// Challenges gives the challenges of one partition; see Config.Challenges.
func (s *Sector) Challenges(partition int) []uint64 {
	from := ChallengeSeed{ReplicaID: s.ReplicaID(), CommR: s.CommR, Seed: s.Seed}
	return s.Config.Challenges(partition, &from)
}

// PublicInputs gives the public inputs of one partition in order, without the leading ONE (c2-formats.md 2.3): replica
// id, comm_d, comm_r, and per challenge its node, its 14 parents, and its node three times. It panics when the
// partition is not below the configuration's PartitionCount.
func (s *Sector) PublicInputs(partition int) ([]fr.Element, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	return s.publicInputs(s.Config.Graph(), partition)
}

// AllPublicInputs gives the public inputs of every partition in order.
func (s *Sector) AllPublicInputs() ([][]fr.Element, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	graph := s.Config.Graph()
	all := make([][]fr.Element, s.Config.PartitionCount())
	for partition := range all {
		inputs, err := s.publicInputs(graph, partition)
		if err != nil {
			return nil, err
		}
		all[partition] = inputs
	}
	return all, nil
}

// publicInputs does the work for one partition of a valid sector.
func (s *Sector) publicInputs(graph *Graph, partition int) ([]fr.Element, error) {
	inputs := make([]fr.Element, inputsShared, s.Config.InputCount())
	replicaID := s.ReplicaID()
	for i, value := range []*[32]byte{&replicaID, &s.CommD, &s.CommR} {
		element, err := Element(value)
		if err != nil {
			return nil, fmt.Errorf("read commitments of sector %d: %w", s.Number, err)
		}
		inputs[i] = element
	}
	var parents Parents
	for _, challenge := range s.Challenges(partition) {
		graph.Parents(challenge, &parents)
		node := fr.NewElement(challenge)
		inputs = append(inputs, node)
		for _, parent := range parents {
			inputs = append(inputs, fr.NewElement(uint64(parent)))
		}
		inputs = append(inputs, node, node, node)
	}
	return inputs, nil
}
