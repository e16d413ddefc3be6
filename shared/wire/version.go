//go:build !wire1 && !wire3

package wire

// Versions of the wire that this build writes (Version) and reads (VersionMin … Version).
const (
	VersionMin = 1
	Version    = 2
)
