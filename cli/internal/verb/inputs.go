package verb

import (
	"fmt"
	"io"

	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/spf13/cobra"
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
			var all [][]string
			var err error
			if c.Flags().Changed("sector-info") {
				all, err = a.describedInputs(info)
			} else {
				all, err = a.provenInputs(c, args[0], &flags)
			}
			if err != nil {
				return err
			}
			return a.emit(&inputsResult{Partitions: all}, false)
		},
	}
	flags.register(c)
	c.Flags().StringVar(&info, "sector-info", "", "sector.json in place of a C1 output")
	return c
}

// describedInputs derives public inputs from a sector description.
func (a *app) describedInputs(path string) ([][]string, error) {
	sector, err := a.readSectorInfo(path)
	if err != nil {
		return nil, err
	}
	partitions, err := sector.AllPublicInputs()
	if err != nil {
		return nil, fmt.Errorf("compute public inputs: %w", err)
	}
	return hexInputs(partitions), nil
}

// provenInputs derives public inputs from a C1 output, which is checked whole.
func (a *app) provenInputs(c *cobra.Command, path string, flags *jobFlags) ([][]string, error) {
	input, err := a.readJob(c, path, flags)
	if err != nil {
		return nil, err
	}
	partitions, err := publicInputs(input)
	if err != nil {
		return nil, err
	}
	return hexInputs(partitions), nil
}

// hexInputs writes the inputs of all partitions as big-endian hex numbers.
func hexInputs(partitions [][]fr.Element) [][]string {
	texts := make([][]string, len(partitions))
	for k, values := range partitions {
		texts[k] = make([]string, len(values))
		for i := range values {
			texts[k][i] = fmt.Sprintf("%x", values[i].Bytes())
		}
	}
	return texts
}
