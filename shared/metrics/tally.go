package metrics

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
)

// Other is what a label says of series that are over the bound.
const Other = "other"

// Tally is a counter by labels, for what leaves no truth behind that could be read later. Its methods may be called
// from several goroutines and on nil.
type Tally struct {
	name      Name
	labels    int
	seriesMax int

	mu     sync.Mutex
	series map[string]*tallied
}

type tallied struct {
	labels []string
	value  float64
}

// seriesOfTallyMax bounds the series of a Tally or Times; the rest is counted as Other.
const seriesOfTallyMax = 1000

// Tally makes a counter of a family. Series named in first are shown from the start, with 0: a rise from nothing is
// seen only so.
func (r *Registry) Tally(name Name, first ...[]string) *Tally {
	f := r.families[name]
	if f == nil || f.Type != Counter {
		panic(fmt.Sprintf("metrics: %s is no counter in the list", name))
	}
	t := &Tally{
		name: name, labels: len(f.Labels), seriesMax: min(seriesOfTallyMax, r.config.SeriesMax),
		series: map[string]*tallied{},
	}
	if t.labels == 0 {
		first = [][]string{nil}
	}
	for _, labels := range first {
		t.Add(0, labels...)
	}
	r.addTally(t)
	return t
}

func (r *Registry) addTally(t emitting) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tallies = append(r.tallies, t)
}

// Add counts. A negative or infinite value counts nothing.
func (t *Tally) Add(value float64, labels ...string) {
	if t == nil || value < 0 || math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	if len(labels) != t.labels {
		panic(fmt.Sprintf("metrics: %s with labels %q", t.name, labels))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.series[keyOf(labels)]
	if s == nil {
		labels = bounded(labels, len(t.series), t.seriesMax)
		if s = t.series[keyOf(labels)]; s == nil {
			s = &tallied{labels: slices.Clone(labels)}
			t.series[keyOf(labels)] = s
		}
	}
	s.value += value
}

// Inc counts one.
func (t *Tally) Inc(labels ...string) { t.Add(1, labels...) }

func (t *Tally) emit(e *Emitter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.series {
		e.Put(t.name, s.value, s.labels...)
	}
}

func keyOf(labels []string) string { return strings.Join(cleaned(labels), "\xff") }

// bounded are the labels of a new series, or Other when there are too many: the last place is kept for that.
func bounded(labels []string, count, most int) []string {
	if count < most-1 {
		return labels
	}
	return slices.Repeat([]string{Other}, len(labels))
}

// Times is a histogram of seconds by labels. Its methods may be called from several goroutines and on nil.
type Times struct {
	name      Name
	labels    int
	seriesMax int
	bounds    []float64

	mu     sync.Mutex
	series map[string]*timed
}

type timed struct {
	labels  []string
	buckets Buckets
}

// SecondsBounds are the buckets of Times: 10 ms to three hours, half a decade each.
func SecondsBounds() []float64 {
	return []float64{0.01, 0.03, 0.1, 0.3, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 10800}
}

// Times makes a histogram of a family.
func (r *Registry) Times(name Name) *Times {
	f := r.families[name]
	if f == nil || f.Type != Histogram {
		panic(fmt.Sprintf("metrics: %s is no histogram in the list", name))
	}
	t := &Times{
		name: name, labels: len(f.Labels), seriesMax: min(seriesOfTallyMax, r.config.SeriesMax), bounds: SecondsBounds(),
		series: map[string]*timed{},
	}
	r.addTally(t)
	return t
}

// Observe counts a time in seconds. One that cannot be is left out.
func (t *Times) Observe(seconds float64, labels ...string) {
	if t == nil || seconds < 0 || math.IsNaN(seconds) || math.IsInf(seconds, 0) {
		return
	}
	if len(labels) != t.labels {
		panic(fmt.Sprintf("metrics: %s with labels %q", t.name, labels))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.series[keyOf(labels)]
	if s == nil {
		labels = bounded(labels, len(t.series), t.seriesMax)
		if s = t.series[keyOf(labels)]; s == nil {
			s = &timed{slices.Clone(labels), Buckets{Bounds: t.bounds, Counts: make([]uint64, len(t.bounds)+1)}}
			t.series[keyOf(labels)] = s
		}
	}
	at, _ := slices.BinarySearch(t.bounds, seconds)
	s.buckets.Counts[at]++
	s.buckets.Sum += seconds
}

func (t *Times) emit(e *Emitter) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.series {
		e.PutHistogram(t.name, s.buckets, s.labels...)
	}
}
