package service_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/service"
)

func retryConfig() service.RetryConfig {
	return service.RetryConfig{FirstWait: 100 * time.Millisecond, MaxWait: 2 * time.Second, Within: time.Minute,
		LogEvery: 10 * time.Second}
}

func TestRetryGoesOnWithGrowingWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var waits []time.Duration
		last := time.Now()
		got, err := service.Retry(t.Context(), retryConfig(), zerolog.New(&log), "connect to redis",
			func(context.Context) (int, error) {
				waits, last = append(waits, time.Since(last)), time.Now()
				if len(waits) < 20 {
					return 0, fault.New(fault.Transient, "connection refused")
				}
				return 7, nil
			})
		if got != 7 || err != nil {
			t.Fatalf("%d, %v", got, err)
		}
		nominal := 100 * time.Millisecond
		for i, w := range waits[1:] {
			if w < nominal/2 || w > nominal*3/2 {
				t.Errorf("wait %d is %s, want about %s", i, w, nominal)
			}
			nominal = min(2*nominal, 2*time.Second)
		}
		// About 30 s of tries: a line at once, two or three in between, one at the end.
		lines := strings.Count(log.String(), "\n")
		if lines < 3 || lines > 6 || !strings.Contains(log.String(), "succeeded after retries") {
			t.Errorf("%d lines:\n%s", lines, log.String())
		}
	})
}

func TestRetryEnds(t *testing.T) {
	t.Parallel()
	away := fault.New(fault.Transient, "connection refused")
	wrong := fault.New(fault.Invalid, "wrong password")
	for name, c := range map[string]struct {
		try    error
		within time.Duration
		cancel time.Duration
		kind   fault.Kind
		text   string
		took   time.Duration // at most
		tries  int           // at most
	}{
		"when its time is over": {away, 5 * time.Second, 0, fault.Transient, "connection refused", 5 * time.Second, 12},
		"at another kind":       {wrong, time.Minute, 0, fault.Invalid, "dial: wrong password", 0, 1},
		"with its context":      {away, 0, time.Hour, fault.Cancelled, "context canceled", time.Hour, 4000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.cancel > 0 {
					time.AfterFunc(c.cancel, cancel)
				}
				config := retryConfig()
				config.Within = c.within
				tries := 0
				begun := time.Now()
				_, err := service.Retry(ctx, config, zerolog.Nop(), "dial", func(context.Context) (struct{}, error) {
					tries++
					return struct{}{}, c.try
				})
				if fault.KindOf(err) != c.kind || !strings.Contains(err.Error(), c.text) || !errors.Is(err, c.try) {
					t.Errorf("%v (%s)", err, fault.KindOf(err))
				}
				if took := time.Since(begun); took > c.took || tries > c.tries || c.cancel > 0 && took != c.took {
					t.Errorf("%d tries in %s", tries, took)
				}
			})
		})
	}
}
