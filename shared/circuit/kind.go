package circuit

import (
	"context"
	"io"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
)

// Kind is one kind of proof that clients ask for. It knows how its input is read, checked and cut into partitions.
type Kind interface {
	// Name is a stable short name, e.g. "porep".
	Name() string
	// Circuits are the circuits of this kind.
	Circuits() []Circuit
	// Open reads one input to its end and checks all of it against the claim.
	Open(ctx context.Context, r io.Reader, claim Claim) (Input, error)
}

// Claim is what travels beside an input: whose sector it is.
type Claim struct {
	// ProverID is the payload of the miner's ID address, left-aligned (spec c2-formats.md 2.1).
	ProverID [32]byte
	// SectorNumber is the sector's number. It is nil when the input must bring it itself.
	SectorNumber *uint64
}

// Input is one checked input.
type Input interface {
	// Circuit is what each partition is proved with.
	Circuit() Circuit
	// PartitionCount is how many proofs the input needs.
	PartitionCount() int
	// Slice is what one partition's synthesis needs, as Circuit().Decode reads it.
	Slice(partition int) ([]byte, error)
	// PublicInputs are one partition's public inputs, as a verifier derives them without the input's secret part.
	PublicInputs(partition int) ([]fr.Element, error)
	// SectorNumber is the sector's number, from the input or the claim.
	SectorNumber() uint64
	// ForAggregation tells that the chain takes the proofs only aggregated.
	ForAggregation() bool
	// Hash identifies the parsed input with its claim, whatever the order of fields was.
	Hash() [32]byte
	// Warnings are what was ignored, one line each.
	Warnings() []string
}
