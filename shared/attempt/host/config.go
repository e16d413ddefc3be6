package host

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/handoff"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/metrics"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// Config is what both worker programs can be told.
type Config struct {
	Node    string         `doc:"Name of this host: 1 to 32 of a-z, 0-9, inner hyphens; the same for all its workers."`
	Spill   SpillConfig    `doc:"Where synthesized partitions lie until they are proved."`
	Memory  MemoryConfig   `doc:"How much memory the rack may use on this host. All workers of a host use the same."`
	Worker  attempt.Config `doc:"Times of the work loop."`
	Metrics metrics.Config `doc:"Numbers for Prometheus; see docs/metrics.md."`
	Test    TestConfig     `doc:"Faults on order, for tests only."`

	// Role is "synth" or "gpu", Build names the program's build.
	Role  string `toml:"-"`
	Build string `toml:"-"`
	// Alone tells that the process is this worker's own, so that its memory tells what attempts take.
	Alone bool `toml:"-"`
	// Connect gives the bus; it is asked again while it fails for reasons that pass.
	Connect func(context.Context) (bus.Bus, error) `toml:"-"`
	Log     zerolog.Logger                         `toml:"-"`
	// Tracer makes spans; nil makes none.
	Tracer *telemetry.Tracer `toml:"-"`
	// Registry has the metrics; NewMeters makes one when it is nil.
	Registry *metrics.Registry `toml:"-"`
	// Flight counts the process's large buffers; Open makes one when it is nil.
	Flight *flight.Recorder `toml:"-"`
}

// SpillConfig says where segments lie.
type SpillConfig struct {
	Path       string        `doc:"Spill folder, on a tmpfs such as /dev/shm. All workers of a host use the same."`
	DiskPath   string        `doc:"Spill folder on a disk, used when the first has no room; none when empty."`
	Group      int           `doc:"Number of the group that shares the folder (files 0640); -1 is none (0600)."`
	SealWait   time.Duration `doc:"How long a GPU worker waits for a segment to be complete."`
	PoolIdle   time.Duration `doc:"How long a free segment is kept for reuse."`
	SweepEvery time.Duration `doc:"How often leftovers are looked for."`
}

// MemoryConfig bounds what is booked.
type MemoryConfig struct {
	Margin inventory.Margin `doc:"Memory left to what is not booked."`
	RAMMax bytesize.Bytes   `doc:"Most memory to book on this host; 0 for what there is."`
	SHMMax bytesize.Bytes   `doc:"Most bytes to book in the spill folder in memory; 0 for what there is."`
	Claims string           `doc:"Folder where agents of one host claim memory, each its own; empty claims nothing."`
}

// TestConfig orders faults.
type TestConfig struct {
	Folder string   `doc:"Folder for marks of test hooks."`
	Hooks  []string `doc:"Test hooks: kill@point#n, pause@point#n, mark@point#n, leak@point#n."`
	// Markers has synthesis carry out the faults that tasks ask for: kill, error, invalid (F17).
	Markers bool `doc:"Carry out the faults that tasks ask for by their marker."`
}

// DefaultConfig has design section 4's start values.
func DefaultConfig() Config {
	return Config{
		Spill: SpillConfig{
			Path: "/dev/shm/proofrack", Group: -1, SealWait: 5 * time.Second, PoolIdle: 30 * time.Second,
			SweepEvery: 30 * time.Second,
		},
		Memory:  MemoryConfig{Margin: inventory.DefaultMargin(), Claims: "/dev/shm/proofrack-claims"},
		Worker:  attempt.DefaultConfig(),
		Metrics: metrics.DefaultConfig(),
	}
}

// Validate reports all problems at once.
func (c *Config) Validate() error {
	var errs []error
	if _, err := job.ParseNode(c.Node); err != nil {
		errs = append(errs, fault.New(fault.Invalid, "node: %w", err))
	}
	if c.Memory.RAMMax < 0 || c.Memory.SHMMax < 0 {
		errs = append(errs, fault.New(fault.Invalid, "memory: an amount is negative"))
	}
	if c.Memory.Claims != "" && !filepath.IsAbs(c.Memory.Claims) {
		errs = append(errs, fault.New(fault.Invalid, "memory.claims: %q is not absolute", c.Memory.Claims))
	}
	if c.Spill.SweepEvery <= 0 {
		errs = append(errs, fault.New(fault.Invalid, "spill.sweep_every: must be positive, is %s", c.Spill.SweepEvery))
	}
	if err := c.Spill.handoff(nil, nil).Validate(); err != nil {
		errs = append(errs, fault.New(fault.Invalid, "spill: %w", err))
	}
	return errors.Join(errs...)
}

func (c *SpillConfig) handoff(points *hook.Points, recorder *flight.Recorder) handoff.Config {
	return handoff.Config{
		Path: c.Path, DiskPath: c.DiskPath, Group: c.Group, SealWait: c.SealWait, PoolIdle: c.PoolIdle, Points: points,
		Flight: recorder,
	}
}
