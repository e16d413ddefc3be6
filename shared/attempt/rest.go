package attempt

import (
	"context"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
)

// rest waits before something is tried at the bus again: for the pause, but not longer than until the bus is back, if
// it is away now or goes meanwhile. It gives the next pause: twice as long, or the first one again when the bus is
// back. The error is the context's.
func rest(ctx context.Context, b bus.Bus, config *Config, pause time.Duration) (next time.Duration, err error) {
	end, up := time.Now().Add(pause), b.Connected()
	for {
		left := time.Until(end)
		if left <= 0 {
			return min(2*pause, config.RetryMax), nil
		}
		if err := sleep(ctx, min(left, config.RetryMin)); err != nil {
			return pause, err
		}
		was := up
		if up = b.Connected(); up && !was {
			return config.RetryMin, nil
		}
	}
}

// Returned calls back each time that the bus was away and is there again, until ctx ends.
func Returned(ctx context.Context, b bus.Bus, config *Config, back func()) {
	ticker := time.NewTicker(config.RetryMin)
	defer ticker.Stop()
	for up := b.Connected(); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		was := up
		if up = b.Connected(); up && !was {
			back()
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
