package top

import (
	"errors"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
)

// ColumnsMin is the narrowest screen that has room.
const ColumnsMin = 40

// Config says how a rack is looked at.
type Config struct {
	// Every is how often each kind of request is made, at most (1 s).
	Every time.Duration
	// Within bounds a request (5 s).
	Within time.Duration
	// Now tells the time.
	Now func() time.Time
	// Zone is where times are shown in.
	Zone *time.Location
}

// DefaultConfig looks once a second.
func DefaultConfig() Config {
	return Config{Every: time.Second, Within: 5 * time.Second, Now: time.Now, Zone: time.Local}
}

// Validate refuses what can't be (fault.Invalid).
func (c *Config) Validate() error {
	var wrong []error
	for name, d := range map[string]time.Duration{"every": c.Every, "within": c.Within} {
		if d <= 0 || d > time.Hour {
			wrong = append(wrong, fault.New(fault.Invalid, "%s: must be over 0 and at most 1h, is %s", name, d))
		}
	}
	if c.Now == nil || c.Zone == nil {
		wrong = append(wrong, fault.New(fault.Invalid, "now and zone must be given"))
	}
	return fault.As(fault.Invalid, errors.Join(wrong...))
}

// clock is a moment's time of day.
func (c *Config) clock(at time.Time) string { return at.In(c.Zone).Format(time.TimeOnly) }

// since is how long ago a moment was.
func (c *Config) since(at time.Time) string { return span(c.Now().Sub(at)) }
