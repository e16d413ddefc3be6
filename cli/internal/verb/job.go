package verb

import (
	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// jobFlags say whose sector a C1 output is.
type jobFlags struct {
	miner  minerFlag
	number sectorNumberFlag
}

// register adds the flags to a command.
func (f *jobFlags) register(c *cobra.Command) {
	c.Flags().Var(&f.miner, "miner", "miner actor: 1000, f01000 or t01000")
	c.Flags().Var(&f.number, "sector-number", "number of the sector; an L2 envelope brings its own")
}

// job is a checked C1 output with its claim.
type job struct {
	out    *c1.Output
	claim  c1.Claim
	sector *sdr.Sector
}

// readC1 decodes a C1 output and prints its warnings.
func (a *app) readC1(path string) (*c1.Input, error) {
	s, err := a.openInput(path, "C1 output", sampleHint)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	input, err := c1.Decode(s, 0)
	if err != nil {
		return nil, err
	}
	for _, w := range input.Warnings {
		a.warn("%s", w)
	}
	if input.WarningsDropped > 0 {
		a.warn("%d more unknown keys were skipped", input.WarningsDropped)
	}
	return input, nil
}

// readJob decodes a C1 output and checks all of it against the claimed miner and sector.
func (a *app) readJob(c *cobra.Command, path string, f *jobFlags) (*job, error) {
	if !f.miner.set {
		return nil, fail(usage, "give the miner's actor id, such as --miner f01000", "--miner is missing")
	}
	input, err := a.readC1(path)
	if err != nil {
		return nil, err
	}
	number, err := sectorNumber(input, f)
	if err != nil {
		return nil, err
	}
	j := &job{out: input.Output, claim: c1.Claim{ProverID: sdr.ProverID(f.miner.id), SectorNumber: number}}
	if err := c1.Check(j.out, j.claim); err != nil {
		return nil, err
	}
	if err := c.Context().Err(); err != nil {
		return nil, err
	}
	j.sector = &sdr.Sector{
		Config: j.out.RegisteredProof.Config(), ProverID: j.claim.ProverID, Number: number,
		Ticket: j.out.Ticket, Seed: j.out.Seed, CommR: j.out.CommR, CommD: j.out.CommD,
	}
	return j, nil
}

// sectorNumber takes the number from the flag or the envelope; they must not differ.
func sectorNumber(input *c1.Input, f *jobFlags) (uint64, error) {
	switch {
	case input.Envelope == nil && !f.number.set:
		return 0, fail(usage, "this C1 output has no envelope that brings it", "--sector-number is missing")
	case input.Envelope == nil:
		return f.number.number, nil
	case f.number.set && f.number.number != input.Envelope.SectorNumber:
		return 0, fail(badInput, "leave --sector-number out, or correct it",
			"--sector-number is %d, but the envelope says %d", f.number.number, input.Envelope.SectorNumber)
	}
	return input.Envelope.SectorNumber, nil
}
