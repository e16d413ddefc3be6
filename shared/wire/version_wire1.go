//go:build wire1

package wire

// Versions of a build before the fields of version 2, kept for tests of rolling restarts.
const (
	VersionMin = 1
	Version    = 1
)

// SynthTaskSince2 is empty: this build knows nothing of version 2.
type SynthTaskSince2 struct{}

// ProveTaskSince2 is empty: this build tells nobody how long synthesis took.
type ProveTaskSince2 struct{}

// Took leaves out what synthesis measured.
func Took(map[string]float64) ProveTaskSince2 { return ProveTaskSince2{} }

// Measured is always nil.
func (*ProveTaskSince2) Measured() map[string]float64 { return nil }

// Marker is always "".
func (*SynthTaskSince2) Marker() string { return "" }
