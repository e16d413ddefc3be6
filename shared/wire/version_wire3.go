//go:build wire3

package wire

// Versions of a build that is two ahead of version 1, kept for tests: it must never be paired with one.
const (
	VersionMin = 2
	Version    = 3
)
