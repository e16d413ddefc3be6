package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
)

// metrics are what the gateway counts.
type metrics struct {
	fresh, existing atomic.Uint64 // accepted submissions: new jobs, and jobs that were there

	mu       sync.Mutex
	requests map[string]uint64 // by kind
}

func newMetrics() *metrics { return &metrics{requests: map[string]uint64{}} }

func (m *metrics) accepted(existing bool) {
	if existing {
		m.existing.Add(1)
	} else {
		m.fresh.Add(1)
	}
}

// asked counts a request. Kinds without a name are counted as one.
func (m *metrics) asked(kind cuzkv1.ProofKind) {
	name, ok := cuzkv1.ProofKind_name[int32(kind)]
	if !ok {
		name = "OTHER"
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests[name]++
}

// text is all of it as Prometheus reads it.
func (m *metrics) text(e *engine) string {
	var b strings.Builder
	family := func(name, kind, help string) { fmt.Fprintf(&b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	m.mu.Lock()
	family("proofrack_gateway_requests_total", "counter", "Requests for a proof.")
	for _, kind := range slices.Sorted(maps.Keys(m.requests)) {
		fmt.Fprintf(&b, "proofrack_gateway_requests_total{kind=%q} %d\n", kind, m.requests[kind])
	}
	m.mu.Unlock()
	family("proofrack_gateway_accepted_total", "counter", "Requests that the rack accepted, by whether it had the job.")
	fmt.Fprintf(&b, "proofrack_gateway_accepted_total{existing=\"false\"} %d\n", m.fresh.Load())
	fmt.Fprintf(&b, "proofrack_gateway_accepted_total{existing=\"true\"} %d\n", m.existing.Load())
	family("proofrack_gateway_unread", "gauge", "Requests that are not read yet, by kind.")
	for _, kind := range slices.Sorted(maps.Keys(e.lanes.byKind)) {
		fmt.Fprintf(&b, "proofrack_gateway_unread{kind=%q} %d\n", kind, e.lanes.byKind[kind].waiting.Load())
	}
	family("proofrack_gateway_submitting", "gauge", "Requests on their way to the rack.")
	fmt.Fprintf(&b, "proofrack_gateway_submitting %d\n", e.submissions.count())
	family("proofrack_gateway_jobs_ended_total", "counter", "Jobs of the tenant that ended while the gateway watched.")
	fmt.Fprintf(&b, "proofrack_gateway_jobs_ended_total{state=\"done\"} %d\n", e.rack.completed.Load())
	fmt.Fprintf(&b, "proofrack_gateway_jobs_ended_total{state=\"failed\"} %d\n", e.rack.failed.Load())
	family("proofrack_gateway_rack_connected", "gauge", "1 when connected to the rack's NATS.")
	fmt.Fprintf(&b, "proofrack_gateway_rack_connected %d\n", oneIf(e.rack.connected() == nil))
	if e.upstream != nil {
		family("proofrack_gateway_upstream_healthy", "gauge", "1 when the upstream answered the last check.")
		fmt.Fprintf(&b, "proofrack_gateway_upstream_healthy %d\n", oneIf(e.upstream.healthy() == nil))
	}
	return b.String()
}

func oneIf(holds bool) int {
	if holds {
		return 1
	}
	return 0
}
