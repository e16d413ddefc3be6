package verb

import (
	"errors"
	"io"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/cli/internal/footprint"
	"github.com/proofrack/proofrack/shared/proof/porep"
	"github.com/proofrack/proofrack/shared/proof/srs"
	"github.com/proofrack/proofrack/shared/proof/srs/generate"
)

// seedBytesMax bounds --seed of params generate.
const seedBytesMax = 4096

// generateFlags are the flags of params generate.
type generateFlags struct {
	size    sizeFlag
	seed    string
	out     string
	workers int
	replace bool
}

// generateResult is what was generated.
type generateResult struct {
	Circuit string          `json:"circuit"`
	Params  string          `json:"params"`
	Key     string          `json:"vk"`
	Bytes   int64           `json:"bytes"`
	Counts  srs.Counts      `json:"counts"`
	Digest  string          `json:"digest"`
	Seconds float64         `json:"seconds"`
	Peak    footprint.Usage `json:"peak_rss"`
}

func (r *generateResult) human(w io.Writer) {
	row(w, "circuit", "%s", r.Circuit)
	row(w, "parameters", "%s", r.Params)
	row(w, "verifying key", "%s", r.Key)
	row(w, "size", "%d bytes (%s)", r.Bytes, byteText(r.Bytes))
	row(w, "points", "%s", r.Counts)
	row(w, "digest", "%s", r.Digest)
	row(w, "origin", "development: whoever knows the seed can forge proofs under this key")
	row(w, "time", "%.1f s", r.Seconds)
	peakRow(w, r.Peak)
}

// paramsGenerateCommand makes development parameters.
func (a *app) paramsGenerateCommand() *cobra.Command {
	var flags generateFlags
	c := &cobra.Command{
		Use:   "generate --sector SIZE --seed TEXT --out DIR",
		Short: "make development parameters from a seed, under the published names",
		Args:  noArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return a.generate(c, &flags) },
	}
	c.Flags().Var(&flags.size, "sector", "sector size, such as 2KiB")
	c.Flags().StringVar(&flags.seed, "seed", "", "text that decides the parameters")
	c.Flags().StringVar(&flags.out, "out", "", "folder for the files; made if absent")
	c.Flags().IntVar(&flags.workers, "workers", runtime.GOMAXPROCS(0), "cores to use")
	c.Flags().BoolVar(&flags.replace, "replace", false, "overwrite development parameters that are there")
	return c
}

// generate runs the verb.
func (a *app) generate(c *cobra.Command, flags *generateFlags) error {
	if err := required(c, "sector", "seed", "out"); err != nil {
		return err
	}
	if flags.seed == "" || len(flags.seed) > seedBytesMax {
		return misuse("--seed has %d bytes: 1 to %d", len(flags.seed), seedBytesMax)
	}
	if flags.workers < 1 {
		return misuse("--workers is %d: at least 1", flags.workers)
	}
	undo, err := makeFolder(flags.out)
	if err != nil {
		return err
	}
	circuit := porep.ForSize(flags.size.size)
	meter := a.startMeter("generating")
	defer meter.stop()
	watch := footprint.Start()
	start := time.Now()
	scalars := generate.FromSeed(flags.seed, circuit.ID())
	files, err := generate.ToFolder(c.Context(), flags.out, circuit, scalars, generate.Options{
		Workers:    flags.workers,
		SectorSize: uint64(flags.size.size),
		Replace:    flags.replace,
		Progress:   meter.stages(),
	})
	peak := watch.Stop()
	meter.stop()
	if err != nil {
		undo()
		return generateFailure(err)
	}
	return a.emit(&generateResult{
		Circuit: circuit.ID(), Params: files.ParamsPath, Key: files.KeyPath, Bytes: files.Counts.ParamsBytes(),
		Counts: files.Counts, Digest: files.Digest, Seconds: seconds(time.Since(start)), Peak: peak,
	}, false)
}

// generateFailure gives errors of a generation their kind.
func generateFailure(err error) error {
	switch {
	case errors.Is(err, generate.ErrExists):
		return fail(usage, "name another folder, or give --replace to overwrite development parameters", "%w", err)
	case errors.Is(err, generate.ErrSpace):
		return fail(noRoom, "free some space or name another folder", "%w", err)
	}
	return err
}

// stages shows the stages of a generation as one bar, each of equal width.
func (m *meter) stages() func(generate.Stage, int64, int64) {
	const width = 1000
	all := generate.Stages()
	return func(stage generate.Stage, done, total int64) {
		if total > 0 {
			m.set(int64(slices.Index(all, stage))*width+done*width/total, int64(len(all))*width)
		}
	}
}
