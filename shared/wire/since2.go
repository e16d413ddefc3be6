//go:build !wire1

package wire

// SynthTaskSince2 is what version 2 added to a SynthTask.
type SynthTaskSince2 struct {
	// TestMarker asks a test hook for a fault; only workers that are told to look at it.
	TestMarker string `json:"test_marker,omitempty"`
}

// Marker is the test marker, "" when there is none.
func (t *SynthTaskSince2) Marker() string { return t.TestMarker }
