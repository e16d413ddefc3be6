package wire

import (
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// AdminMemory is the verb of operators for what was learned of attempts' memory and time.
const AdminMemory = "memory"

// What a MemoryRequest asks for, beside the list that "" asks for.
const (
	MemoryPin   = "pin"   // book so many bytes whatever is measured
	MemoryUnpin = "unpin" // go by what is measured again
)

// kindBytesMax bounds the name of a kind of devices.
const kindBytesMax = 96

// MemoryRequest lists what was learned, or pins a size.
type MemoryRequest struct {
	Do string `json:"do,omitempty"`
	// Circuit names whose sizes and speeds are listed, "" for all, or with the next three the size to pin.
	Circuit string      `json:"circuit,omitempty"`
	Stage   job.Stage   `json:"stage,omitempty"`
	Kind    string      `json:"kind,omitempty"`
	Pool    ledger.Pool `json:"pool,omitempty"` // "vram" is any device's own memory
	// Bytes are what is to be booked, of pin.
	Bytes bytesize.Bytes `json:"bytes,omitempty"`
	// SpeedsAfter asks for the rest of a long list of speeds: SpeedsNext of the page before.
	SpeedsAfter int `json:"speeds_after,omitempty"`
}

// Check implements Body.
func (r *MemoryRequest) Check() error {
	if len(r.Circuit) > circuitBytesMax || len(r.Kind) > kindBytesMax || r.SpeedsAfter < 0 {
		return fault.New(fault.Invalid, "memory: circuit, kind or place is over a bound")
	}
	switch r.Do {
	case "":
		return nil
	case MemoryPin, MemoryUnpin:
	default:
		return fault.New(fault.Invalid, "memory: nothing is known of %q", r.Do)
	}
	if r.Circuit == "" || r.Stage == "" || r.Pool == "" {
		return fault.New(fault.Invalid, "memory: %s needs a circuit, a stage and a pool", r.Do)
	}
	if (r.Bytes > 0) != (r.Do == MemoryPin) || r.Bytes < 0 || r.Bytes > bytesize.Max {
		return fault.New(fault.Invalid, "memory: %s of %d bytes", r.Do, r.Bytes)
	}
	return nil
}

// MemoryReply is what was learned.
type MemoryReply struct {
	Reply
	Sizes  []MemorySize `json:"sizes"`
	Speeds []StageSpeed `json:"speeds"`
	// Drifts counts how often, under this leader, measured sizes began or ceased to be off from what workers compute;
	// Drifting are sizes that are now.
	Drifts   uint64 `json:"drifts"`
	Drifting int    `json:"drifting"`
	// StoredAt is when it was stored last under this leader, nil for not yet.
	StoredAt *time.Time `json:"stored_at,omitempty"`
	// SpeedsNext asks for further speeds, 0 when these are all.
	SpeedsNext int `json:"speeds_next,omitempty"`
}

// MemorySize is what is known of the memory of one stage of attempts.
type MemorySize struct {
	Circuit string      `json:"circuit"`
	Stage   job.Stage   `json:"stage"`
	Kind    string      `json:"kind"` // model of the devices, "" where it is not known
	Pool    ledger.Pool `json:"pool"`
	// Computed is what workers say, P50 and P99 are of the latest Samples measured peaks, Booked is what is booked.
	Computed bytesize.Bytes `json:"computed"`
	P50      bytesize.Bytes `json:"p50"`
	P99      bytesize.Bytes `json:"p99"`
	Samples  int            `json:"samples"`
	Booked   bytesize.Bytes `json:"booked"`
	// Drift is "over" or "under" when the measured peaks are off, else "".
	Drift      string    `json:"drift,omitempty"`
	Pinned     bool      `json:"pinned,omitempty"`
	MeasuredAt time.Time `json:"measured_at"`
}

// Drifts of a MemorySize.
const (
	DriftOver  = "over"
	DriftUnder = "under"
)

// StageSpeed is how long attempts at a circuit take a device, the latest counting most.
type StageSpeed struct {
	Circuit   string        `json:"circuit"`
	Node      job.Node      `json:"node"`
	Device    job.Device    `json:"device"`
	Synthesis time.Duration `json:"synthesis_ns,omitempty"`
	Proof     time.Duration `json:"proof_ns,omitempty"`
	Samples   int           `json:"samples"`
	At        time.Time     `json:"at"`
}

// EventDrift is published when measured sizes begin or cease to be off; no tenant has a name that begins as its subject
// goes on.
const EventDrift = "drift"

// DriftSubject is where a DriftEvent is published.
const DriftSubject = "c2.event._rack." + EventDrift

// DriftEvent tells that a size drifts, or, when its Drift is "", not any more.
type DriftEvent struct {
	At   time.Time  `json:"at"`
	Size MemorySize `json:"size"`
}

// Check implements Body.
func (e *DriftEvent) Check() error {
	if e.Size.Circuit == "" || e.At.IsZero() {
		return fault.New(fault.Invalid, "drift of no size, or at no time")
	}
	return nil
}
