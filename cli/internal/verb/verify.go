package verb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// proofBytesMax bounds a proof file: far above 126 partitions.
const proofBytesMax = 1 << 20

// proofHint says how to come by a proof.
const proofHint = `"proofrack prove" makes one`

// verifyFlags are the flags of verify.
type verifyFlags struct {
	job   jobFlags
	store storeFlags
	c1    string
	info  string
}

// verifyResult says that a proof verifies.
type verifyResult struct {
	Verified    bool    `json:"verified"`
	Circuit     string  `json:"circuit"`
	Partitions  int     `json:"partitions"`
	KeyDigest   string  `json:"vk_digest"`
	Development bool    `json:"development_parameters"`
	CommRCID    string  `json:"comm_r_cid,omitempty"`
	CommDCID    string  `json:"comm_d_cid,omitempty"`
	Seconds     float64 `json:"seconds"`
}

func (r *verifyResult) human(w io.Writer) {
	row(w, "verified", "%d partition(s) of %s", r.Partitions, r.Circuit)
	row(w, "comm_r", "%s", r.CommRCID)
	row(w, "comm_d", "%s", r.CommDCID)
	row(w, "key", "%s", r.KeyDigest)
	if r.Development {
		row(w, "parameters", "for development: nobody else accepts this proof")
	}
	row(w, "time", "%.3f s", r.Seconds)
}

// verifyCommand verifies a proof.
func (a *app) verifyCommand() *cobra.Command {
	var flags verifyFlags
	c := &cobra.Command{
		Use: "verify PROOF --sector-info sector.json --params DIR\n" +
			"  proofrack verify PROOF --c1 C1 --miner MINER --sector-number NUMBER --params DIR",
		Short: "verify a proof; of the parameters only the .vk file is needed",
		Long: "verify reads a proof as raw bytes, in hex or in base64. Of sector.json it takes commitments in hex and as\n" +
			"CIDs, and registered_proof by name and by number.",
		Args: oneArg("the proof", proofHint),
		RunE: func(c *cobra.Command, args []string) error { return a.verify(c, args[0], &flags) },
	}
	flags.job.register(c)
	flags.store.registerParams(c)
	flags.store.registerCache(c)
	c.Flags().StringVar(&flags.c1, "c1", "", "C1 output that the proof was made from")
	c.Flags().StringVar(&flags.info, "sector-info", "", "sector.json in place of the C1 output")
	return c
}

// verify runs the verb.
func (a *app) verify(c *cobra.Command, path string, flags *verifyFlags) error {
	if err := required(c, "params"); err != nil {
		return err
	}
	if c.Flags().Changed("c1") == c.Flags().Changed("sector-info") {
		return fail(usage, helpHint(c), "give either --c1 or --sector-info")
	}
	start := time.Now()
	content, err := a.readAll(path, "proof", proofHint, proofBytesMax)
	if err != nil {
		return err
	}
	proof := readProof(content)
	sector, inputs, err := a.inputsToVerify(c, flags)
	if err != nil {
		return err
	}
	result, err := a.verifyProof(c.Context(), porep.ForSize(sector.Config.Size), inputs, proof, &flags.store)
	if err != nil {
		return err
	}
	result.CommRCID, result.CommDCID = sdr.ReplicaCommitment.CID(sector.CommR), sdr.DataCommitment.CID(sector.CommD)
	result.Seconds = seconds(time.Since(start))
	return a.emit(result, false)
}

// verifyProof verifies proof bytes under the key in the parameters' folder.
func (a *app) verifyProof(
	ctx context.Context, walked circuit.Circuit, inputs [][]fr.Element, proof []byte, store *storeFlags,
) (*verifyResult, error) {
	key, err := a.openKey(ctx, walked, store)
	if err != nil {
		return nil, err
	}
	prepared, err := groth16.Prepare(key.VerifyingKey)
	if err != nil {
		return nil, err
	}
	err = verifyBytes(prepared, inputs, proof)
	if errors.Is(err, groth16.ErrInvalid) {
		return nil, fail(notVerified, "proof, sector and key do not belong together, or one is damaged", "%w", err)
	}
	if err != nil {
		return nil, err
	}
	if key.Development {
		a.warn("%s", developmentNote)
	}
	return &verifyResult{
		Verified: true, Circuit: walked.ID(), Partitions: len(inputs), KeyDigest: key.Digest, Development: key.Development,
	}, nil
}

// inputsToVerify gives the sector of the C1 output or the description, and the public inputs that follow from it.
func (a *app) inputsToVerify(c *cobra.Command, flags *verifyFlags) (*sdr.Sector, [][]fr.Element, error) {
	if c.Flags().Changed("sector-info") {
		sector, err := a.readSectorInfo(flags.info)
		if err != nil {
			return nil, nil, err
		}
		inputs, err := sector.AllPublicInputs()
		if err != nil {
			return nil, nil, fmt.Errorf("compute public inputs: %w", err)
		}
		return sector, inputs, nil
	}
	input, err := a.readJob(c, flags.c1, &flags.job)
	if err != nil {
		return nil, nil, err
	}
	replica, ok := input.(*porep.Input)
	if !ok {
		return nil, nil, fail(badInput, "", "the input of %s describes no sector", input.Circuit().ID())
	}
	inputs, err := publicInputs(input)
	if err != nil {
		return nil, nil, err
	}
	sector := replica.Sector()
	return &sector, inputs, nil
}
