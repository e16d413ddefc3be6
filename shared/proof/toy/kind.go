package toy

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"golang.org/x/crypto/blake2b"

	"github.com/proofrack/proofrack/shared/circuit"
)

// Kind is the toy as a kind of proof, or its other circuit. Its input is one or more slices, one after another: a
// partition each.
type Kind struct{ Other bool }

// ErrSectorNumber says that the claim lacks the sector number, which the input does not hold.
var ErrSectorNumber = errors.New("sector number is missing")

// partitionsMax bounds an input.
const partitionsMax = 16

// Name is that of the circuit: "toy" or "toy-other".
func (k Kind) Name() string { return k.circuit().ID() }

// Circuits is the one circuit.
func (k Kind) Circuits() []circuit.Circuit { return []circuit.Circuit{k.circuit()} }

func (k Kind) circuit() circuit.Circuit {
	if k.Other {
		return Other()
	}
	return Circuit()
}

// Open reads slices to the end of r.
func (k Kind) Open(_ context.Context, r io.Reader, claim circuit.Claim) (circuit.Input, error) {
	data, err := io.ReadAll(io.LimitReader(r, partitionsMax*sliceBytes+1))
	if err != nil {
		return nil, fmt.Errorf("read toy input: %w", err)
	}
	if len(data) == 0 || len(data)%sliceBytes != 0 || len(data) > partitionsMax*sliceBytes {
		return nil, fmt.Errorf("%w: %d bytes are not 1…%d slices of %d", ErrSlice, len(data), partitionsMax, sliceBytes)
	}
	if claim.SectorNumber == nil {
		return nil, ErrSectorNumber
	}
	hashed := append(data[:len(data):len(data)], claim.ProverID[:]...)
	in := &input{
		hash:   blake2b.Sum256(binary.LittleEndian.AppendUint64(hashed, *claim.SectorNumber)),
		number: *claim.SectorNumber, circuit: k.circuit(),
	}
	for ; len(data) > 0; data = data[sliceBytes:] {
		w, err := in.circuit.Decode(data[:sliceBytes])
		if err != nil {
			return nil, err
		}
		in.slices, in.witnesses = append(in.slices, data[:sliceBytes]), append(in.witnesses, w)
	}
	return in, nil
}

type input struct {
	circuit   circuit.Circuit
	slices    [][]byte
	witnesses []circuit.Witness
	hash      [32]byte
	number    uint64
}

func (in *input) Circuit() circuit.Circuit            { return in.circuit }
func (in *input) PartitionCount() int                 { return len(in.slices) }
func (in *input) Slice(partition int) ([]byte, error) { return in.slices[partition], nil }
func (in *input) SectorNumber() uint64                { return in.number }
func (in *input) ForAggregation() bool                { return false }
func (in *input) Hash() [32]byte                      { return in.hash }
func (in *input) Warnings() []string                  { return nil }

func (in *input) PublicInputs(partition int) ([]fr.Element, error) {
	return in.witnesses[partition].PublicInputs(), nil
}
