package prove

import (
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/prover/simdevice"
	"github.com/proofrack/proofrack/worker-gpu/internal/engine"
	"github.com/proofrack/proofrack/worker-gpu/internal/residency"
)

// Config says what a device is and how it is driven.
type Config struct {
	Device   job.Device
	UUID     string
	Name     string
	NUMANode int
	// Memory is the device's own, 0 for none.
	Memory bytesize.Bytes
	// Streamed tells that parameters are read through, not kept in memory: they are not booked then.
	Streamed bool
	// Images, when set, keeps parameters decoded in memory for engines to map; they are booked then.
	Images *residency.Images
	// Params is the folder of parameter files; Circuits are those to prove.
	Params   string
	Circuits []circuit.Circuit
	// Engine is what every engine of the device is started with; Simulate orders faults.
	Engine   engine.Config
	Simulate *simdevice.Config
	// SealWait is how long to wait for the writer of a segment.
	SealWait time.Duration
	// PollEvery is how often parameters that were missing are looked for.
	PollEvery time.Duration
	// TickEvery is how often a device that lives counts as progress for what waits for it.
	TickEvery time.Duration
	// PauseMin is the pause after the first fault; it doubles with each further one up to PauseMax.
	PauseMin, PauseMax time.Duration
	// FaultsMax is how many faults in a row make the device unhealthy.
	FaultsMax int
	// Meters count what the device does; nil counts nothing.
	Meters *Meters
	Log    zerolog.Logger
}
