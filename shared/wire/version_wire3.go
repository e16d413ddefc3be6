//go:build wire3

package wire

// Versions of a build that is two ahead of version 1, kept for tests: it must never be paired with one.
const (
	VersionMin = 2
	Version    = 3
)

// SynthTaskSince2 is what version 2 added to a SynthTask.
type SynthTaskSince2 struct {
	// TestMarker asks a test hook for a fault; only workers that are told to look at it.
	TestMarker string `json:"test_marker,omitempty"`
}

// Marker is the test marker, "" when there is none.
func (t *SynthTaskSince2) Marker() string { return t.TestMarker }
