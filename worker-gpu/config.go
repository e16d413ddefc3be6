package workergpu

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/proofrack/proofrack/shared/attempt/host"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/inventory/gpu"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/prover/simdevice"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
)

// Config is everything that a GPU worker can be told.
type Config struct {
	host.Config

	Prove    ProveConfig           `doc:"Proving."`
	Assets   AssetsConfig          `doc:"Parameter files for other nodes."`
	Engine   EngineConfig          `doc:"The process that drives a device."`
	GPU      gpu.Config            `doc:"How the host's GPUs are watched."`
	NATS     natsbus.Config        `doc:"The NATS servers and who we are there."`
	Service  service.Config        `doc:"How the program starts and ends."`
	HTTP     service.HTTPConfig    `doc:"Health checks."`
	Logs     telemetry.LogConfig   `doc:"What is logged, and how."`
	Traces   telemetry.TraceConfig `doc:"Where traces are sent; see docs/traces.md."`
	Simulate map[string]string     `doc:"Simulated devices, for tests only: by name, what they simulate as JSON."`

	// EngineCommand starts an engine process; this program with the argument "engine" when it is empty.
	EngineCommand []string `toml:"-"`
}

// ProveConfig says what is proved, and on which devices.
type ProveConfig struct {
	Params   string                    `doc:"Folder with the proving parameters."`
	Cache    string                    `doc:"Folder for what is derived from them; empty for the same."`
	Devices  []string                  `doc:"cpu, names or UUIDs of GPUs, or cuda or auto; empty for all GPUs."`
	Library  string                    `doc:"Device library; empty looks beside the program, then where the loader does."`
	Budget   map[string]bytesize.Bytes `doc:"Device memory to use, by device; needed where the driver does not tell it."`
	Circuits []string                  `doc:"Circuits to prove; empty for all that this build knows."`
	Ahead    int                       `doc:"Sealed partitions held per device beside the one that it works on."`
	Workers  int                       `doc:"Cores for each device; 0 shares all cores among the devices."`
	Decoded  bool                      `doc:"Keep parameters decoded in memory for engines to map; booked as srs."`
	Poll     time.Duration             `doc:"How often parameters that were missing are looked for."`
}

// AssetsConfig says where other nodes fetch parameter files, and how fast. Only who has a token of the coordinator gets
// one.
type AssetsConfig struct {
	Listen    string         `doc:"Address:port where other nodes fetch parameter files; port 0 is any, \"\" is off."`
	Advertise string         `doc:"How they reach it, as http://host:port; empty for the address listened on."`
	RateMax   bytesize.Bytes `doc:"Most bytes per second that are given, 64KiB or more; 0 for no limit."`
}

// Validate demands addresses that can be.
func (c *AssetsConfig) Validate() error {
	var errs []error
	if err := (&service.HTTPConfig{Listen: c.Listen}).Validate(); err != nil {
		errs = append(errs, err)
	}
	if c.Advertise != "" {
		at, err := url.Parse(c.Advertise)
		if err != nil || at.Scheme != "http" || at.Host == "" || at.Path != "" && at.Path != "/" || at.User != nil {
			errs = append(errs, fault.New(fault.Invalid, "advertise: %q is not http://host:port", c.Advertise))
		}
	}
	if c.RateMax != 0 && c.RateMax < rateMin {
		errs = append(errs, fault.New(fault.Invalid, "rate_max: must be 0 or at least %s, is %s", rateMin, c.RateMax))
	}
	return errors.Join(errs...)
}

// rateMin is the slowest rate that parameter files are given at.
const rateMin = 64 * bytesize.KiB

// EngineConfig tunes the supervision of engines.
type EngineConfig struct {
	StartMax  time.Duration `doc:"How long an engine may take to start."`
	StopMax   time.Duration `doc:"How long an engine may take to end by itself."`
	StallMax  time.Duration `doc:"How long an engine at work may show no progress before it is killed."`
	StageMax  time.Duration `doc:"How long one stage of a proof may take before the engine is killed."`
	PauseMin  time.Duration `doc:"Pause before an engine that failed is replaced; it doubles."`
	PauseMax  time.Duration `doc:"Longest pause before an engine that failed is replaced."`
	FaultsMax int           `doc:"Faults in a row that make a device unhealthy."`
}

// Bounds of ProveConfig.
const (
	devicesMax = 64
	aheadMax   = 64
)

// DefaultConfig drives all GPUs of the host.
func DefaultConfig() Config {
	return Config{
		Config: host.DefaultConfig(),
		Prove:  ProveConfig{Params: "/var/lib/proofrack/params", Ahead: 32, Poll: 5 * time.Second},
		Engine: EngineConfig{
			StartMax: engine.DefaultStartMax, StopMax: engine.DefaultStopMax, StallMax: engine.DefaultStallMax,
			StageMax: engine.DefaultStageMax, PauseMin: 500 * time.Millisecond, PauseMax: 30 * time.Second, FaultsMax: 3,
		},
		GPU:     gpu.DefaultConfig(),
		NATS:    natsbus.DefaultConfig(),
		Service: service.DefaultConfig(),
		HTTP:    service.DefaultHTTPConfig(),
		Logs:    telemetry.DefaultLogConfig(),
		Traces:  telemetry.DefaultTraceConfig(),
	}
}

// Validate reports all problems of this part.
func (c *Config) Validate() error {
	errs := []error{c.Config.Validate()}
	if len(c.Simulate) > devicesMax {
		errs = append(errs, fault.New(fault.Invalid, "simulate: at most %d devices", devicesMax))
	}
	for name, text := range c.Simulate {
		if _, err := parseSimulated(name, text); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Validate demands folders, devices and circuits that can be.
func (c *ProveConfig) Validate() error {
	var errs []error
	if c.Params == "" {
		errs = append(errs, fault.New(fault.Invalid, "params: must be set"))
	}
	if c.Ahead < 0 || c.Ahead > aheadMax {
		errs = append(errs, fault.New(fault.Invalid, "ahead: must be 0 to %d, is %d", aheadMax, c.Ahead))
	}
	if c.Workers < 0 {
		errs = append(errs, fault.New(fault.Invalid, "workers: must not be negative, is %d", c.Workers))
	}
	if c.Poll <= 0 {
		errs = append(errs, fault.New(fault.Invalid, "poll: must be positive, is %s", c.Poll))
	}
	if len(c.Devices) > devicesMax {
		errs = append(errs, fault.New(fault.Invalid, "devices: at most %d", devicesMax))
	}
	for _, id := range c.Circuits {
		if _, err := catalog.Find(id); err != nil {
			errs = append(errs, fault.As(fault.Invalid, err))
		}
	}
	return errors.Join(errs...)
}

// Validate demands positive times.
func (c *EngineConfig) Validate() error {
	var errs []error
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"start_max", c.StartMax}, {"stop_max", c.StopMax}, {"stall_max", c.StallMax}, {"stage_max", c.StageMax},
		{"pause_min", c.PauseMin}, {"pause_max", c.PauseMax},
	} {
		if d.value <= 0 {
			errs = append(errs, fault.New(fault.Invalid, "%s: must be positive, is %s", d.key, d.value))
		}
	}
	if c.FaultsMax < 1 {
		errs = append(errs, fault.New(fault.Invalid, "faults_max: must be at least 1, is %d", c.FaultsMax))
	}
	return errors.Join(errs...)
}

// simulated is a simulated device as the configuration has it (H1 to H6).
type simulated struct {
	simdevice.Config

	UUID     string `json:"uuid,omitempty"`
	Model    string `json:"model,omitempty"`
	NUMANode int    `json:"numa_node"`
	// LostAfter is when the device is lost, counted from the start of the worker.
	LostAfter time.Duration `json:"lost_after_ns,omitempty"`
}

func parseSimulated(name, text string) (*simulated, error) {
	s := &simulated{NUMANode: inventory.NUMAUnknown}
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, fault.As(fault.Invalid, fmt.Errorf("simulate.%s: %w", name, err))
	}
	if _, err := job.ParseDevice(name); err != nil {
		return nil, fault.As(fault.Invalid, fmt.Errorf("simulate: %w", err))
	}
	if err := s.Config.Validate(); err != nil {
		return nil, fmt.Errorf("simulate.%s: %w", name, err)
	}
	if s.LostAfter > 0 {
		at := time.Now().Add(s.LostAfter)
		s.LostAt = &at
	}
	return s, nil
}
