package intake

import (
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// limits bounds each tenant, and all of them together.
type limits struct {
	config Config
	turns  *turns

	mu      sync.Mutex
	tenants map[job.Tenant]*tenant
}

type tenant struct {
	rate     *rate.Limiter
	inHand   int   // requests
	inFlight int64 // bytes of their inputs
	storing  int64 // bytes that are being stored for jobs without a record
}

// tenantsKept bounds the map: tenants are named by credentials, so there are few; the idle are forgotten beyond this.
const tenantsKept = 1000

func newLimits(c Config) *limits {
	return &limits{config: c, turns: newTurns(c.ChecksMax), tenants: map[job.Tenant]*tenant{}}
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
		if t.inHand == 0 {
			delete(l.tenants, name)
		}
	}
}

// allow counts one request of a tenant; done ends it. So many of them may be in hand as may be made at once: whoever
// answers requests has room for that of every tenant, and one that is slow takes its own room only.
func (l *limits) allow(name job.Tenant, now time.Time) (done func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of(name)
	if t.inHand >= l.config.SubmitBurst {
		return nil, fault.WithHint(fault.New(fault.Exhausted, "tenant %s has %d submit requests that are not answered yet",
			name, t.inHand), "submit again when some are answered")
	}
	if !t.rate.AllowN(now, 1) {
		return nil, fault.WithHint(fault.New(fault.Exhausted, "tenant %s makes more than %d submit requests per minute",
			name, l.config.SubmitsPerMinute), "submit again later")
	}
	t.inHand++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		t.inHand--
	}, nil
}

// book books the bytes of a tenant's input; done ends that. The tenant must have a request in hand.
func (l *limits) book(name job.Tenant, bytes int64) (done func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.of(name)
	if t.inFlight+bytes > int64(l.config.InFlightBytesMax) {
		return nil, fault.WithHint(fault.New(fault.Exhausted,
			"tenant %s has %d bytes of inputs in flight, %d more are over %d",
			name, t.inFlight, bytes, int64(l.config.InFlightBytesMax)), "submit again later")
	}
	t.inFlight += bytes
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		t.inFlight -= bytes
	}, nil
}

// storing counts what one request stores before its job's record does.
type storing struct {
	limits *limits
	tenant *tenant
	bytes  int64
}

// storing begins it, for a tenant that has a request in hand.
func (l *limits) storing(name job.Tenant) *storing {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &storing{limits: l, tenant: l.of(name)}
}

// add counts further bytes and gives the sum over the tenant's requests.
func (s *storing) add(bytes int) int64 {
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	s.bytes += int64(bytes)
	s.tenant.storing += int64(bytes)
	return s.tenant.storing
}

func (s *storing) end() {
	s.limits.mu.Lock()
	defer s.limits.mu.Unlock()
	s.tenant.storing -= s.bytes
}
