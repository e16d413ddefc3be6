package gpu

import (
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/inventory"
)

// Unknown stands for a number that a device does not tell.
const Unknown = inventory.NUMAUnknown

// Memory is a device's memory.
type Memory struct {
	Known       bool
	Total, Free bytesize.Bytes // only when known
}

// Device is a GPU, or a MIG slice of one.
type Device struct {
	Index       int    // of the GPU, as the driver counts; it may change with a restart
	UUID        string // "GPU-…" or "MIG-…"; it lasts. "" when the device never told it
	Name        string // of the model
	PCI         string // "0000:17:00.0", "" for unknown
	NUMANode    int    // Unknown when the host does not say
	MIG         bool   // it is a slice
	Memory      Memory
	Utilization int // percent of time a kernel ran lately, or Unknown
	// PowerMW is the electric power, mW, EnergyMJ the energy since the driver was loaded, mJ; or Unknown.
	PowerMW, EnergyMJ int64

	Healthy bool
	Reason  string // why not, or what the last poll complained of
}

// Capacity is the memory that jobs may have: the smaller of the device's and the configured amount. Without either it
// is not known and the device takes no jobs. A configured amount of 0 is none.
func (d Device) Capacity(configured bytesize.Bytes) (bytesize.Bytes, bool) {
	switch {
	case d.Memory.Known && configured > 0:
		return min(d.Memory.Total, configured), true
	case d.Memory.Known:
		return d.Memory.Total, true
	}
	return configured, configured > 0
}

// Inventory is what the last poll found.
type Inventory struct {
	Devices []Device // by index; those that are gone stay, unhealthy
	Driver  string   // its version, "" when there is none
	Missing string   // why there can be no devices: "NVML library not found"; "" when there can
	At      time.Time
}

// Reading is what one poll got of one device.
type Reading struct {
	Device Device // without health
	Err    error  // the device answered with an error; Device then holds what is known of it
	Lost   bool   // the error is final: the device is lost or needs a reset
}

// Library is what a Monitor asks. It is called from one goroutine at a time.
type Library interface {
	// Open loads and starts the library. After an error nothing else is called.
	Open() (driver string, err error)
	// Read asks every device. The error is for all of them.
	Read() ([]Reading, error)
	// Close gives the library up.
	Close()
}
