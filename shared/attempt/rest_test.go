package attempt_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/proofrack/proofrack/shared/attempt"
	"github.com/proofrack/proofrack/shared/bus"
)

// However long the bus was away and pauses have grown: what waits for it goes on when it is back. Here that is what has
// not begun, for its fence; what is sealed, for its way to the device; and results.
func TestB62WhatWaitsForTheBusGoesOnWhenItIsBack(t *testing.T) {
	t.Parallel()
	soon := attempt.DefaultConfig().RetryMin
	for name, test := range map[string]struct {
		away func(b *bench) // has the bus be away before the work begins
		work func(context.Context, *bench, *attempt.Run) error
		done func(b *bench) bool
	}{
		"begin": {
			away: func(b *bench) { b.bus.setAway(true) },
			work: func(context.Context, *bench, *attempt.Run) error { return nil },
			done: func(b *bench) bool { return b.works.Load() == 1 },
		},
		"hand over": {
			work: func(ctx context.Context, b *bench, r *attempt.Run) error {
				b.bus.setAway(true)
				return r.Publish(ctx, bus.Message{Subject: "p", ID: "p"})
			},
			done: func(b *bench) bool { return len(b.bus.messages("p")) == 1 },
		},
		"result": {
			work: func(ctx context.Context, b *bench, r *attempt.Run) error {
				b.bus.setAway(true)
				r.Settle(ctx, okResult())
				return nil
			},
			done: func(b *bench) bool { return len(b.results()) == 1 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var b *bench
				b = start(t, 1, func(ctx context.Context, r *attempt.Run) error { return test.work(ctx, b, r) })
				if test.away != nil {
					test.away(b)
				}
				b.put(try(1))
				time.Sleep(time.Hour + 4*time.Second) // in the middle of a pause
				if b.bus.setAway(true); test.done(b) {
					t.Fatal("done while the bus is away")
				}
				b.bus.setAway(false)
				time.Sleep(2 * soon)
				synctest.Wait()
				if !test.done(b) {
					t.Errorf("not done %s after the bus is back", 2*soon)
				}
				b.end()
			})
		})
	}
}

// A bus that comes and goes is told of each time that it is back.
func TestReturnsOfTheBusAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, config, backs := newFakeBus(), attempt.DefaultConfig(), 0
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			attempt.Returned(ctx, b, &config, func() { backs++ })
		}()
		for range 3 {
			time.Sleep(time.Minute)
			b.setAway(true)
			time.Sleep(time.Minute)
			b.setAway(false)
		}
		time.Sleep(time.Minute)
		cancel()
		<-ended
		if backs != 3 {
			t.Errorf("told of %d returns of 3", backs)
		}
	})
}
