package scheduler

import (
	"errors"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/sizes"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
)

// Config sets how much work is kept ahead and for how long things may wait. The zero value is not valid; start from
// DefaultConfig.
type Config struct {
	// WorkAhead is how much booked work each device has at least beside the proof that it works on, where memory allows.
	WorkAhead time.Duration
	// SealedAhead is how much of that should be sealed; while it is less, work is booked ahead for the time that a
	// synthesis takes as well.
	SealedAhead time.Duration
	// DevicePartitionsMax caps the partitions that are booked on a device and not in the proof yet. At least 1.
	DevicePartitionsMax int
	// SynthSlotsMax caps a node's synthesis slots below what its workers offer; 0 does not.
	SynthSlotsMax int
	// SynthQueueMax is how many partitions may wait on a node for a slot of it, per slot.
	SynthQueueMax int
	// Ageing is how long a waiter is passed over before it pins a node.
	Ageing time.Duration
	// Patience is by how much a job with a near deadline may go before older ones of its priority.
	Patience time.Duration
	// Quotas bound what tenants have in flight; those that are not named have no bound.
	Quotas map[job.Tenant]Quota
	// Guess is how long a device takes for a partition of a circuit before the first measurement; GuessDefault is for
	// circuits that are not named.
	Guess        map[string]time.Duration
	GuessDefault time.Duration
	// LoadRate is how many bytes of assets a node loads per second, for choosing between warm and cold nodes.
	LoadRate bytesize.Bytes
	// RefusalPause is how long nothing is tried on a node that refused, unless bytes come free there.
	RefusalPause time.Duration
	// RefusalPauseMax bounds the pause of a job that is refused again and again; it doubles up to this.
	RefusalPauseMax time.Duration
	// EvictIdle bounds how long an asset must be idle before it is evicted for others: as long as it takes to load it
	// again, but not longer than this. So circuits that come by turns do not throw each other out at every job.
	EvictIdle time.Duration
	// EvictTimeout is how long an eviction may take before another one is tried.
	EvictTimeout time.Duration
	// PeakMargin is added to measured peaks of memory where these are booked, as a share: 0.1 is a tenth. DriftMax is the
	// share by which peaks may be off from what workers say before that is told.
	PeakMargin, DriftMax float64
	// PeakSlack is by how much measured ram may be over what workers compute without consequence.
	PeakSlack bytesize.Bytes
	// QuarantineAfter is how many blamed faults in a row take a device out.
	QuarantineAfter int
	// HaltWindow is the time within which blamed faults on more than half of the devices stop all admission.
	HaltWindow time.Duration
	// AdmitsMax bounds the partitions admitted per event.
	AdmitsMax int
	// Wire are the message versions that this coordinator speaks.
	Wire Versions
}

// DefaultConfig is design section 4's start values, and work ahead that outlasts an outage of ten seconds and what
// follows it (docs/adr/0019).
func DefaultConfig() Config {
	learned := sizes.DefaultConfig()
	return Config{
		WorkAhead: 25 * time.Second, SealedAhead: 20 * time.Second,
		DevicePartitionsMax: 64, SynthQueueMax: 1,
		Ageing: time.Minute, Patience: time.Hour, GuessDefault: time.Minute, LoadRate: bytesize.GiB,
		RefusalPause: time.Second, RefusalPauseMax: 30 * time.Second,
		EvictIdle: 5 * time.Second, EvictTimeout: 15 * time.Second,
		PeakMargin: learned.Margin, DriftMax: learned.DriftMax, PeakSlack: learned.Slack,
		QuarantineAfter: 3, HaltWindow: time.Minute, AdmitsMax: 64,
		Wire: Versions{Min: 1, Max: 1},
	}
}

// sizes tunes what is learned.
func (c *Config) sizes() sizes.Config {
	return sizes.Config{Margin: c.PeakMargin, DriftMax: c.DriftMax, Slack: c.PeakSlack}
}

// Validate tells all that is wrong.
func (c *Config) Validate() error {
	var errs []error
	positive := func(name string, value int64) {
		if value <= 0 {
			errs = append(errs, fmt.Errorf("%s must be more than 0, not %d", name, value))
		}
	}
	for name, value := range c.Guess {
		positive("guess."+name, int64(value))
	}
	for name, quota := range c.Quotas {
		if _, err := job.ParseTenant(string(name)); err != nil {
			errs = append(errs, fmt.Errorf("quota: %w", err))
		}
		if quota.Partitions < 0 || quota.Bytes < 0 {
			errs = append(errs, fmt.Errorf("quota of %s must not be negative", name))
		}
	}
	positive("guess_default", int64(c.GuessDefault))
	positive("device_partitions_max", int64(c.DevicePartitionsMax))
	positive("ageing", int64(c.Ageing))
	positive("load_rate", int64(c.LoadRate))
	positive("refusal_pause", int64(c.RefusalPause))
	positive("refusal_pause_max", int64(c.RefusalPauseMax))
	positive("evict_timeout", int64(c.EvictTimeout))
	positive("quarantine_after", int64(c.QuarantineAfter))
	positive("halt_window", int64(c.HaltWindow))
	positive("admits_max", int64(c.AdmitsMax))
	for name, value := range map[string]int64{
		"evict_idle": int64(c.EvictIdle),
		"work_ahead": int64(c.WorkAhead), "sealed_ahead": int64(c.SealedAhead), "patience": int64(c.Patience),
		"synth_slots_max": int64(c.SynthSlotsMax), "synth_queue_max": int64(c.SynthQueueMax),
	} {
		if value < 0 {
			errs = append(errs, fmt.Errorf("%s must not be negative, as %d is", name, value))
		}
	}
	learned := c.sizes()
	errs = append(errs, learned.Validate())
	if c.Wire.Min < 1 || c.Wire.Max < c.Wire.Min {
		errs = append(errs, fmt.Errorf("wire versions %d to %d are no range", c.Wire.Min, c.Wire.Max))
	}
	return errors.Join(errs...)
}
