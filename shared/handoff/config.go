package handoff

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
)

// Kind is where a segment lies.
type Kind string

// Kinds.
const (
	SHM  Kind = "shm"  // memory: a tmpfs
	Disk Kind = "disk" // any other file system
)

// Limits.
const (
	bodyBytesMax = 1 << 40
	pageBytesMax = 1 << 30
	// filesMax bounds how many files of one folder are looked at.
	filesMax = 100_000
)

// Points of package hook that this package comes by (hook H7).
const (
	PointAfterCreate    = "handoff.after-create"     // the file exists, with no size
	PointAfterSize      = "handoff.after-size"       // its space is allocated, it has no header
	PointBeforeLastByte = "handoff.before-last-byte" // the body is there, the seal's checksums are not
	PointBeforeSeal     = "handoff.before-seal"      // only the mark is missing
	PointAfterSeal      = "handoff.after-seal"
	PointBeforeMap      = "handoff.before-map" // a reader has checked everything and not mapped
	PointAfterMap       = "handoff.after-map"
)

// Config says where segments lie.
type Config struct {
	// Path is the spill folder, usually on a tmpfs. It is created (its parent must exist). Required.
	Path string
	// DiskPath is where segments go when Path has no room; "" means nowhere.
	DiskPath string
	// Group is the number of the group that may read segments (0640, folders 2770); −1, the default of NewConfig, is none
	// (0600, folders 0700).
	Group int
	// SealWait is how long a reader waits for a segment to be sealed. Default 5 s.
	SealWait time.Duration
	// PoolIdle is how long a free segment is kept for reuse. Default 30 s, one sweep interval.
	PoolIdle time.Duration
	// Points are for tests; nil does nothing.
	Points *hook.Points
	// Flight counts the segments that this process maps; nil counts none.
	Flight *flight.Recorder
}

// NewConfig gives the defaults.
func NewConfig(path string) Config {
	return Config{Path: path, Group: -1, SealWait: 5 * time.Second, PoolIdle: 30 * time.Second}
}

// Validate reports all problems at once (kind Invalid).
func (c Config) Validate() error {
	var all []error
	if !filepath.IsAbs(c.Path) {
		all = append(all, fmt.Errorf("path %q is not absolute", c.Path))
	}
	if c.DiskPath != "" && !filepath.IsAbs(c.DiskPath) {
		all = append(all, fmt.Errorf("disk path %q is not absolute", c.DiskPath))
	}
	if c.DiskPath != "" && filepath.Clean(c.DiskPath) == filepath.Clean(c.Path) {
		all = append(all, fmt.Errorf("disk path is the path %q", c.Path))
	}
	if c.Group < -1 {
		all = append(all, fmt.Errorf("group %d", c.Group))
	}
	if c.SealWait <= 0 || c.PoolIdle <= 0 {
		all = append(all, fmt.Errorf("seal wait %s and pool idle %s must be more than zero", c.SealWait, c.PoolIdle))
	}
	return fault.As(fault.Invalid, errors.Join(all...))
}

// Spec is the segment to create.
type Spec struct {
	Attempt job.Attempt
	// Circuit is its circuit's id, 1 … 64 bytes.
	Circuit string
	// Bytes is the size of the body.
	Bytes bytesize.Bytes
	// Kind is where it must lie; "" means in memory, or on disk if that is configured and memory is short.
	Kind Kind
}

func (s Spec) check() error {
	if err := checkAttempt(s.Attempt); err != nil {
		return err
	}
	if len(s.Circuit) == 0 || len(s.Circuit) > circuitBytesMax {
		return fault.New(fault.Invalid, "segment %s: circuit id %q", s.Attempt, s.Circuit)
	}
	if s.Bytes <= 0 || s.Bytes > bodyBytesMax {
		return fault.New(fault.Invalid, "segment %s: body of %d bytes", s.Attempt, int64(s.Bytes))
	}
	return nil
}

// checkAttempt makes sure that a name made of an attempt is a plain file name.
func checkAttempt(a job.Attempt) error {
	if _, err := job.ParseAttempt(a.String()); err != nil {
		return fault.As(fault.Invalid, fmt.Errorf("name segment: %w", err))
	}
	return nil
}

// Want is the segment to open.
type Want struct {
	Attempt job.Attempt
	Circuit string
	// Bytes is the size that the body must have; 0 accepts any.
	Bytes bytesize.Bytes
	// Kind is where it lies; "" looks in all folders.
	Kind Kind
	// Wait is how long to wait for the seal; 0 means Config.SealWait.
	Wait time.Duration
	// Flight counts a segment that comes by FromFile; nil counts none. Spill has its own.
	Flight *flight.Recorder
}

// Name is the file name of an attempt's segment.
func Name(a job.Attempt) string { return a.String() + segSuffix }
