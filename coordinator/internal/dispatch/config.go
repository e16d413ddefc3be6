package dispatch

import (
	"errors"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// Config tunes the leader. Start from DefaultConfig.
type Config struct {
	// Heartbeat and Lease are the workers': how often they beat, and how long an attempt may go without progress.
	Heartbeat, Lease time.Duration
	// Tick is how often time itself is looked at, and all truths are compared.
	Tick time.Duration
	// Sweep is how often what has no owner is looked for.
	Sweep time.Duration
	// Policy bounds attempts.
	Policy job.Policy
	// HandBackPause is how long a partition waits that a node handed back, e.g. by its veto.
	HandBackPause time.Duration
	// CallTimeout bounds each call to ledger and bus.
	CallTimeout time.Duration
	// Workers bounds slow calls that run at once, ResultsMax results that are looked at.
	Workers, ResultsMax int
	// ResultAckWait is how long a result may be in a leader's hands before another one gets it.
	ResultAckWait time.Duration
	// QuarantineMin is how long a device is in quarantine before it may prove a known answer; it doubles with each that is
	// wrong, up to QuarantineMax. CanaryTimeout is how long it may take to prove one.
	QuarantineMin, QuarantineMax, CanaryTimeout time.Duration
	// LearnedEvery is how often what was learned is stored.
	LearnedEvery time.Duration
	Scheduler    scheduler.Config
}

// DefaultConfig is design section 4's start values.
func DefaultConfig() Config {
	return Config{
		Heartbeat: 5 * time.Second, Lease: 15 * time.Second, Tick: time.Second,
		Sweep:  30 * time.Second,
		Policy: job.DefaultPolicy(), HandBackPause: time.Second, CallTimeout: 5 * time.Second,
		Workers: 32, ResultsMax: 64, ResultAckWait: 10 * time.Second,
		QuarantineMin: time.Minute, QuarantineMax: time.Hour, CanaryTimeout: 2 * time.Minute,
		LearnedEvery: 30 * time.Second, Scheduler: defaultScheduler(),
	}
}

// Validate tells all that is wrong.
func (c *Config) Validate() error {
	var errs []error
	for _, f := range []struct {
		name  string
		value int64
	}{
		{"heartbeat", int64(c.Heartbeat)}, {"tick", int64(c.Tick)}, {"sweep", int64(c.Sweep)},
		{"call_timeout", int64(c.CallTimeout)}, {"workers", int64(c.Workers)}, {"results_max", int64(c.ResultsMax)},
		{"result_ack_wait", int64(c.ResultAckWait)}, {"quarantine_min", int64(c.QuarantineMin)},
		{"canary_timeout", int64(c.CanaryTimeout)}, {"store_every", int64(c.LearnedEvery)},
		{"policy.failed_max", int64(c.Policy.FailedMax)}, {"policy.lost_max", int64(c.Policy.LostMax)},
	} {
		if f.value <= 0 {
			errs = append(errs, fmt.Errorf("%s must be more than 0, not %d", f.name, f.value))
		}
	}
	if c.Lease < 2*c.Heartbeat {
		errs = append(errs, fmt.Errorf("lease must be at least two heartbeats of %s, not %s", c.Heartbeat, c.Lease))
	}
	if c.QuarantineMax < c.QuarantineMin {
		errs = append(errs, fmt.Errorf("quarantine_max must be at least quarantine_min of %s, not %s", c.QuarantineMin,
			c.QuarantineMax))
	}
	if c.HandBackPause < 0 {
		errs = append(errs, fmt.Errorf("hand_back_pause must not be negative, as %s is", c.HandBackPause))
	}
	return errors.Join(append(errs, c.Scheduler.Validate())...)
}

func defaultScheduler() scheduler.Config {
	c := scheduler.DefaultConfig()
	c.Wire = scheduler.Versions{Min: wire.VersionMin, Max: wire.Version}
	return c
}
