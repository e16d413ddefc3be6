package attempt

import (
	"errors"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
)

// Config tunes the loop.
type Config struct {
	AckWait   time.Duration `doc:"How long a message may go without a mark before another worker gets it."`
	KeepEvery time.Duration `doc:"How often the message of advancing work is marked; at most half of ack_wait."`
	StallMax  time.Duration `doc:"How long work may show no progress before the attempt is given up."`
	RetryMin  time.Duration `doc:"First pause before something that failed at the bus is tried again; it doubles."`
	RetryMax  time.Duration `doc:"Longest pause before something that failed at the bus is tried again."`
	SettleMax time.Duration `doc:"How long an outcome may take to be stored before memory is freed all the same."`
	FenceMax  time.Duration `doc:"How long running work waits to hear whether its fence still holds; then it goes on."`
	Heartbeat time.Duration `doc:"How often the worker says that it lives."`
}

// DefaultConfig fits an ack wait of 30 s and a lease of 15 s.
func DefaultConfig() Config {
	return Config{
		AckWait: 30 * time.Second, KeepEvery: 10 * time.Second, StallMax: 2 * time.Minute,
		RetryMin: 100 * time.Millisecond, RetryMax: 5 * time.Second,
		SettleMax: 5 * time.Second, FenceMax: time.Second, Heartbeat: 5 * time.Second,
	}
}

// Validate demands positive times.
func (c *Config) Validate() error {
	var errs []error
	for _, d := range []struct {
		key   string
		value time.Duration
	}{
		{"ack_wait", c.AckWait}, {"keep_every", c.KeepEvery}, {"stall_max", c.StallMax}, {"retry_min", c.RetryMin},
		{"retry_max", c.RetryMax},
		{"settle_max", c.SettleMax}, {"fence_max", c.FenceMax}, {"heartbeat", c.Heartbeat},
	} {
		if d.value <= 0 {
			errs = append(errs, fault.New(fault.Invalid, "%s: must be positive, is %s", d.key, d.value))
		}
	}
	if c.KeepEvery > c.AckWait/2 {
		errs = append(errs, fault.New(fault.Invalid,
			"keep_every: %s is more than half of ack_wait %s", c.KeepEvery, c.AckWait))
	}
	return errors.Join(errs...)
}
