package verb

import (
	"fmt"
	"io"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// inputsResult is the public inputs of all partitions, without the leading ONE.
type inputsResult struct {
	Partitions [][]string `json:"partitions"`
}

func (r *inputsResult) human(w io.Writer) {
	for partition, values := range r.Partitions {
		for _, value := range values {
			fmt.Fprintf(w, "%d %s\n", partition, value)
		}
	}
}

// inputsCommand prints public inputs.
func (a *app) inputsCommand() *cobra.Command {
	var flags jobFlags
	var info string
	c := &cobra.Command{
		Use:   "inputs C1 --miner MINER --sector-number NUMBER | inputs --sector-info sector.json",
		Short: "print the public inputs: partition, then a big-endian hex number, a line each",
		Args: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("sector-info") {
				return noArgs(c, args)
			}
			return oneArg("the C1 output", sampleHint)(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error {
			sector, err := a.readSector(c, args, info, &flags)
			if err != nil {
				return err
			}
			all, err := sector.AllPublicInputs()
			if err != nil {
				return fmt.Errorf("compute public inputs: %w", err)
			}
			return a.emit(&inputsResult{Partitions: hexInputs(all)}, false)
		},
	}
	flags.register(c)
	c.Flags().StringVar(&info, "sector-info", "", "sector.json in place of a C1 output")
	return c
}

// readSector takes the sector from a description, or else from a C1 output that is checked whole.
func (a *app) readSector(c *cobra.Command, args []string, info string, flags *jobFlags) (*sdr.Sector, error) {
	if c.Flags().Changed("sector-info") {
		return a.readSectorInfo(info)
	}
	j, err := a.readJob(c, args[0], flags)
	if err != nil {
		return nil, err
	}
	return j.sector, nil
}

// hexInputs writes field elements as big-endian hex numbers.
func hexInputs(all [][]fr.Element) [][]string {
	texts := make([][]string, len(all))
	for partition, values := range all {
		for i := range values {
			texts[partition] = append(texts[partition], fmt.Sprintf("%x", values[i].Bytes()))
		}
	}
	return texts
}
