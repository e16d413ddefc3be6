package metrics

import (
	"fmt"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// labelBytesMax bounds the value of a label.
const labelBytesMax = 128

// Emitter takes the numbers of one scrape. It is safe for concurrent use; what comes after the scrape is ignored.
type Emitter struct {
	registry *Registry

	mu      sync.Mutex
	closed  bool
	counts  map[Name]int
	seen    map[string]bool
	metrics []prometheus.Metric
	leftOut int
}

// Put shows a gauge's or counter's value. Labels are in the order of the family's. The first value of a series counts.
func (e *Emitter) Put(name Name, value float64, labels ...string) {
	f := e.registry.family(name, labels)
	kind := prometheus.GaugeValue
	switch f.Type {
	case Gauge:
	case Counter:
		kind = prometheus.CounterValue
	case Histogram:
		panic(fmt.Sprintf("metrics: %s is a histogram, not a number", name))
	}
	e.add(f, labels, func(labels []string) prometheus.Metric {
		return prometheus.MustNewConstMetric(f.desc, kind, value, labels...)
	})
}

// Flag shows 1 for true and 0 for false.
func (e *Emitter) Flag(name Name, on bool, labels ...string) {
	value := 0.0
	if on {
		value = 1
	}
	e.Put(name, value, labels...)
}

// Buckets is a histogram: Counts[i] values were at most Bounds[i], and not at most any bound before; the last of
// Counts, which is one longer, has those over all bounds.
type Buckets struct {
	Bounds []float64
	Counts []uint64
	// Sum is of all values.
	Sum float64
}

// PutHistogram shows a histogram.
func (e *Emitter) PutHistogram(name Name, b Buckets, labels ...string) {
	f := e.registry.family(name, labels)
	if f.Type != Histogram || len(b.Counts) != len(b.Bounds)+1 {
		panic(fmt.Sprintf("metrics: %s with %d counts and %d bounds", name, len(b.Counts), len(b.Bounds)))
	}
	upTo := make(map[float64]uint64, len(b.Bounds))
	var count uint64
	for i, n := range b.Counts {
		count += n
		if i < len(b.Bounds) {
			upTo[b.Bounds[i]] = count
		}
	}
	e.add(f, labels, func(labels []string) prometheus.Metric {
		return prometheus.MustNewConstHistogram(f.desc, count, b.Sum, upTo, labels...)
	})
}

func (e *Emitter) add(f *family, labels []string, metric func(labels []string) prometheus.Metric) {
	clean := cleaned(labels)
	key := string(f.Name) + "\xff" + strings.Join(clean, "\xff")
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.closed:
		return
	case e.seen[key], e.counts[f.Name] >= e.registry.config.SeriesMax:
		e.leftOut++
		return
	}
	e.seen[key] = true
	e.counts[f.Name]++
	e.metrics = append(e.metrics, metric(clean))
}

// take adds what another emitter has, and closes that.
func (e *Emitter) take(other *Emitter) {
	other.close()
	other.mu.Lock()
	defer other.mu.Unlock()
	for key := range other.seen {
		e.seen[key] = true
	}
	for name, n := range other.counts {
		e.counts[name] += n
	}
	e.metrics = append(e.metrics, other.metrics...)
	e.leftOut += other.leftOut
}

func (e *Emitter) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
}

// cleaned are label values that Prometheus takes.
func cleaned(labels []string) []string {
	out := make([]string, len(labels))
	for i, l := range labels {
		out[i] = strings.ToValidUTF8(l[:min(len(l), labelBytesMax)], "")
	}
	return out
}

// family is a family that must be there, with as many labels.
func (r *Registry) family(name Name, labels []string) *family {
	f := r.families[name]
	if f == nil || len(f.Labels) != len(labels) {
		panic(fmt.Sprintf("metrics: %s with labels %q is in no list", name, labels))
	}
	return f
}
