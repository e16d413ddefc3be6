package verb

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/r1cs"
	"github.com/proofrack/proofrack/shared/proof/sdr"
)

// circuitCommand holds the verbs about circuits.
func (a *app) circuitCommand() *cobra.Command {
	return a.group("circuit", "sizes and identity of circuits", a.circuitInfoCommand(), a.circuitDigestCommand())
}

// circuitInfo is what is known of a circuit without walking it.
type circuitInfo struct {
	ID           string         `json:"id"`
	ParamsName   string         `json:"params_name"`
	Constraints  int            `json:"constraints"`
	Inputs       int            `json:"inputs"`
	Aux          int            `json:"aux"`
	RowsTotal    int            `json:"rows_total"`
	DomainBits   int            `json:"domain_bits"`
	FullA        int            `json:"full_a"`
	FullB        int            `json:"full_b"`
	FullAux      int            `json:"full_aux"`
	SegmentBytes int            `json:"segment_bytes"`
	Partitions   map[string]int `json:"partitions"`
	Challenges   int            `json:"challenges_per_partition"`
}

func (r *circuitInfo) human(w io.Writer) {
	row(w, "circuit", "%s", r.ID)
	row(w, "parameters", "%s.params, .vk", r.ParamsName)
	row(w, "constraints", "%s (with input rows %s, domain 2^%d)",
		countText(r.Constraints), countText(r.RowsTotal), r.DomainBits)
	row(w, "inputs", "%s, ONE included", countText(r.Inputs))
	row(w, "aux", "%s", countText(r.Aux))
	row(w, "full elements", "a %s, b %s, aux %s", countText(r.FullA), countText(r.FullB), countText(r.FullAux))
	row(w, "segment", "%s", byteText(int64(r.SegmentBytes)))
	row(w, "partitions", "%d (non-interactive %d), %d challenges each",
		r.Partitions[sdr.Interactive.String()], r.Partitions[sdr.NonInteractive.String()], r.Challenges)
}

// circuitInfoCommand prints a circuit's sizes.
func (a *app) circuitInfoCommand() *cobra.Command {
	var size sizeFlag
	c := &cobra.Command{
		Use:   "info --sector SIZE",
		Short: "print the sizes of a circuit and the name of its parameters",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := required(c, "sector"); err != nil {
				return err
			}
			info, err := describeCircuit(size.size)
			if err != nil {
				return err
			}
			return a.emit(info, false)
		},
	}
	c.Flags().Var(&size, "sector", "sector size, such as 32GiB")
	return c
}

// describeCircuit collects the facts of one sector size.
func describeCircuit(size sdr.SectorSize) (*circuitInfo, error) {
	circuit := porep.ForSize(size)
	layout, err := compact.LayoutOf(circuit)
	if err != nil {
		return nil, fmt.Errorf("lay out segments of %s: %w", circuit.ID(), err)
	}
	totals := layout.Counts()
	info := &circuitInfo{
		ID: circuit.ID(), ParamsName: circuit.ParamsName(),
		Constraints: totals.Rows, Inputs: totals.Inputs, Aux: totals.Aux,
		RowsTotal: totals.RowsTotal(), DomainBits: totals.DomainBits(),
		FullA: totals.FullA, FullB: totals.FullB, FullAux: totals.FullAux,
		SegmentBytes: layout.Bytes(), Partitions: map[string]int{},
	}
	for _, family := range []sdr.Family{sdr.Interactive, sdr.Synthetic, sdr.NonInteractive} {
		config := sdr.Config{Size: size, Version: sdr.APIVersion1_2, Family: family}
		info.Partitions[family.String()] = config.PartitionCount()
		info.Challenges = config.ChallengesPerPartition()
	}
	return info, nil
}

// digestResult is a constraint system's identity.
type digestResult struct {
	ID          string  `json:"id"`
	Constraints int     `json:"constraints"`
	Inputs      int     `json:"inputs"`
	Aux         int     `json:"aux"`
	Digest      string  `json:"digest"`
	Seconds     float64 `json:"seconds"`
}

func (r *digestResult) human(w io.Writer) {
	row(w, "system", "%s", r.ID)
	row(w, "constraints", "%s", countText(r.Constraints))
	row(w, "inputs", "%s, ONE included", countText(r.Inputs))
	row(w, "aux", "%s", countText(r.Aux))
	row(w, "digest", "%s", r.Digest)
	row(w, "time", "%.2f s", r.Seconds)
}

// circuitDigestCommand computes a constraint-system hash.
func (a *app) circuitDigestCommand() *cobra.Command {
	var size sizeFlag
	var name string
	c := &cobra.Command{
		Use:   "digest --sector SIZE | digest --fixture F1…F27",
		Short: "compute the canonical constraint-system hash of a circuit or of one of the specification's test systems",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			bySize, byName := c.Flags().Changed("sector"), c.Flags().Changed("fixture")
			if bySize == byName {
				return fail(usage, helpHint(c), "give either --sector or --fixture")
			}
			if bySize {
				return a.digestCircuit(c, porep.ForSize(size.size))
			}
			return a.digestFixture(c, strings.ToUpper(name))
		},
	}
	c.Flags().Var(&size, "sector", "sector size, such as 32GiB")
	c.Flags().StringVar(&name, "fixture", "", "test system of the circuit specification, section 6.3: F1 to F27")
	return c
}

// digestCircuit hashes a circuit section by section, in constant memory.
func (a *app) digestCircuit(c *cobra.Command, walked circuit.Circuit) error {
	start := time.Now()
	totals := circuit.Totals(walked)
	digest := r1cs.NewDigest(totals)
	meter := a.startMeter("hashing")
	defer meter.stop()
	sections := len(walked.Sections()) - 1
	for section := range sections {
		if err := c.Context().Err(); err != nil {
			return err
		}
		walked.Describe(section, digest)
		meter.set(int64(section+1), int64(sections))
	}
	meter.stop()
	return a.emit(digestOf(walked.ID(), totals, digest, start), false)
}

// digestOf makes the result of a finished digest.
func digestOf(id string, totals r1cs.Position, digest *r1cs.Digest, start time.Time) *digestResult {
	return &digestResult{
		ID: id, Constraints: totals.Rows, Inputs: totals.Inputs, Aux: totals.Aux, Digest: digest.Hex(),
		Seconds: seconds(time.Since(start)),
	}
}
