package metrics

import (
	"errors"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/service"
)

// Off as Config.Listen shows no metrics.
const Off = "off"

// Config says where a process shows its metrics.
type Config struct {
	Listen    string        `doc:"Address:port of /metrics; \"\" is beside the health checks, \"off\" is nowhere."`
	SeriesMax int           `doc:"Most series of one metric that are shown; more are left out and counted."`
	Within    time.Duration `doc:"How long what is asked for numbers may take to answer."`
}

// Bounds of Config.
const (
	seriesMost = 1 << 20
	withinMost = time.Minute
)

// DefaultConfig shows metrics beside the health checks, which are on loopback.
func DefaultConfig() Config { return Config{SeriesMax: 10000, Within: 2 * time.Second} }

// Validate reports all problems at once (kind Invalid).
func (c *Config) Validate() error {
	var errs []error
	if c.Listen != Off {
		if err := (&service.HTTPConfig{Listen: c.Listen}).Validate(); err != nil {
			errs = append(errs, err)
		}
	}
	if c.SeriesMax < 1 || c.SeriesMax > seriesMost {
		errs = append(errs, fmt.Errorf("series_max: must be 1 to %d, is %d", seriesMost, c.SeriesMax))
	}
	if c.Within <= 0 || c.Within > withinMost {
		errs = append(errs, fmt.Errorf("within: must be more than 0, at most %s, is %s", withinMost, c.Within))
	}
	return fault.As(fault.Invalid, errors.Join(errs...))
}
