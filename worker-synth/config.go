package workersynth

import (
	"errors"

	"github.com/proofrack/proofrack/shared/attempt/host"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// Config is everything that a synthesis worker can be told.
type Config struct {
	host.Config

	Synth   SynthConfig           `doc:"Synthesis."`
	NATS    natsbus.Config        `doc:"The NATS servers and who we are there."`
	Service service.Config        `doc:"How the program starts and ends."`
	HTTP    service.HTTPConfig    `doc:"Health checks."`
	Logs    telemetry.LogConfig   `doc:"What is logged, and how."`
	Traces  telemetry.TraceConfig `doc:"Where traces are sent; see docs/traces.md."`
}

// SynthConfig tunes synthesis.
type SynthConfig struct {
	Slots        int            `doc:"How many partitions are synthesized at once; 0 is one for each four cores."`
	Workers      int            `doc:"Cores for each of them; 0 shares all cores among the slots."`
	ScratchBytes bytesize.Bytes `doc:"Memory that each synthesis takes beside its segment, as it is booked."`
	Circuits     []string       `doc:"Circuits that this worker takes; empty for all that it knows."`
	Check        bool           `doc:"Check every constraint by plain arithmetic before the seal; very slow."`
	PadBytes     bytesize.Bytes `doc:"Bytes added to every segment, for tests with small circuits."`
	BallastBytes bytesize.Bytes `doc:"Memory that each synthesis takes beyond its need, for tests with small circuits."`
}

// slotsMax bounds SynthConfig.Slots.
const slotsMax = 256

// DefaultConfig is for a host of its own.
func DefaultConfig() Config {
	return Config{
		Config:  host.DefaultConfig(),
		Synth:   SynthConfig{ScratchBytes: 96 * bytesize.MiB},
		NATS:    natsbus.DefaultConfig(),
		Service: service.DefaultConfig(),
		HTTP:    service.DefaultHTTPConfig(),
		Logs:    telemetry.DefaultLogConfig(),
		Traces:  telemetry.DefaultTraceConfig(),
	}
}

// Validate reports all problems of this part.
func (c *Config) Validate() error {
	return c.Config.Validate()
}

// Validate demands numbers that can be and circuits that exist.
func (c *SynthConfig) Validate() error {
	var errs []error
	if c.Slots < 0 || c.Slots > slotsMax {
		errs = append(errs, fault.New(fault.Invalid, "slots: must be 0 to %d, is %d", slotsMax, c.Slots))
	}
	if c.Workers < 0 {
		errs = append(errs, fault.New(fault.Invalid, "workers: must not be negative, is %d", c.Workers))
	}
	if c.ScratchBytes < 0 || c.PadBytes < 0 || c.BallastBytes < 0 {
		errs = append(errs, fault.New(fault.Invalid, "scratch_bytes, pad_bytes and ballast_bytes: must not be negative"))
	}
	for _, id := range c.Circuits {
		if _, err := catalog.Find(id); err != nil {
			errs = append(errs, fault.As(fault.Invalid, err))
		}
	}
	return errors.Join(errs...)
}
