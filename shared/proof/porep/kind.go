package porep

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// ErrSectorNumber is wrapped when the sector number is missing, or given twice and differently.
var ErrSectorNumber = errors.New("sector number")

// Kind is the proof of replication as a kind of proof; its input is the output of Commit phase 1.
type Kind struct{}

// Name is "porep".
func (Kind) Name() string { return "porep" }

// Circuits are the circuits of all sector sizes.
func (Kind) Circuits() []circuit.Circuit { return Circuits() }

// Open decodes a C1 output, plain or in its envelope, and checks all of it against the claim. Refusals of the input are
// *c1.InputError.
func (Kind) Open(ctx context.Context, r io.Reader, claim circuit.Claim) (circuit.Input, error) {
	decoded, err := c1.Decode(r, 0)
	if err != nil {
		return nil, err
	}
	number, err := sectorNumber(decoded.Envelope, claim.SectorNumber)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("check C1 output: %w", err)
	}
	in := &Input{decoded: decoded, claim: c1.Claim{ProverID: claim.ProverID, SectorNumber: number}}
	if err := c1.Check(decoded.Output, in.claim); err != nil {
		return nil, err
	}
	return in, nil
}

func sectorNumber(envelope *c1.Envelope, claimed *uint64) (uint64, error) {
	switch {
	case envelope == nil && claimed == nil:
		return 0, fmt.Errorf("%w is missing: the input is plain C1 output, which does not hold it", ErrSectorNumber)
	case envelope == nil:
		return *claimed, nil
	case claimed != nil && *claimed != envelope.SectorNumber:
		return 0, fmt.Errorf("%w is %d in the envelope, %d was given beside it",
			ErrSectorNumber, envelope.SectorNumber, *claimed)
	}
	return envelope.SectorNumber, nil
}

// Input is a checked C1 output.
type Input struct {
	decoded *c1.Input
	claim   c1.Claim
}

// Output is the decoded C1 output.
func (in *Input) Output() *c1.Output { return in.decoded.Output }

// SectorNumber is the sector's number, from the envelope or the claim.
func (in *Input) SectorNumber() uint64 { return in.claim.SectorNumber }

// Sector is what a verifier knows of the sector.
func (in *Input) Sector() sdr.Sector {
	out := in.decoded.Output
	return sdr.Sector{
		Config: out.RegisteredProof.Config(), ProverID: in.claim.ProverID, Number: in.claim.SectorNumber,
		Ticket: out.Ticket, Seed: out.Seed, CommR: out.CommR, CommD: out.CommD,
	}
}

// Circuit is the sector size's.
func (in *Input) Circuit() circuit.Circuit { return ForSize(in.decoded.Output.RegisteredProof.Size()) }

// PartitionCount is the number of partitions of the sector's proof family.
func (in *Input) PartitionCount() int {
	return in.decoded.Output.RegisteredProof.Config().PartitionCount()
}

// Slice is one partition's slice.
func (in *Input) Slice(partition int) ([]byte, error) {
	return c1.EncodeSlice(in.decoded.Output, partition)
}

// PublicInputs are one partition's, derived from the sector as a verifier does.
func (in *Input) PublicInputs(partition int) ([]fr.Element, error) {
	sector := in.Sector()
	return sector.PublicInputs(partition)
}

// ForAggregation tells that the family is non-interactive.
func (in *Input) ForAggregation() bool {
	return in.decoded.Output.RegisteredProof.Config().Family == sdr.NonInteractive
}

// Hash identifies the parsed input with its claim.
func (in *Input) Hash() [32]byte { return c1.InputHash(in.decoded.Output, in.claim) }

// Warnings are the unknown keys that were skipped.
func (in *Input) Warnings() []string {
	warnings := in.decoded.Warnings
	if n := in.decoded.WarningsDropped; n > 0 {
		warnings = append(warnings[:len(warnings):len(warnings)], fmt.Sprintf("%d further unknown keys", n))
	}
	return warnings
}
