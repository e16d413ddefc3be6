package verb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/cli/internal/footprint"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/proof/c1"
	"github.com/proofrack/proofrack/shared/proof/compact"
	"github.com/proofrack/proofrack/shared/proof/porep"
)

// synthResult is what one partition's synthesis took.
type synthResult struct {
	Circuit      string          `json:"circuit"`
	Partition    int             `json:"partition"`
	Constraints  int             `json:"constraints"`
	SegmentBytes int             `json:"segment_bytes"`
	ABytes       int             `json:"a_bytes"`
	BBytes       int             `json:"b_bytes"`
	AuxBytes     int             `json:"aux_bytes"`
	Workers      int             `json:"workers"`
	Seconds      float64         `json:"synthesis_seconds"`
	CheckSeconds float64         `json:"check_seconds,omitempty"`
	Checked      bool            `json:"checked"`
	Peak         footprint.Usage `json:"peak_rss"`
	Out          string          `json:"out,omitempty"`
}

func (r *synthResult) human(w io.Writer) {
	row(w, "circuit", "%s, partition %d, %s constraints", r.Circuit, r.Partition, countText(r.Constraints))
	row(w, "synthesis", "%.3f s on %d core(s)", r.Seconds, r.Workers)
	row(w, "segment", "%s: a %s, b %s, aux %s", byteText(int64(r.SegmentBytes)), byteText(int64(r.ABytes)),
		byteText(int64(r.BBytes)), byteText(int64(r.AuxBytes)))
	if r.Checked {
		row(w, "check", "every constraint is satisfied (%.1f s)", r.CheckSeconds)
	}
	peakRow(w, r.Peak)
	if r.Out != "" {
		row(w, "written", "%s", r.Out)
	}
}

// synthFlags are the flags of synth.
type synthFlags struct {
	job       jobFlags
	partition int
	workers   int
	out       string
	check     bool
}

// synthCommand synthesizes one partition.
func (a *app) synthCommand() *cobra.Command {
	var flags synthFlags
	c := &cobra.Command{
		Use:   "synth C1 --partition K",
		Short: "compute one partition's assignment and evaluations in compact form",
		Long: "synth computes one partition's compact vectors and says what that took. With --miner the vanilla proof is\n" +
			"checked as a whole before, as prove does; without, only its form.",
		Args: oneArg("the C1 output", sampleHint),
		RunE: func(c *cobra.Command, args []string) error { return a.synth(c, args[0], &flags) },
	}
	flags.job.register(c)
	c.Flags().IntVar(&flags.partition, "partition", 0, "which partition, from 0")
	c.Flags().IntVar(&flags.workers, "workers", runtime.GOMAXPROCS(0), "cores to use")
	c.Flags().StringVar(&flags.out, "out", "", "file for the segment")
	c.Flags().BoolVar(&flags.check, "check", false, "then check every constraint with plain field arithmetic (slow)")
	return c
}

// synth runs the verb.
func (a *app) synth(c *cobra.Command, path string, flags *synthFlags) error {
	if flags.workers < 1 {
		return misuse("--workers is %d: at least 1", flags.workers)
	}
	work, err := a.prepareSynthesis(c, path, flags)
	if err != nil {
		return err
	}
	runtime.GC() // so that the decoded text does not count as synthesis's memory
	result, segment, err := work.measure(c.Context())
	if err != nil {
		return err
	}
	if flags.check {
		start := time.Now()
		if err := segment.Check(work.job.Circuit, flags.workers); err != nil {
			return fmt.Errorf("check partition %d: %w", flags.partition, err)
		}
		result.Checked, result.CheckSeconds = true, seconds(time.Since(start))
	}
	if flags.out != "" {
		write := func(w io.Writer) error {
			_, err := w.Write(work.memory)
			return err
		}
		if err := a.writeOutput(flags.out, write); err != nil {
			return err
		}
		result.Out = flags.out
	}
	return a.emit(result, flags.out == "-")
}

// prepareSynthesis reads a C1 output, checks its meaning if the claim is there, and makes everything ready.
func (a *app) prepareSynthesis(c *cobra.Command, path string, flags *synthFlags) (*synthesis, error) {
	if flags.job.miner.set {
		input, err := a.readJob(c, path, &flags.job)
		if err != nil {
			return nil, err
		}
		return newSynthesis(input.Circuit(), input.PartitionCount(), input.Slice, flags.partition, flags.workers)
	}
	if flags.job.number.set {
		return nil, fail(usage, "give both, or neither for a check of form only", "--sector-number without --miner")
	}
	s, err := a.openInput(path, "C1 output", sampleHint)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	input, err := c1.Decode(s, 0)
	if err != nil {
		return nil, err
	}
	slice := func(partition int) ([]byte, error) { return c1.EncodeSlice(input.Output, partition) }
	circuit := porep.ForSize(input.Output.RegisteredProof.Size())
	return newSynthesis(circuit, len(input.Output.VanillaProofs), slice, flags.partition, flags.workers)
}

// synthesis is one partition ready to be synthesized into its own memory.
type synthesis struct {
	job    compact.Job
	layout *compact.Layout
	memory []byte
}

// newSynthesis cuts the slice of a partition and makes memory for its segment.
func newSynthesis(
	c circuit.Circuit, count int, cut func(partition int) ([]byte, error), partition, workers int,
) (*synthesis, error) {
	return newSynthesisIn(nil, c, count, cut, partition, workers)
}

// newSynthesisIn is newSynthesis with the memory of an earlier segment of the same circuit; nil makes new memory.
func newSynthesisIn(
	memory []byte, c circuit.Circuit, count int, cut func(partition int) ([]byte, error), partition, workers int,
) (*synthesis, error) {
	if partition < 0 || partition >= count {
		return nil, misuse("--partition is %d: this input has partitions 0 to %d", partition, count-1)
	}
	slice, err := cut(partition)
	if err != nil {
		return nil, err
	}
	witness, err := c.Decode(slice)
	if err != nil {
		return nil, fmt.Errorf("decode slice %d: %w", partition, err)
	}
	layout, err := compact.LayoutOf(c)
	if err != nil {
		return nil, fmt.Errorf("lay out segment of %s: %w", c.ID(), err)
	}
	if memory == nil {
		memory = layout.Memory()
	}
	return &synthesis{
		job:    compact.Job{Circuit: c, Witness: witness, Partition: partition, Workers: workers},
		layout: layout,
		memory: memory,
	}, nil
}

// measure synthesizes into the memory and says what that took.
func (s *synthesis) measure(ctx context.Context) (*synthResult, *compact.Segment, error) {
	watch := footprint.Start()
	start := time.Now()
	segment, err := s.job.Synthesize(ctx, s.memory)
	elapsed := time.Since(start)
	peak := watch.Stop()
	if err != nil {
		if errors.Is(err, context.Canceled) {
			return nil, nil, context.Canceled
		}
		return nil, nil, fmt.Errorf("synthesize partition %d: %w", s.job.Partition, err)
	}
	a, b, aux := s.layout.VectorBytes()
	return &synthResult{
		Circuit: s.job.Circuit.ID(), Partition: s.job.Partition, Constraints: s.layout.Counts().Rows,
		SegmentBytes: s.layout.Bytes(), ABytes: a, BBytes: b, AuxBytes: aux, Workers: s.job.Workers,
		Seconds: seconds(elapsed), Peak: peak,
	}, segment, nil
}
