//go:build wire1

package wire

// Versions of a build before the field of version 2, kept for tests of rolling restarts.
const (
	VersionMin = 1
	Version    = 1
)

// SynthTaskSince2 is empty: this build knows nothing of version 2.
type SynthTaskSince2 struct{}

// Marker is always "".
func (*SynthTaskSince2) Marker() string { return "" }
