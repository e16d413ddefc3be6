package verb

import (
	"errors"
	"fmt"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// jobFlags say whose sector an input is.
type jobFlags struct {
	miner  minerFlag
	number sectorNumberFlag
}

// register adds the flags to a command.
func (f *jobFlags) register(c *cobra.Command) {
	c.Flags().Var(&f.miner, "miner", "miner actor: 1000, f01000 or t01000")
	c.Flags().Var(&f.number, "sector-number", "number of the sector; an L2 envelope brings its own")
}

// readJob decodes an input and checks all of it against the claimed miner and sector. Warnings are printed.
func (a *app) readJob(c *cobra.Command, path string, f *jobFlags) (circuit.Input, error) {
	if !f.miner.set {
		return nil, fail(usage, "give the miner's actor id, such as --miner f01000", "--miner is missing")
	}
	s, err := a.openInput(path, "C1 output", sampleHint)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	claim := circuit.Claim{ProverID: sdr.ProverID(f.miner.id)}
	if f.number.set {
		claim.SectorNumber = &f.number.number
	}
	input, err := catalog.Kinds()[0].Open(c.Context(), s, claim)
	if errors.Is(err, porep.ErrSectorNumber) {
		return nil, fail(usage, "give the right --sector-number; an envelope brings its own", "%w", err)
	}
	if err != nil {
		return nil, err
	}
	for _, w := range input.Warnings() {
		a.warn("%s", w)
	}
	return input, nil
}

// publicInputs derives those of all partitions of an input.
func publicInputs(input circuit.Input) ([][]fr.Element, error) {
	all := make([][]fr.Element, input.PartitionCount())
	for k := range all {
		values, err := input.PublicInputs(k)
		if err != nil {
			return nil, fmt.Errorf("compute public inputs of partition %d: %w", k, err)
		}
		all[k] = values
	}
	return all, nil
}
