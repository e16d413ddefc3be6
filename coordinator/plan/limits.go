package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
)

// Limits of the inputs.
const (
	// FileBytesMax bounds a file of TOML.
	FileBytesMax = 1 << 20
	// KindsMax bounds the kinds of nodes, NodesMax all nodes, DevicesMax the devices of one.
	KindsMax   = 16
	NodesMax   = 256
	DevicesMax = 16
	// CircuitsMax bounds the circuits of a profile, CurveMax the points of a curve.
	CircuitsMax = 32
	CurveMax    = 64
	// LoadsMax bounds the entries of a load, PartitionsMax all partitions of its jobs.
	LoadsMax      = 256
	PartitionsMax = 200_000
	// CoresMax bounds the cores of a node, SlotsMax its synthesis slots, FeedersMax those of a device.
	CoresMax   = 4096
	SlotsMax   = 1024
	FeedersMax = 16
	// SecondsMax bounds the time of a stage and the pause between two jobs.
	SecondsMax = 1e6
	// HorizonMax bounds simulated time: ten years.
	HorizonMax = 87_660 * time.Hour
	// MoneyMax bounds prices, WattsMax power.
	MoneyMax = 1e9
	WattsMax = 1e6
)

// checker collects what is wrong with an input, all at once.
type checker struct {
	what string
	errs []string
}

func (c *checker) addf(format string, args ...any) {
	if len(c.errs) < 20 {
		c.errs = append(c.errs, fmt.Sprintf(format, args...))
	}
}

// number wants a finite number of a range; min itself is refused when it is open.
func (c *checker) number(key string, value, min, max float64, open bool) {
	if math.IsNaN(value) || value < min || value > max || open && value == min {
		from := "at least"
		if open {
			from = "more than"
		}
		c.addf("%s is %v: it must be %s %v and at most %v", key, value, from, min, max)
	}
}

func (c *checker) count(key string, value, min, max int) {
	if value < min || value > max {
		c.addf("%s is %d: from %d to %d", key, value, min, max)
	}
}

// err is all that was found, with a hint, or nil.
func (c *checker) err(hint string) error {
	if len(c.errs) == 0 {
		return nil
	}
	text := c.what + ": " + c.errs[0]
	for _, more := range c.errs[1:] {
		text += "; " + more
	}
	return fault.WithHint(fault.New(fault.Invalid, "%s", text), hint)
}
