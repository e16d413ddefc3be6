package verb

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"slices"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/cli/internal/footprint"
	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/sdr"
	"github.com/proofrack/proofrack/shared/proof/seal"
	"github.com/proofrack/proofrack/shared/proof/sparse"
	"github.com/proofrack/proofrack/shared/proof/testsystem"
)

// benchRunsMax bounds --runs.
const benchRunsMax = 1000

// benchCommand measures synthesis at production size; its subcommands measure one thing each.
func (a *app) benchCommand() *cobra.Command {
	synth := a.benchSynthCommand()
	c := &cobra.Command{
		Use:   "bench",
		Short: "measure synthesis and proving (without a subcommand: synth)",
		Args:  a.unknownVerb,
		RunE: func(c *cobra.Command, args []string) error {
			synth.SetContext(c.Context())
			return synth.RunE(synth, args)
		},
	}
	c.AddCommand(synth, a.benchCircuitsCommand(), a.benchProveCommand(), a.benchUnitCommand())
	return c
}

// runsFlag adds --runs and --workers to a command.
func runsFlag(c *cobra.Command, runs, workers *int, runCount, workerCount int) {
	c.Flags().IntVar(runs, "runs", runCount, "how often to measure, in one process")
	c.Flags().IntVar(workers, "workers", workerCount, "cores to use")
}

// checkRuns refuses numbers that make no sense.
func checkRuns(runs, workers int) error {
	if runs < 1 || runs > benchRunsMax {
		return misuse("--runs is %d: from 1 to %d", runs, benchRunsMax)
	}
	if workers < 1 {
		return misuse("--workers is %d: at least 1", workers)
	}
	return nil
}

// machine says where figures come from.
type machine struct {
	Cores     int    `json:"cores"`
	Processor string `json:"processor"`
	Go        string `json:"go"`
}

func (m machine) human(w io.Writer) {
	row(w, "machine", "%d core(s), %s, %s", m.Cores, m.Processor, m.Go)
}

// thisMachine describes the machine.
func thisMachine() machine {
	return machine{Cores: runtime.GOMAXPROCS(0), Processor: processorName(), Go: runtime.Version()}
}

// benchSynthResult is the cost of synthesizing one partition several times into the same segment.
type benchSynthResult struct {
	Machine      machine         `json:"machine"`
	Circuit      string          `json:"circuit"`
	Partition    int             `json:"partition"`
	Constraints  int             `json:"constraints"`
	Aux          int             `json:"aux"`
	Workers      int             `json:"workers"`
	SegmentBytes int             `json:"segment_bytes"`
	ABytes       int             `json:"a_bytes"`
	BBytes       int             `json:"b_bytes"`
	AuxBytes     int             `json:"aux_bytes"`
	Cold         float64         `json:"cold_seconds"`
	Warm         []float64       `json:"warm_seconds"`
	Best         float64         `json:"best_ns_per_constraint"`
	Peak         footprint.Usage `json:"peak_rss"`
}

func (r *benchSynthResult) human(w io.Writer) {
	r.Machine.human(w)
	row(w, "circuit", "%s, partition %d, %s constraints", r.Circuit, r.Partition, countText(r.Constraints))
	row(w, "segment", "%s (%d bytes)", byteText(int64(r.SegmentBytes)), r.SegmentBytes)
	vector := func(name string, bytes, values int) {
		row(w, name, "%s, %.2f bits a value", byteText(int64(bytes)), float64(bytes)*8/float64(values))
	}
	vector("  a", r.ABytes, r.Constraints)
	vector("  b", r.BBytes, r.Constraints)
	vector("  aux", r.AuxBytes, r.Aux)
	row(w, "cold", "%.3f s on %d core(s), fresh memory", r.Cold, r.Workers)
	for _, s := range r.Warm {
		row(w, "warm", "%.3f s, the same segment again", s)
	}
	row(w, "best", "%.2f ns a constraint", r.Best)
	peakRow(w, r.Peak)
}

// benchSynthCommand measures synthesis of one partition of a sparse sector.
func (a *app) benchSynthCommand() *cobra.Command {
	size := sizeFlag{size: sdr.Size32GiB}
	var partition, runs, workers int
	c := &cobra.Command{
		Use:   "synth",
		Short: "synthesize a partition of a sparse sector again and again: cold, then warm",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkRuns(runs, workers); err != nil {
				return err
			}
			work, err := sparseSynthesis(c.Context(), size.size, partition, workers)
			if err != nil {
				return err
			}
			result, err := work.benchmark(c.Context(), runs)
			if err != nil {
				return err
			}
			return a.emit(result, false)
		},
	}
	c.Flags().Var(&size, "sector", "sector size")
	c.Flags().IntVar(&partition, "partition", 0, "which partition, from 0")
	runsFlag(c, &runs, &workers, 3, runtime.GOMAXPROCS(0))
	return c
}

// sparseOutput makes the C1 output of a sparse sector for measurements.
func sparseOutput(ctx context.Context, size sdr.SectorSize) (*c1.Output, error) {
	proof, err := sdr.FindRegisteredProof(size, sdr.APIVersion1_1, sdr.Interactive)
	if err != nil {
		return nil, err
	}
	request := seal.NewRequest(proof.Config(), 1000, 4243, "bench")
	out, err := sparse.Make(ctx, &request)
	if err != nil {
		return nil, fmt.Errorf("make sparse sector: %w", err)
	}
	return out, nil
}

// sparseSynthesis prepares one partition of a sparse sector.
func sparseSynthesis(ctx context.Context, size sdr.SectorSize, partition, workers int) (*synthesis, error) {
	out, err := sparseOutput(ctx, size)
	if err != nil {
		return nil, err
	}
	slice := func(k int) ([]byte, error) { return c1.EncodeSlice(out, k) }
	return newSynthesis(porep.ForSize(size), len(out.VanillaProofs), slice, partition, workers)
}

// benchmark synthesizes several times into the same memory. What making the input has cost is given back before.
func (s *synthesis) benchmark(ctx context.Context, runs int) (*benchSynthResult, error) {
	debug.FreeOSMemory()
	watch := footprint.Start()
	var times []float64
	for range runs {
		run, _, err := s.measure(ctx)
		if err != nil {
			watch.Stop()
			return nil, err
		}
		times = append(times, run.Seconds)
	}
	peak := watch.Stop()
	totals := s.layout.Counts()
	a, b, aux := s.layout.VectorBytes()
	return &benchSynthResult{
		Machine: thisMachine(), Circuit: s.job.Circuit.ID(), Partition: s.job.Partition, Constraints: totals.Rows,
		Aux: totals.Aux, Workers: s.job.Workers, SegmentBytes: s.layout.Bytes(), ABytes: a, BBytes: b, AuxBytes: aux,
		Cold: times[0], Warm: times[1:], Best: slices.Min(times) * 1e9 / float64(totals.Rows), Peak: peak,
	}, nil
}

// benchSystem is one row of the table over circuits.
type benchSystem struct {
	Name        string  `json:"name"`
	What        string  `json:"what"`
	Constraints int     `json:"constraints"`
	Seconds     float64 `json:"best_seconds"`
	Each        float64 `json:"ns_per_constraint"`
	OffMean     float64 `json:"off_mean"`
}

// benchCircuitsResult is synthesis time per constraint over circuits of different sizes.
type benchCircuitsResult struct {
	Machine machine       `json:"machine"`
	Workers int           `json:"workers"`
	Runs    int           `json:"runs"`
	Systems []benchSystem `json:"systems"`
	Mean    float64       `json:"mean_ns_per_constraint"`
	Spread  float64       `json:"largest_off_mean"`
}

func (r *benchCircuitsResult) human(w io.Writer) {
	r.Machine.human(w)
	fmt.Fprintf(w, "\n| system | what | constraints | best of %d, s | ns a constraint | off the mean |\n", r.Runs)
	fmt.Fprintln(w, "|---|---|---|---|---|---|")
	for _, s := range r.Systems {
		fmt.Fprintf(w, "| %s | %s | %s | %.4f | %.2f | %+.1f %% |\n", s.Name, s.What, countText(s.Constraints), s.Seconds,
			s.Each, 100*s.OffMean)
	}
	fmt.Fprintf(w, "\nmean %.2f ns a constraint on %d core(s), largest deviation %.1f %%\n",
		r.Mean, r.Workers, 100*r.Spread)
}

// measuredSystem is one of the specification's test systems.
type measuredSystem struct{ name, what string }

// measuredSystems are the rows of the table.
func measuredSystems() []measuredSystem {
	return []measuredSystem{
		{"F18", "8 nodes, one challenge"}, {"F23", "2KiB"}, {"F24", "8MiB"}, {"F25", "512MiB"},
		{"F21", "32GiB, one challenge"},
	}
}

// benchCircuitsCommand measures synthesis per constraint over circuits.
func (a *app) benchCircuitsCommand() *cobra.Command {
	var runs, workers int
	c := &cobra.Command{
		Use:   "circuits",
		Short: "synthesis time per constraint over circuits of different sizes",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := checkRuns(runs, workers); err != nil {
				return err
			}
			result := &benchCircuitsResult{Machine: thisMachine(), Workers: workers, Runs: runs}
			meter := a.startMeter("measuring")
			defer meter.stop()
			systems := measuredSystems()
			for i, system := range systems {
				measured, err := system.measure(c.Context(), runs, workers)
				if err != nil {
					return fmt.Errorf("measure %s: %w", system.name, err)
				}
				result.Systems = append(result.Systems, *measured)
				meter.set(int64(i+1), int64(len(systems)))
			}
			meter.stop()
			result.compare()
			return a.emit(result, false)
		},
	}
	runsFlag(c, &runs, &workers, 7, 1)
	return c
}

// measure takes the best of several warm runs. Time does not depend on values, so the witness has none.
func (m *measuredSystem) measure(ctx context.Context, runs, workers int) (*benchSystem, error) {
	system, err := testsystem.Find(m.name)
	if err != nil {
		return nil, err
	}
	known, ok := system.Circuit().(*porep.Circuit)
	if !ok {
		return nil, fmt.Errorf("test system %s is no circuit of porep", m.name)
	}
	layout, err := compact.LayoutOf(known)
	if err != nil {
		return nil, err
	}
	work := &synthesis{
		job:    compact.Job{Circuit: known, Witness: known.Blank(), Workers: workers},
		layout: layout, memory: layout.Memory(),
	}
	result, err := work.benchmark(ctx, runs+1)
	if err != nil {
		return nil, err
	}
	best := slices.Min(result.Warm)
	return &benchSystem{
		Name: m.name, What: m.what, Constraints: result.Constraints, Seconds: best,
		Each: best * 1e9 / float64(result.Constraints),
	}, nil
}

// compare fills in the mean and the deviations from it.
func (r *benchCircuitsResult) compare() {
	for _, s := range r.Systems {
		r.Mean += s.Each / float64(len(r.Systems))
	}
	for i := range r.Systems {
		s := &r.Systems[i]
		s.OffMean = s.Each/r.Mean - 1
		r.Spread = max(r.Spread, s.OffMean, -s.OffMean)
	}
}
