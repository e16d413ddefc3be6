package sizes

import (
	"cmp"
	"strings"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// VRAM stands for the own memory of any device: sizes are learned for a kind of devices, not for one of them.
const VRAM ledger.Pool = "vram"

// PoolOf is the pool that a size is learned for.
func PoolOf(p ledger.Pool) ledger.Pool {
	if strings.HasPrefix(string(p), string(VRAM)+":") {
		return VRAM
	}
	return p
}

// Key is what a size is learned for: a stage of attempts at a circuit on devices of a kind, in a pool.
type Key struct {
	Circuit string    `json:"circuit"`
	Stage   job.Stage `json:"stage"` // job.Synthesizing or job.Proving
	// Kind is the devices' model, "" where it is not known.
	Kind string      `json:"kind"`
	Pool ledger.Pool `json:"pool"` // ram, shm, disk or vram
}

// Bounds of a key's texts.
const (
	CircuitBytesMax = 96
	KindBytesMax    = 96
)

// Check refuses what no size is learned for (kind Invalid).
func (k Key) Check() error {
	switch {
	case k.Circuit == "" || len(k.Circuit) > CircuitBytesMax:
		return fault.New(fault.Invalid, "circuit of %d bytes: must be 1 to %d", len(k.Circuit), CircuitBytesMax)
	case k.Stage != job.Synthesizing && k.Stage != job.Proving:
		return fault.New(fault.Invalid, "stage %.40q: sizes are learned for %s and %s", k.Stage, job.Synthesizing,
			job.Proving)
	case len(k.Kind) > KindBytesMax:
		return fault.New(fault.Invalid, "kind of device of %d bytes: must be 0 to %d", len(k.Kind), KindBytesMax)
	}
	switch k.Pool {
	case ledger.PoolRAM, ledger.PoolSHM, ledger.PoolDisk, VRAM:
		return nil
	}
	return fault.New(fault.Invalid, "pool %.40q: sizes are learned for ram, shm, disk and vram", k.Pool)
}

func (k Key) compare(o Key) int {
	return cmp.Or(cmp.Compare(k.Circuit, o.Circuit), cmp.Compare(k.Stage, o.Stage), cmp.Compare(k.Kind, o.Kind),
		cmp.Compare(k.Pool, o.Pool))
}

// SpeedKey is what a speed is learned for.
type SpeedKey struct {
	Circuit string     `json:"circuit"`
	Node    job.Node   `json:"node"`
	Device  job.Device `json:"device"`
}

// Check refuses what no speed is learned for (kind Invalid).
func (k SpeedKey) Check() error {
	if k.Circuit == "" || len(k.Circuit) > CircuitBytesMax {
		return fault.New(fault.Invalid, "circuit of %d bytes: must be 1 to %d", len(k.Circuit), CircuitBytesMax)
	}
	if _, err := job.ParseNode(string(k.Node)); err != nil {
		return fault.As(fault.Invalid, err)
	}
	_, err := job.ParseDevice(string(k.Device))
	return fault.As(fault.Invalid, err)
}

func (k SpeedKey) compare(o SpeedKey) int {
	return cmp.Or(cmp.Compare(k.Circuit, o.Circuit), cmp.Compare(k.Node, o.Node), cmp.Compare(k.Device, o.Device))
}
