package verb

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/cli/internal/footprint"
	"github.com/proofrack/proofrack/shared/proof/groth16"
	"github.com/proofrack/proofrack/shared/prover"
)

// outputPartitions is the value of --output that non-interactive inputs need.
const outputPartitions = "partitions"

// developmentNote is what everybody is told who uses development parameters.
const developmentNote = "the parameters are for development: nobody else accepts proofs made with them"

// proveFlags are the flags of prove.
type proveFlags struct {
	job     jobFlags
	store   storeFlags
	out     string
	form    proofForm
	output  string
	workers int
	check   bool
}

// proveResult is what proving took.
type proveResult struct {
	Circuit        string          `json:"circuit"`
	Partitions     int             `json:"partitions"`
	ProofBytes     int             `json:"proof_bytes"`
	Out            string          `json:"out"`
	Development    bool            `json:"development_parameters"`
	ForAggregation bool            `json:"for_aggregation"`
	Checked        bool            `json:"constraints_checked"`
	InputSeconds   float64         `json:"input_seconds"`
	ParamsSeconds  float64         `json:"params_seconds"`
	Stages         stageTimes      `json:"stage_seconds"`
	Seconds        float64         `json:"seconds"`
	Peak           footprint.Usage `json:"peak_rss"`
}

func (r *proveResult) human(w io.Writer) {
	row(w, "proof", "%s: %d bytes, %d partition(s) of %s, verified", r.Out, r.ProofBytes, r.Partitions, r.Circuit)
	if r.ForAggregation {
		row(w, "output", "the partitions' proofs in order, as input for aggregation: no proof the chain takes")
	}
	if r.Checked {
		row(w, "check", "every constraint was satisfied")
	}
	if r.Development {
		row(w, "parameters", "for development: nobody else accepts this proof")
	}
	row(w, "input", "%.2f s to read and check", r.InputSeconds)
	row(w, "parameters", "%.2f s to check", r.ParamsSeconds)
	r.Stages.human(w)
	row(w, "time", "%.2f s", r.Seconds)
	peakRow(w, r.Peak)
}

// human prints the stages of proving.
func (s *stageTimes) human(w io.Writer) {
	row(w, "synthesis", "%.2f s", s.Synthesis)
	row(w, "proving", "%.2f s: quotient %.2f, h %.2f, l %.2f, a %.2f, b_g1 %.2f, b_g2 %.2f",
		s.Quotient+s.H+s.L+s.A+s.B1+s.B2+s.Assemble, s.Quotient, s.H, s.L, s.A, s.B1, s.B2)
	row(w, "verification", "%.3f s", s.Verify)
}

// proveCommand proves a C1 output.
func (a *app) proveCommand() *cobra.Command {
	var flags proveFlags
	c := &cobra.Command{
		Use:   "prove C1 --miner MINER --sector-number NUMBER --params DIR --out FILE",
		Short: "prove a C1 output and verify the proof",
		Long: "prove checks the whole C1 output, proves every partition, verifies the proofs, and writes them one after\n" +
			"another: 192 bytes per partition. Nothing is written unless all verify.",
		Args: oneArg("the C1 output", sampleHint),
		RunE: func(c *cobra.Command, args []string) error { return a.prove(c, args[0], &flags) },
	}
	flags.job.register(c)
	flags.store.registerParams(c)
	flags.store.registerCache(c)
	c.Flags().StringVar(&flags.out, "out", "", "file for the proof")
	flags.form.register(c)
	c.Flags().StringVar(&flags.output, "output", "",
		`"partitions": give a non-interactive sector's partition proofs, as input for aggregation`)
	c.Flags().IntVar(&flags.workers, "workers", runtime.GOMAXPROCS(0), "cores to use")
	c.Flags().BoolVar(&flags.check, "check", false, "also check every constraint with plain field arithmetic (slow)")
	return c
}

// prove runs the verb.
func (a *app) prove(c *cobra.Command, path string, flags *proveFlags) error {
	if err := required(c, "params", "out"); err != nil {
		return err
	}
	if flags.workers < 1 {
		return misuse("--workers is %d: at least 1", flags.workers)
	}
	if flags.output != "" && flags.output != outputPartitions {
		return misuse("--output is %q: it may only be %q", flags.output, outputPartitions)
	}
	o, err := a.createOutput(flags.out) // before the work, so that a wrong path doesn't waste it
	if err != nil {
		return err
	}
	defer o.Close()
	watch := footprint.Start()
	result, proof, err := a.proveInput(c, path, flags)
	peak := watch.Stop()
	if err != nil {
		return err
	}
	result.Peak = peak
	if _, err := o.Write(flags.form.write(proof)); err != nil {
		return fmt.Errorf("write %q: %w", flags.out, reason(err))
	}
	if err := o.commit(); err != nil {
		return err
	}
	return a.emit(result, flags.out == "-")
}

// proveInput reads, checks, proves and verifies.
func (a *app) proveInput(c *cobra.Command, path string, flags *proveFlags) (*proveResult, []byte, error) {
	start := time.Now()
	input, err := a.readJob(c, path, &flags.job)
	if err != nil {
		return nil, nil, err
	}
	if input.ForAggregation() && flags.output != outputPartitions {
		return nil, nil, fail(usage, "give --output partitions to get the partitions' proofs as input for aggregation",
			"the chain takes non-interactive proofs only aggregated, and there is no aggregator yet")
	}
	if flags.output == outputPartitions && !input.ForAggregation() {
		return nil, nil, misuse("--output partitions is for non-interactive proofs only; this proof needs no aggregation")
	}
	result := &proveResult{Out: flags.out, ForAggregation: input.ForAggregation(), Checked: flags.check}
	work, err := cut(input)
	if err != nil {
		return nil, nil, err
	}
	input = nil // its memory is larger than all slices
	result.InputSeconds = seconds(time.Since(start))
	params, err := a.provingParams(c, work, flags, result)
	if err != nil {
		return nil, nil, err
	}
	defer params.SRS.Close()
	meter := a.startMeter("proving")
	defer meter.stop()
	run := &provingRun{
		work: work, params: *params, workers: flags.workers, check: flags.check, stage: meter.proving(len(work.slices)),
	}
	proof, err := run.prove(c.Context())
	if err != nil {
		return nil, nil, err
	}
	result.Circuit, result.Partitions, result.ProofBytes = work.circuit.ID(), len(work.slices), len(proof)
	result.Stages, result.Seconds = run.times, seconds(time.Since(start))
	return result, proof, nil
}

// provingParams opens everything that is kept per circuit.
func (a *app) provingParams(c *cobra.Command, work *partitions, f *proveFlags, r *proveResult) (*prover.Params, error) {
	start := time.Now()
	known, err := a.artifactOf(c.Context(), work.circuit, &f.store)
	if err != nil {
		return nil, err
	}
	params, err := a.openParams(c.Context(), work.circuit, known, &f.store)
	if err != nil {
		return nil, err
	}
	if params.Development {
		a.warn("%s", developmentNote)
	}
	r.Development, r.ParamsSeconds = params.Development, seconds(time.Since(start))
	return &prover.Params{SRS: params, Artifact: known}, nil
}

// proving shows the stages of all partitions as one bar.
func (m *meter) proving(count int) func(partition int, name string) {
	order := []string{
		"synthesis", string(groth16.StageQuotient), string(groth16.StageH), string(groth16.StageL), string(groth16.StageA),
		string(groth16.StageB1), string(groth16.StageB2), string(groth16.StageAssemble),
	}
	return func(partition int, name string) {
		for i, stage := range order {
			if stage == name {
				m.set(int64(partition*len(order)+i), int64(count*len(order)))
				m.say(fmt.Sprintf("partition %d of %d: %s", partition+1, count, name))
			}
		}
	}
}
