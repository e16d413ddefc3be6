package intake

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/wire"
)

// Config bounds what clients may ask for.
type Config struct {
	// SubmitsPerMinute is how many requests a tenant may make; 0 is no bound. SubmitBurst is how many at once, and how
	// many of them may wait for their answers.
	SubmitsPerMinute int `doc:"Submit requests a tenant may make per minute; 0 is no bound."`
	SubmitBurst      int `doc:"Submit requests a tenant may make at once, and have unanswered."`
	// InFlightBytesMax bounds a tenant's inputs that are being read, checked and stored at the same time.
	InFlightBytesMax bytesize.Bytes `doc:"Bytes of one tenant's inputs that are in hand at a time."`
	// LiveJobsMax bounds a tenant's jobs that have not ended.
	LiveJobsMax int `doc:"Jobs of a tenant that have not ended; 0 is no bound."`
	// ChecksMax is how many inputs are checked at the same time, of all tenants.
	ChecksMax int `doc:"Inputs that are checked at the same time."`
	// CheckTimeout bounds one request from its first byte to the answer.
	CheckTimeout time.Duration `doc:"Time limit of one submit request."`
	// PathPrefixes are folders that inputs may be read from; URLHosts are hosts that they may be fetched from.
	PathPrefixes []string `doc:"Folders that inputs may be read from by path; none turns paths off."`
	URLHosts     []string `toml:"url_hosts" doc:"Hosts, or host:port, that inputs may be fetched from."`
	// URLAddresses are private networks that fetching may reach, e.g. "10.1.0.0/16".
	URLAddresses []string `toml:"url_addresses" doc:"Private networks that fetching may reach, as 10.1.0.0/16."`
}

// DefaultConfig is what a coordinator starts with.
func DefaultConfig() Config {
	return Config{
		SubmitsPerMinute: 600, SubmitBurst: 100, InFlightBytesMax: 2 * wire.ReferenceBytesMax, LiveJobsMax: 10_000,
		ChecksMax: 2, CheckTimeout: 2 * time.Minute,
	}
}

// Validate reports every value that cannot be.
func (c *Config) Validate() error {
	var all []error
	bad := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if c.SubmitsPerMinute < 0 || c.SubmitBurst < 1 {
		bad("submits_per_minute must be at least 0 and submit_burst at least 1")
	}
	if c.InFlightBytesMax < wire.ReferenceBytesMax {
		bad("in_flight_bytes_max %s must hold one input of the largest size, %s", c.InFlightBytesMax,
			bytesize.Bytes(wire.ReferenceBytesMax))
	}
	if c.ChecksMax < 1 || c.LiveJobsMax < 0 || c.CheckTimeout <= 0 {
		bad("checks_max must be at least 1, live_jobs_max at least 0, check_timeout above 0")
	}
	for _, prefix := range c.PathPrefixes {
		if !filepath.IsAbs(prefix) || filepath.Clean(prefix) != prefix || prefix == "/" {
			bad("path_prefixes: %q is not the clean absolute path of a folder below /", prefix)
		}
	}
	for _, network := range c.URLAddresses {
		if _, err := netip.ParsePrefix(network); err != nil {
			bad("url_addresses: %w", err)
		}
	}
	return errors.Join(all...)
}
