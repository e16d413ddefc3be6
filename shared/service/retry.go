package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/fault"
)

// RetryConfig bounds and paces a Retry. Each wait is drawn from a half to one and a half of what it says.
type RetryConfig struct {
	FirstWait time.Duration `doc:"Wait after the first failed try; it doubles with each."`
	MaxWait   time.Duration `doc:"Longest wait between two tries."`
	Within    time.Duration `doc:"How long to go on trying; 0 is until the process stops."`
	LogEvery  time.Duration `doc:"At most one log line about failed tries in this time."`
}

// DefaultRetryConfig is for a server that restarts: quick at first, then every few seconds, for two minutes.
func DefaultRetryConfig() RetryConfig {
	return RetryConfig{FirstWait: 100 * time.Millisecond, MaxWait: 5 * time.Second, Within: 2 * time.Minute,
		LogEvery: 10 * time.Second}
}

// Validate demands positive waits; Within may be 0.
func (c *RetryConfig) Validate() error {
	var errs []error
	if c.FirstWait <= 0 || c.MaxWait < c.FirstWait {
		errs = append(errs, fault.New(fault.Invalid, "max_wait: must be at least first_wait, which must be positive"))
	}
	if c.Within < 0 {
		errs = append(errs, fault.New(fault.Invalid, "within: must not be negative"))
	}
	if c.LogEvery <= 0 {
		errs = append(errs, fault.New(fault.Invalid, "log_every: must be positive"))
	}
	return errors.Join(errs...)
}

// Retry calls try until it succeeds, its error is not worth another try (any kind but Transient), ctx ends, or the
// time is over. What names the work in logs and errors: "connect to nats". The error of the last try is wrapped; its
// kind stays, but is Cancelled when ctx ended first.
func Retry[T any](ctx context.Context, config RetryConfig, log zerolog.Logger, what string,
	try func(context.Context) (T, error)) (T, error) {
	var (
		tries  int
		last   error
		logged time.Time
	)
	begun := time.Now()
	waits := &backoff.ExponentialBackOff{
		InitialInterval: config.FirstWait, MaxInterval: config.MaxWait, Multiplier: 2, RandomizationFactor: 0.5,
	}
	out, err := backoff.Retry(ctx, func() (T, error) {
		tries++
		result, err := try(ctx)
		if last = err; err != nil && fault.KindOf(err) != fault.Transient {
			err = backoff.Permanent(err)
		}
		return result, err
	}, backoff.WithBackOff(waits), backoff.WithMaxElapsedTime(config.Within),
		backoff.WithNotify(func(err error, wait time.Duration) {
			if now := time.Now(); logged.IsZero() || now.Sub(logged) >= config.LogEvery {
				logged = now
				log.Warn().Err(err).Str("what", what).Int("tries", tries).Dur("next_ms", wait).Msg("retrying")
			}
		}))
	switch {
	case err == nil:
		if !logged.IsZero() {
			log.Info().Str("what", what).Int("tries", tries).Msg("succeeded after retries")
		}
		return out, nil
	case ctx.Err() != nil:
		return out, fault.As(fault.Cancelled,
			fmt.Errorf("%s: %w after %d tries, last: %w", what, context.Cause(ctx), tries, last))
	case tries > 1:
		return out, fmt.Errorf("%s: gave up after %d tries in %s: %w",
			what, tries, time.Since(begun).Round(time.Millisecond), last)
	}
	return out, fmt.Errorf("%s: %w", what, last)
}
