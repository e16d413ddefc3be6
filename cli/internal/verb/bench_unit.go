package verb

import (
	"context"
	"fmt"
	"io"
	"runtime/debug"
	"slices"
	"time"

	"github.com/consensys/gnark-crypto/ecc"
	bls12381 "github.com/consensys/gnark-crypto/ecc/bls12-381"
	"github.com/consensys/gnark-crypto/ecc/bls12-381/fr"
	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/shared/proof/msm"
)

const (
	// unitPoints is the length of the sum that is the unit of comparison between machines.
	unitPoints = 1 << 20
	// unitRuns is how many of them the median is taken of.
	unitRuns = 5
	// rustUnits is what the Rust prover takes for an 8 MiB partition, in units: 45.6 s where a unit took 2.67 s.
	rustUnits = 17.1
)

// unitResult is the yardstick by which figures of different machines are compared.
type unitResult struct {
	Machine machine   `json:"machine"`
	Points  int       `json:"points"`
	Runs    []float64 `json:"seconds"`
	Unit    float64   `json:"unit_seconds"`
	Rust    float64   `json:"rust_8mib_seconds_estimated"`
}

func (r *unitResult) human(w io.Writer) {
	r.Machine.human(w)
	row(w, "unit", "%.3f s: median of %d stock MultiExp of %s random scalars", r.Unit, len(r.Runs), countText(r.Points))
	row(w, "Rust prover", "about %.1f s for an 8 MiB partition on this machine (%.1f units)", r.Rust, rustUnits)
}

// benchUnitCommand measures the yardstick.
func (a *app) benchUnitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "unit",
		Short: "measure the yardstick: a stock multi-exponentiation of 2^20 random scalars",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			result, err := measureUnit(c.Context(), unitPoints, unitRuns)
			if err != nil {
				return err
			}
			return a.emit(result, false)
		},
	}
}

// measureUnit takes the median over several sums of the library as it is. The last sum is checked against ours.
func measureUnit(ctx context.Context, points, runs int) (*unitResult, error) {
	scalars := make([]fr.Element, points)
	for i := range scalars {
		scalars[i].MustSetRandom()
	}
	_, _, generator, _ := bls12381.Generators()
	table, err := msm.NewFixedBaseG1(ctx, generator, msm.Config{ScalarCount: points})
	if err != nil {
		return nil, fmt.Errorf("make table of multiples: %w", err)
	}
	bases, err := table.Multiply(ctx, scalars)
	if err != nil {
		return nil, fmt.Errorf("make points: %w", err)
	}
	result := &unitResult{Machine: thisMachine(), Points: points}
	var sum bls12381.G1Affine
	for range runs {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		start := time.Now()
		if _, err := sum.MultiExp(bases, scalars, ecc.MultiExpConfig{}); err != nil {
			return nil, fmt.Errorf("stock multi-exponentiation: %w", err)
		}
		result.Runs = append(result.Runs, seconds(time.Since(start)))
	}
	ours, err := msm.G1(ctx, msm.AffineG1(bases), scalars, msm.Config{})
	if err != nil {
		return nil, fmt.Errorf("own multi-exponentiation: %w", err)
	}
	if !ours.Equal(&sum) {
		return nil, fmt.Errorf("own and stock multi-exponentiation differ: %v, %v", ours, sum)
	}
	sorted := slices.Sorted(slices.Values(result.Runs))
	result.Unit = sorted[len(sorted)/2]
	result.Rust = result.Unit * rustUnits
	debug.FreeOSMemory()
	return result, nil
}
