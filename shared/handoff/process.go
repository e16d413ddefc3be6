package handoff

import (
	"fmt"
	"os"

	"github.com/proofrack/proofrack/shared/inventory"
)

// Process names one process of one boot of a host, for evidence of its life.
type Process struct {
	PID int `json:"pid"`
	// Start is when it started, in clock ticks since boot.
	Start uint64 `json:"start"`
	// Boot is the host's boot id.
	Boot string `json:"boot"`
	// Space is its process number space; numbers of other spaces mean nothing here.
	Space string `json:"space,omitempty"`
}

// Self is this process.
func Self() (Process, error) {
	host := inventory.NewHost()
	boot, err := host.BootID()
	if err != nil {
		return Process{}, err
	}
	self, err := host.Self()
	if err != nil {
		return Process{}, err
	}
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return Process{}, fmt.Errorf("read process space: %w", err)
	}
	return Process{PID: self.PID, Start: self.StartTicks, Boot: boot, Space: space}, nil
}
