package verb

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/coordinator/plan"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/ledger"
)

// planProfileFlags are the flags of plan profile.
type planProfileFlags struct {
	synth, prove      string
	kind              string
	device, finish    float64
	srs, engine, vram string
	partitions        int
}

// synthScratchBytes is what a synthesis worker books beside the segment by default.
const synthScratchBytes = 96 * bytesize.MiB

func (a *app) planProfileCommand() *cobra.Command {
	var flags planProfileFlags
	c := &cobra.Command{
		Use:   "profile --synth FILE",
		Short: "make a profile from measurements of this machine (bench --json)",
		Long: "profile reads what \"proofrack bench synth --json\" and, for a CPU as device, \"proofrack bench prove --json\"\n" +
			"printed, and prints a profile for \"plan --profile\". For a card, --device-seconds gives its time.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := required(c, "synth"); err != nil {
				return err
			}
			if c.Flags().Changed("prove") == c.Flags().Changed("device-seconds") {
				return fail(usage, helpHint(c), "give either --prove or --device-seconds: how long the device is taken")
			}
			record, err := a.profileOf(&flags)
			if err != nil {
				return err
			}
			return a.emit(record, false)
		},
	}
	f := c.Flags()
	f.StringVar(&flags.synth, "synth", "", "output of bench synth --json")
	f.StringVar(&flags.prove, "prove", "", "output of bench prove --json, of the same circuit")
	f.StringVar(&flags.kind, "device", "cpu", "kind of the device, as the nodes file names it")
	f.Float64Var(&flags.device, "device-seconds", 0, "how long the device is taken by a partition")
	f.Float64Var(&flags.finish, "finish-seconds", 0, "how long the CPU works on a partition after that")
	f.IntVar(&flags.partitions, "partitions", 10, "partitions of a job")
	f.StringVar(&flags.srs, "srs", "0B", "size of the parameters, as held in memory")
	f.StringVar(&flags.engine, "engine", "0B", "memory of the host that each device's engine keeps")
	f.StringVar(&flags.vram, "vram", "0B", "memory of the device that it keeps")
	c.AddCommand(a.planProfileShowCommand())
	return c
}

func (a *app) planProfileShowCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "show [NAME]",
		Short: "print a shipped profile, or the names of all",
		RunE: func(c *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return a.emit(&recordResult{strings.Join(plan.Shipped(), "\n") + "\n"}, false)
			case 1:
				text, err := plan.ShippedText(args[0])
				if err != nil {
					return planFailure(err)
				}
				return a.emit(&recordResult{string(text)}, false)
			}
			return fail(usage, helpHint(c), "unexpected argument %q", args[1])
		},
	}
}

// readBench reads the output of a bench verb.
func (a *app) readBench(path, what string, into any) error {
	const hint = "it must be what \"proofrack bench --json\" printed"
	text, err := a.readAll(path, what, hint, plan.FileBytesMax)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fail(badInput, hint, "read %s from %q: %w", what, path, err)
	}
	return nil
}

// profileOf makes a profile from measurements.
func (a *app) profileOf(flags *planProfileFlags) (*recordResult, error) {
	var synth benchSynthResult
	if err := a.readBench(flags.synth, "measurement of synthesis", &synth); err != nil {
		return nil, err
	}
	if synth.Circuit == "" || synth.SegmentBytes <= 0 || len(synth.Warm) == 0 || synth.Workers < 1 {
		return nil, fail(badInput, "it must be the output of \"proofrack bench synth --json --runs 2\" or more",
			"the synthesis file has no circuit, segment, workers or warm runs")
	}
	segment := bytesize.Bytes(synth.SegmentBytes)
	working := segment + synthScratchBytes
	about := fmt.Sprintf("Measured on %s, %d cores: synthesis warm, median of %d runs.", oneLine(synth.Machine.Processor),
		synth.Workers, len(synth.Warm))
	times := plan.DeviceTimes{Kind: flags.kind, Seconds: flags.device, FinishSeconds: flags.finish}
	if flags.prove != "" {
		proved, err := a.proveTimes(flags, synth.Circuit)
		if err != nil {
			return nil, err
		}
		times.Seconds, times.FinishSeconds = proved.Seconds, proved.FinishSeconds
		about += " Proving by the CPU on the same kind of machine, median run."
	} else {
		about += " The device's times were given by hand."
	}
	held := ledger.Amounts{ledger.PoolRAM: segment, ledger.PoolSHM: segment}
	profile := plan.Profile{Name: "own", About: about, Circuits: []plan.Circuit{{
		Name: synth.Circuit, Partitions: flags.partitions,
		Synthesis: plan.Synthesis{AtOnce: []int{1}, Seconds: []float64{median(synth.Warm)}, Cores: float64(synth.Workers)},
		Devices:   []plan.DeviceTimes{times},
		Sizes: plan.Sizes{
			Synthesizing: ledger.Amounts{ledger.PoolRAM: working, ledger.PoolSHM: segment}, Sealed: held, Proving: held,
			Finishing: held,
		},
	}}}
	circuit := &profile.Circuits[0]
	for _, asset := range []struct {
		text      string
		name      string
		pool      string
		perDevice bool
	}{{flags.srs, "srs", "ram", false}, {flags.engine, "engine", "ram", true}, {flags.vram, "device", "vram", true}} {
		size, err := bytesize.Parse(asset.text)
		if err != nil {
			return nil, misuse("--%s: %w", strings.ReplaceAll(asset.name, "device", "vram"), err)
		}
		if size > 0 {
			circuit.Assets = append(circuit.Assets,
				plan.Asset{Name: asset.name, Pool: asset.pool, Bytes: size, PerDevice: asset.perDevice})
		}
	}
	if err := profile.Validate(); err != nil {
		return nil, planFailure(err)
	}
	text, err := toml.Marshal(&profile)
	if err != nil {
		return nil, fmt.Errorf("write profile: %w", err)
	}
	return &recordResult{string(text)}, nil
}

// proveTimes takes the device's times from a measurement of proving: all but G2 and assembly is the device's.
func (a *app) proveTimes(flags *planProfileFlags, circuit string) (*plan.DeviceTimes, error) {
	var prove benchProveResult
	if err := a.readBench(flags.prove, "measurement of proving", &prove); err != nil {
		return nil, err
	}
	if prove.Circuit != circuit {
		return nil, fail(badInput, "measure both with the same --sector", "synthesis was measured for %q, proving for %q",
			oneLine(circuit), oneLine(prove.Circuit))
	}
	var device, finish []float64
	for i := range prove.Runs {
		s, n := &prove.Runs[i].Stages, float64(max(1, prove.Partitions))
		device = append(device, (s.Quotient+s.H+s.L+s.A+s.B1)/n)
		finish = append(finish, (s.B2+s.Assemble+s.Verify)/n)
	}
	if len(device) == 0 || median(device) <= 0 {
		return nil, fail(badInput, "it must be the output of \"proofrack bench prove --json\"", "the proving file has no runs")
	}
	return &plan.DeviceTimes{Seconds: median(device), FinishSeconds: median(finish)}, nil
}

// median is the middle one, the lower of two; NaN of none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[(len(sorted)-1)/2]
}
