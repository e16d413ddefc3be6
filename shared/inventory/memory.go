package inventory

import (
	"fmt"
	"path"
	"strconv"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// Margin is the memory left to everything that no book knows: the kernel, the runtime, other programs.
type Margin struct {
	Percent int            `doc:"Percent of memory left to what is not booked, 0 to 90."`
	Fixed   bytesize.Bytes `doc:"As percent, in bytes, and besides it; at most an eighth."`
}

// DefaultMargin is 5 % and 512 MiB.
func DefaultMargin() Margin { return Margin{Percent: 5, Fixed: 512 * bytesize.MiB} }

// Validate demands a percentage that leaves something.
func (m *Margin) Validate() error {
	if m.Percent < 0 || m.Percent > 90 {
		return fault.New(fault.Invalid, "percent: must be 0 to 90, is %d", m.Percent)
	}
	if m.Fixed < 0 {
		return fault.New(fault.Invalid, "fixed: must not be negative")
	}
	return nil
}

// of is the margin of an amount. The fixed part takes at most an eighth, so that a small container keeps something.
func (m Margin) of(amount bytesize.Bytes) bytesize.Bytes {
	return amount/100*bytesize.Bytes(m.Percent) + min(m.Fixed, amount/8)
}

// Budget is what the margin leaves of an amount.
func (m Margin) Budget(amount bytesize.Bytes) bytesize.Bytes { return amount - m.of(amount) }

// Memory is what of the host's memory this process may use.
type Memory struct {
	Total     bytesize.Bytes // of the host
	Available bytesize.Bytes // of the host now, by the kernel's estimate
	Limit     bytesize.Bytes // lowest limit of a control group below Total; 0 with an empty LimitFile is none
	LimitFile string         // the file that says so
	Budget    bytesize.Bytes // least of both, minus the margin
}

// Memory reads what memory there is.
func (h *Host) Memory(margin Margin) (Memory, error) {
	text, err := h.read("proc/meminfo")
	if err != nil {
		return Memory{}, err
	}
	total, ok := kilobytes(text, "MemTotal")
	if !ok {
		return Memory{}, fault.New(fault.Corrupt, "proc/meminfo has no MemTotal in kB")
	}
	available, _ := kilobytes(text, "MemAvailable")
	m := Memory{Total: bytesize.Bytes(total) * bytesize.KiB, Available: bytesize.Bytes(available) * bytesize.KiB}
	groups, err := h.groups("memory")
	if err != nil {
		return Memory{}, err
	}
	least := m.Total
	for _, g := range groups {
		names := []string{"memory.limit_in_bytes"}
		if g.unified {
			names = []string{"memory.max", "memory.high"} // above high the kernel throttles
		}
		for _, folder := range g.folders {
			for _, name := range names {
				file := path.Join(folder, name)
				limit, err := h.limit(file)
				if err != nil {
					return Memory{}, err
				}
				if limit < least {
					least, m.Limit, m.LimitFile = limit, limit, "/"+file
				}
			}
		}
	}
	m.Budget = margin.Budget(least)
	return m, nil
}

// limit reads a limit of bytes; bytesize.Max is none. The first layout says "none" by the largest number of whole
// pages, which is beyond every amount we know.
func (h *Host) limit(file string) (bytesize.Bytes, error) {
	text, err := h.read(file)
	if absent(err) || err == nil && text == "max" {
		return bytesize.Max, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fault.As(fault.Corrupt, fmt.Errorf("memory limit %s: %w", file, err))
	}
	return bytesize.Bytes(min(n, uint64(bytesize.Max))), nil
}
