//go:build !wire1

package wire

// SynthTaskSince2 is what version 2 added to a SynthTask.
type SynthTaskSince2 struct {
	// TestMarker asks a test hook for a fault; only workers that are told to look at it.
	TestMarker string `json:"test_marker,omitempty"`
}

// ProveTaskSince2 is what version 2 added to a ProveTask.
type ProveTaskSince2 struct {
	// Seconds are what synthesis measured; they go on into the result, and the scheduler expects the next ones to take as
	// long.
	Seconds map[string]float64 `json:"seconds,omitempty"`
}

// Took is what synthesis measured, in seconds, as a task carries it.
func Took(seconds map[string]float64) ProveTaskSince2 { return ProveTaskSince2{Seconds: seconds} }

// Measured is what synthesis measured, in seconds; nil from a build that did not tell.
func (t *ProveTaskSince2) Measured() map[string]float64 { return t.Seconds }

// Marker is the test marker, "" when there is none.
func (t *SynthTaskSince2) Marker() string { return t.TestMarker }
