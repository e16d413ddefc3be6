package verb

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/spf13/cobra"

	"github.com/proofrack/proofrack/coordinator/plan"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// planProfileFlags are the flags of plan profile.
type planProfileFlags struct {
	synth, prove      string
	recorded          []string
	kind              string
	device, finish    float64
	cores             float64
	segment           string
	srs, engine, vram string
	partitions        int
}

// Bounds of measurements that are read.
const (
	recordedFilesMax  = 64
	recordedBytesMax  = 8 << 20
	synthScratchBytes = 96 * bytesize.MiB // what a synthesis worker books beside the segment by default
)

func (a *app) planProfileCommand() *cobra.Command {
	var flags planProfileFlags
	c := &cobra.Command{
		Use:   "profile --synth FILE | profile --recorded FILE…",
		Short: "make a profile from measurements of this machine, or from what a rack recorded",
		Long: "profile prints a profile for \"plan --profile\". It takes the times from what\n" +
			"\"proofrack bench synth --json\" and, for a CPU as device, \"proofrack bench prove --json\" printed, or from\n" +
			"finished jobs of a rack, as \"proofrack job JOB --json\" prints them. For a card that is not there yet,\n" +
			"--device-seconds gives its time.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			set := c.Flags().Changed
			switch {
			case set("synth") == set("recorded"):
				return fail(usage, helpHint(c), "give either --synth or --recorded: where the times are from")
			case set("synth") && set("prove") == set("device-seconds"):
				return fail(usage, helpHint(c), "give either --prove or --device-seconds: how long the device is taken")
			case set("recorded") && (!set("segment") || !set("synth-cores")):
				return fail(usage, helpHint(c), "--segment or --synth-cores is missing: a record does not tell them")
			case set("recorded") && (set("prove") || set("device-seconds") || set("finish-seconds") || set("partitions")):
				return fail(usage, helpHint(c), "records tell the device's times and the partitions: leave their flags out")
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
	f.StringArrayVar(&flags.recorded, "recorded", nil, "output of job JOB --json; may be repeated")
	f.StringVar(&flags.kind, "device", "cpu", "kind of the device, as the nodes file names it")
	f.Float64Var(&flags.device, "device-seconds", 0, "how long the device is taken by a partition")
	f.Float64Var(&flags.finish, "finish-seconds", 0, "how long the CPU works on a partition after that")
	f.Float64Var(&flags.cores, "synth-cores", 0, "cores that a synthesis keeps busy (default those of the measurement)")
	f.IntVar(&flags.partitions, "partitions", 10, "partitions of a job")
	f.StringVar(&flags.segment, "segment", "0B", "size of a segment (default that of the measurement)")
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

// measured is what measurements say of a circuit.
type measured struct {
	circuit    string
	partitions int
	synth      float64
	cores      float64
	segment    bytesize.Bytes
	times      plan.DeviceTimes
	about      string
}

// profileOf makes a profile from measurements.
func (a *app) profileOf(flags *planProfileFlags) (*recordResult, error) {
	take := a.measuredHere
	if len(flags.recorded) > 0 {
		take = a.recordedJobs
	}
	m, err := take(flags)
	if err != nil {
		return nil, err
	}
	sizes := map[string]bytesize.Bytes{}
	for name, text := range map[string]string{
		"segment": flags.segment, "srs": flags.srs, "engine": flags.engine, "vram": flags.vram,
	} {
		if sizes[name], err = bytesize.Parse(text); err != nil {
			return nil, misuse("--%s: %w", name, err)
		}
	}
	segment := cmp.Or(sizes["segment"], m.segment)
	held := ledger.Amounts{ledger.PoolRAM: segment, ledger.PoolSHM: segment}
	circuit := plan.Circuit{
		Name: m.circuit, Partitions: m.partitions,
		Synthesis: plan.Synthesis{
			AtOnce: []int{1}, Seconds: []float64{m.synth}, Cores: cmp.Or(flags.cores, m.cores),
		},
		Devices: []plan.DeviceTimes{m.times},
		Sizes: plan.Sizes{
			Synthesizing: ledger.Amounts{ledger.PoolRAM: segment + synthScratchBytes, ledger.PoolSHM: segment},
			Sealed:       held, Proving: held, Finishing: held,
		},
	}
	for _, asset := range []plan.Asset{
		{Name: "srs", Pool: "ram", Bytes: sizes["srs"]},
		{Name: "engine", Pool: "ram", Bytes: sizes["engine"], PerDevice: true},
		{Name: "device", Pool: "vram", Bytes: sizes["vram"], PerDevice: true},
	} {
		if asset.Bytes > 0 {
			circuit.Assets = append(circuit.Assets, asset)
		}
	}
	profile := plan.Profile{Name: "own", About: m.about, Circuits: []plan.Circuit{circuit}}
	if err := profile.Validate(); err != nil {
		return nil, planFailure(err)
	}
	text, err := toml.Marshal(&profile)
	if err != nil {
		return nil, fmt.Errorf("write profile: %w", err)
	}
	return &recordResult{string(text)}, nil
}

// readMeasured reads what another verb printed as JSON.
func (a *app) readMeasured(path, what, verb string, into any) error {
	hint := fmt.Sprintf("it must be what \"proofrack %s --json\" printed", verb)
	text, err := a.readAll(path, what, hint, recordedBytesMax)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fail(badInput, hint, "read %s from %q: %w", what, path, err)
	}
	return nil
}

// measuredHere takes times from the bench verbs.
func (a *app) measuredHere(flags *planProfileFlags) (*measured, error) {
	var synth benchSynthResult
	if err := a.readMeasured(flags.synth, "measurement of synthesis", "bench synth", &synth); err != nil {
		return nil, err
	}
	if synth.Circuit == "" || synth.SegmentBytes <= 0 || len(synth.Warm) == 0 || synth.Workers < 1 {
		return nil, fail(badInput, "it must be the output of \"proofrack bench synth --json --runs 2\" or more",
			"the synthesis file has no circuit, segment, workers or warm runs")
	}
	m := &measured{
		circuit: synth.Circuit, partitions: flags.partitions, synth: middle(synth.Warm), cores: float64(synth.Workers),
		segment: bytesize.Bytes(synth.SegmentBytes),
		times:   plan.DeviceTimes{Kind: flags.kind, Seconds: flags.device, FinishSeconds: flags.finish},
		about: fmt.Sprintf("Measured on %s, %d cores: synthesis warm, median of %d runs.",
			oneLine(synth.Machine.Processor), synth.Workers, len(synth.Warm)),
	}
	if flags.prove == "" {
		m.about += " The device's times were given by hand."
		return m, nil
	}
	var prove benchProveResult
	if err := a.readMeasured(flags.prove, "measurement of proving", "bench prove", &prove); err != nil {
		return nil, err
	}
	if prove.Circuit != synth.Circuit {
		return nil, fail(badInput, "measure both with the same --sector", "synthesis was measured for %q, proving for %q",
			oneLine(synth.Circuit), oneLine(prove.Circuit))
	}
	var device, finish []float64
	for i := range prove.Runs {
		s, n := &prove.Runs[i].Stages, float64(max(1, prove.Partitions))
		device = append(device, (s.Quotient+s.H+s.L+s.A+s.B1)/n)
		finish = append(finish, (s.B2+s.Assemble+s.Verify)/n)
	}
	if len(device) == 0 {
		return nil, fail(badInput, "it must be the output of \"proofrack bench prove --json\"",
			"the proving file has no runs")
	}
	m.times.Seconds, m.times.FinishSeconds = middle(device), middle(finish)
	m.about += " Proving by the CPU on the same kind of machine, median run."
	return m, nil
}

// recordedJobs takes times from the records of finished jobs: the medians of all attempts that made a proof.
func (a *app) recordedJobs(flags *planProfileFlags) (*measured, error) {
	if len(flags.recorded) > recordedFilesMax {
		return nil, misuse("--recorded is given %d times: at most %d", len(flags.recorded), recordedFilesMax)
	}
	m := &measured{times: plan.DeviceTimes{Kind: flags.kind}}
	var synth, device, finish []float64
	for _, path := range flags.recorded {
		var ended struct {
			Record *job.Record `json:"record"`
		}
		if err := a.readMeasured(path, "job", "job JOB", &ended); err != nil {
			return nil, err
		}
		if ended.Record == nil || len(ended.Record.Partitions) == 0 {
			return nil, fail(badInput, "it must be what \"proofrack job JOB --json\" printed", "%q holds no job", path)
		}
		if m.circuit != "" && m.circuit != ended.Record.Circuit {
			return nil, fail(badInput, "make one profile per circuit", "the jobs are of circuits %q and %q",
				oneLine(m.circuit), oneLine(ended.Record.Circuit))
		}
		m.circuit, m.partitions = ended.Record.Circuit, len(ended.Record.Partitions)
		for i := range ended.Record.Partitions {
			for _, try := range ended.Record.Partitions[i].Attempts {
				s := try.Seconds
				if try.Outcome != job.OutcomeOK || s["start"] <= 0 || s["synthesis"] <= 0 {
					continue
				}
				synth = append(synth, s["slice"]+s["segment"]+s["synthesis"])
				device = append(device, s["start"])
				finish = append(finish, s["finish"])
			}
		}
	}
	if len(synth) == 0 {
		return nil, fail(badInput, "use a finished job", "the records have no times of an attempt that made a proof")
	}
	m.synth, m.times.Seconds, m.times.FinishSeconds = middle(synth), middle(device), middle(finish)
	m.about = fmt.Sprintf("Recorded by a rack: medians of %d attempts of %d jobs.", len(synth), len(flags.recorded))
	return m, nil
}

// middle is the median, the lower of two; there must be a value.
func middle(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[(len(values)-1)/2]
}
