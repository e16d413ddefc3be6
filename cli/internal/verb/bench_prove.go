package verb

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/cli/internal/footprint"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/prover"
)

// benchProveRun is one proof from C1 text to verified bytes.
type benchProveRun struct {
	Input   float64         `json:"input_seconds"`
	Stages  stageTimes      `json:"stage_seconds"`
	Seconds float64         `json:"seconds"`
	Peak    footprint.Usage `json:"peak_rss"`
}

// benchProveResult is the cost of proving a sector's first partitions.
type benchProveResult struct {
	Machine    machine         `json:"machine"`
	Circuit    string          `json:"circuit"`
	Partitions int             `json:"partitions"`
	Workers    int             `json:"workers"`
	Params     float64         `json:"params_seconds"`
	Runs       []benchProveRun `json:"runs"`
	Median     float64         `json:"median_seconds"`
	Unit       *unitResult     `json:"unit,omitempty"`
	Units      float64         `json:"median_units,omitempty"`
	OfRust     float64         `json:"fraction_of_rust,omitempty"`
}

func (r *benchProveResult) human(w io.Writer) {
	r.Machine.human(w)
	row(w, "circuit", "%s, %d partition(s), %d core(s)", r.Circuit, r.Partitions, r.Workers)
	row(w, "parameters", "%.2f s to check, once", r.Params)
	for i, run := range r.Runs {
		row(w, fmt.Sprintf("run %d", i+1), "%.2f s from C1 text to verified bytes; input %.2f s", run.Seconds, run.Input)
		run.Stages.human(w)
		peakRow(w, run.Peak)
	}
	row(w, "median", "%.2f s", r.Median)
	if r.Unit != nil {
		row(w, "unit", "%.3f s (stock MultiExp of %s); the proof took %.2f units",
			r.Unit.Unit, countText(r.Unit.Points), r.Units)
	}
	if r.OfRust > 0 {
		row(w, "Rust prover", "takes %.1f units: this is %.3f of it", rustUnits, r.OfRust)
	}
}

// benchProveFlags are the flags of bench prove.
type benchProveFlags struct {
	store         storeFlags
	size          sizeFlag
	runs, workers int
	unit          bool
}

// benchProveCommand measures proving.
func (a *app) benchProveCommand() *cobra.Command {
	flags := benchProveFlags{size: sizeFlag{size: sdr.Size8MiB}}
	c := &cobra.Command{
		Use:   "prove --params DIR",
		Short: "prove one partition from C1 text to verified bytes: stage times, memory, units",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := required(c, "params"); err != nil {
				return err
			}
			if err := checkRuns(flags.runs, flags.workers); err != nil {
				return err
			}
			result, err := a.benchProve(c.Context(), &flags)
			if err != nil {
				return err
			}
			return a.emit(result, false)
		},
	}
	flags.store.registerParams(c)
	flags.store.registerCache(c)
	c.Flags().Var(&flags.size, "sector", "sector size")
	c.Flags().BoolVar(&flags.unit, "unit", true, "also measure the yardstick, after the runs")
	runsFlag(c, &flags.runs, &flags.workers, 3, runtime.GOMAXPROCS(0))
	return c
}

// benchProve measures several proofs of a sparse sector's first partition.
func (a *app) benchProve(ctx context.Context, flags *benchProveFlags) (*benchProveResult, error) {
	out, err := sparseOutput(ctx, flags.size.size)
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	if err := c1.WriteJSON(&text, out); err != nil {
		return nil, fmt.Errorf("write C1 output: %w", err)
	}
	first, err := openBenchInput(ctx, text.Bytes())
	if err != nil {
		return nil, err
	}
	start := time.Now()
	known, err := a.artifactOf(ctx, first.Circuit(), &flags.store)
	if err != nil {
		return nil, err
	}
	params, err := a.openParams(ctx, first.Circuit(), known, &flags.store)
	if err != nil {
		return nil, err
	}
	defer params.Close()
	result := &benchProveResult{
		Machine: thisMachine(), Circuit: first.Circuit().ID(), Partitions: 1, Workers: flags.workers,
		Params: seconds(time.Since(start)),
	}
	var times []float64
	for range flags.runs {
		debug.FreeOSMemory()
		run, err := benchProof(ctx, text.Bytes(), prover.Params{SRS: params, Artifact: known}, flags.workers)
		if err != nil {
			return nil, err
		}
		result.Runs, times = append(result.Runs, *run), append(times, run.Seconds)
	}
	slices.Sort(times)
	result.Median = times[len(times)/2]
	if flags.unit {
		err = result.compare(ctx, flags.size.size)
	}
	return result, err
}

// compare expresses the median in units and, where the Rust prover was measured, as a fraction of its time.
func (r *benchProveResult) compare(ctx context.Context, size sdr.SectorSize) error {
	unit, err := measureUnit(ctx, unitPoints, unitRuns)
	if err != nil {
		return err
	}
	r.Unit, r.Units = unit, r.Median/unit.Unit
	if size == sdr.Size8MiB {
		r.OfRust = r.Units / rustUnits
	}
	return nil
}

// openBenchInput checks the text of a sparse sector's C1 output.
func openBenchInput(ctx context.Context, text []byte) (circuit.Input, error) {
	number := uint64(4243)
	claim := circuit.Claim{ProverID: sdr.ProverID(1000), SectorNumber: &number}
	return catalog.Kinds()[0].Open(ctx, bytes.NewReader(text), claim)
}

// benchProof takes the first partition from C1 text to verified bytes.
func benchProof(ctx context.Context, text []byte, params prover.Params, workers int) (*benchProveRun, error) {
	watch := footprint.Start()
	start := time.Now()
	result, err := func() (*benchProveRun, error) {
		input, err := openBenchInput(ctx, text)
		if err != nil {
			return nil, err
		}
		work, err := cut(input)
		if err != nil {
			return nil, err
		}
		work.slices, work.inputs = work.slices[:1], work.inputs[:1]
		result := &benchProveRun{Input: seconds(time.Since(start))}
		run := &provingRun{work: work, params: params, workers: workers, stage: func(int, string) {}}
		if _, err := run.prove(ctx); err != nil {
			return nil, err
		}
		result.Stages = run.times
		return result, nil
	}()
	peak := watch.Stop()
	if err != nil {
		return nil, err
	}
	result.Seconds, result.Peak = seconds(time.Since(start)), peak
	return result, nil
}
