package intake

import (
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/time/rate"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// limits bounds each tenant, and all of them together.
type limits struct {
	config Config
	checks *semaphore.Weighted

	mu      sync.Mutex
	tenants map[job.Tenant]*tenant
}

type tenant struct {
	rate     *rate.Limiter
	inFlight int64
}

// tenantsKept bounds the map: tenants are named by credentials, so there are few; the idle are forgotten beyond this.
const tenantsKept = 1000

func newLimits(c Config) *limits {
	return &limits{config: c, checks: semaphore.NewWeighted(int64(c.ChecksMax)), tenants: map[job.Tenant]*tenant{}}
}

func (l *limits) of(name job.Tenant) *tenant {
	t := l.tenants[name]
	if t == nil {
		if len(l.tenants) >= tenantsKept {
			l.forget()
		}
		every := rate.Inf
		if l.config.SubmitsPerMinute > 0 {
			every = rate.Limit(float64(l.config.SubmitsPerMinute) / 60)
		}
		t = &tenant{rate: rate.NewLimiter(every, l.config.SubmitBurst)}
		l.tenants[name] = t
	}
	return t
}

func (l *limits) forget() {
	for name, t := range l.tenants {
		if t.inFlight == 0 {
			delete(l.tenants, name)
		}
	}
}

// allow counts one request.
func (l *limits) allow(name job.Tenant, now time.Time) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.of(name).rate.AllowN(now, 1) {
		return fault.WithHint(fault.New(fault.Exhausted, "tenant %s makes more than %d submit requests per minute", name,
			l.config.SubmitsPerMinute), "submit again later")
	}
	return nil
}

// enter waits for a turn to check an input and books its bytes; done ends both.
func (l *limits) enter(ctx context.Context, name job.Tenant, bytes int64) (done func(), err error) {
	l.mu.Lock()
	t := l.of(name)
	if t.inFlight+bytes > int64(l.config.InFlightBytesMax) {
		held := t.inFlight
		l.mu.Unlock()
		return nil, fault.WithHint(fault.New(fault.Exhausted,
			"tenant %s has %d bytes of inputs in flight, %d more are over %d",
			name, held, bytes, int64(l.config.InFlightBytesMax)), "submit again later")
	}
	t.inFlight += bytes
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		t.inFlight -= bytes
		l.mu.Unlock()
	}
	if err := l.checks.Acquire(ctx, 1); err != nil {
		leave()
		return nil, fmt.Errorf("wait for a turn to check the input: %w", err)
	}
	return func() {
		l.checks.Release(1)
		leave()
	}, nil
}
