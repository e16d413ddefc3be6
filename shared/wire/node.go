package wire

import (
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Roles of worker processes.
const (
	RoleSynth = "synth"
	RoleGPU   = "gpu"
)

// States of a worker process.
const (
	StateReady    = "ready"
	StateNotReady = "not-ready"
	StateDraining = "draining"
)

// ReasonStopping is what the reason of a worker begins with that drains since it was asked to end, not by an order.
const ReasonStopping = "stopping: "

// AckWaitMSMax bounds the ack wait of workers' queues, HeartbeatMSMax the time between beats: a day.
const (
	AckWaitMSMax   = 24 * 60 * 60 * 1000
	HeartbeatMSMax = AckWaitMSMax
)

// Beat says that a worker process lives, what it is and what it does. It is sent every heartbeat and on every change.
type Beat struct {
	Node job.Node `json:"node"`
	// Boot is the host's boot id, Instance a name for one start of this process.
	Boot     string `json:"boot"`
	Instance string `json:"instance"`
	Role     string `json:"role"`
	Seq      uint64 `json:"seq"`
	Build    string `json:"build"`
	WireMin  int    `json:"wire_min"`
	WireMax  int    `json:"wire_max"`
	State    string `json:"state"`
	// Reason says why it is not ready.
	Reason string `json:"reason,omitempty"`
	// Slots is how many tasks it takes at once; CPUs how many cores it may use.
	Slots int `json:"slots"`
	// AckWaitMS asks coordinators for the queues that the process fetches from, with this ack wait, in ms. 0, in beats of
	// builds that make them themselves, asks for none.
	AckWaitMS int64 `json:"ack_wait_ms,omitempty"`
	// HeartbeatMS is how often the process beats, in ms; 0, in beats of older builds, is not known.
	HeartbeatMS int64          `json:"heartbeat_ms,omitempty"`
	CPUs        int            `json:"cpus,omitempty"`
	Running     []Running      `json:"running,omitempty"`
	Devices     []DeviceState  `json:"devices,omitempty"`
	Synth       []SynthCircuit `json:"synth,omitempty"`
	// AssetsURL is where other nodes fetch parameter files from this process, "" where it gives none.
	AssetsURL string `json:"assets_url,omitempty"`
	// Host is sent by the process that holds the host's lock.
	Host *HostReport `json:"host,omitempty"`
	// Flight are the buffers of the process and its engines; those of the spill folders come with Host. Reports that this
	// build does not understand are left out when a beat is checked.
	Flight []flight.Report `json:"flight,omitempty"`
}

// FlightMax bounds the reports of a beat.
const FlightMax = 128

// Running is an attempt that a process works on.
type Running struct {
	Attempt job.Attempt `json:"attempt"`
	Stage   job.Stage   `json:"stage"`
	// Progress rises as long as the work advances.
	Progress uint64 `json:"progress"`
	Handoff  string `json:"handoff,omitempty"`
	// HandoffReason says why the segment lies there, when that is not the preferred place.
	HandoffReason string `json:"handoff_reason,omitempty"`
}

// SynthCircuit is what a synthesis worker needs for one circuit.
type SynthCircuit struct {
	Circuit string `json:"circuit"`
	// SegmentBytes is the size of a segment's file; ScratchBytes is the heap for one synthesis; ArtifactBytes is kept.
	SegmentBytes  bytesize.Bytes `json:"segment_bytes"`
	ScratchBytes  bytesize.Bytes `json:"scratch_bytes"`
	ArtifactBytes bytesize.Bytes `json:"artifact_bytes,omitempty"`
}

// DeviceState is a device and what it can prove.
type DeviceState struct {
	Device   job.Device `json:"device"`
	UUID     string     `json:"uuid,omitempty"`
	Name     string     `json:"name,omitempty"`
	NUMANode int        `json:"numa_node"`
	Healthy  bool       `json:"healthy"`
	Reason   string     `json:"reason,omitempty"`
	// Pending is how many proofs are started and not finished.
	Pending  int             `json:"pending,omitempty"`
	Circuits []DeviceCircuit `json:"circuits,omitempty"`
	// Canary is the last known answer that a coordinator had the device prove, nil before the first.
	Canary *Canary `json:"canary,omitempty"`
}

// Canary is what became of a known-answer proof.
type Canary struct {
	// ID is the order's.
	ID string `json:"id"`
	OK bool   `json:"ok"`
	// Reason says what was wrong when it is not OK.
	Reason string `json:"reason,omitempty"`
}

// CanaryIDBytesMax bounds the id of a canary.
const CanaryIDBytesMax = 64

// DeviceCircuit is what proofs of one circuit take on a device.
type DeviceCircuit struct {
	Circuit string `json:"circuit"`
	Ready   bool   `json:"ready"`
	// Missing says what it lacks when not ready, e.g. the parameter file.
	Missing string `json:"missing,omitempty"`
	// ParamsDigest is of the parameters in use, lower-case hex.
	ParamsDigest string `json:"params_digest,omitempty"`
	// Host memory: mapped parameters, artifact, what is shared by all proofs, what each pending proof and the one that is
	// worked on take; DeviceBytes are on the device.
	SRSBytes      bytesize.Bytes `json:"srs_bytes,omitempty"`
	ArtifactBytes bytesize.Bytes `json:"artifact_bytes,omitempty"`
	SharedBytes   bytesize.Bytes `json:"shared_bytes,omitempty"`
	PendingBytes  bytesize.Bytes `json:"pending_bytes,omitempty"`
	WorkingBytes  bytesize.Bytes `json:"working_bytes,omitempty"`
	DeviceBytes   bytesize.Bytes `json:"device_bytes,omitempty"`
	// PrivateBytes is what an engine has of its own with one proof of the circuit in it, as computed: measured peaks are
	// compared with it. 0, in beats of older builds, is not known.
	PrivateBytes bytesize.Bytes `json:"private_bytes,omitempty"`
	// FileBytes is the size of the parameter file; Development tells that only a manifest beside it vouches for it.
	FileBytes   bytesize.Bytes `json:"file_bytes,omitempty"`
	Development bool           `json:"development,omitempty"`
	// Loading is how far a load or copy of the parameters is, nil when there is none.
	Loading *Loading `json:"loading,omitempty"`
}

// HostReport is what one host has and holds. It is the evidence that frees bytes.
type HostReport struct {
	Capacity ledger.Amounts `json:"capacity"`
	Book     []Booking      `json:"book,omitempty"`
	// BookComplete is false when the book could not be read as a whole: then a missing attempt proves nothing.
	BookComplete bool `json:"book_complete"`
	// Freed are attempts that ended on the host and whose records do not say so yet, as far as it has seen: they hold
	// nothing and begin nothing there any more. It may lack some.
	Freed  []job.Attempt  `json:"freed,omitempty"`
	Assets []ledger.Asset `json:"assets,omitempty"`
	// FreeSHMBytes and FreeDiskBytes are segments that wait to be reused, in memory and on disk. Version 1 had the first
	// field alone, took it for memory, and put the sum in it.
	FreeSHMBytes  bytesize.Bytes `json:"free_segment_bytes,omitempty"`
	FreeDiskBytes bytesize.Bytes `json:"free_disk_segment_bytes,omitempty"`
	At            time.Time      `json:"at"`
}

// Booking is an attempt that holds bytes on the host.
type Booking struct {
	Attempt job.Attempt    `json:"attempt"`
	Amounts ledger.Amounts `json:"amounts"`
	Stage   job.Stage      `json:"stage,omitempty"`
	// Alive tells that the process that holds it lives.
	Alive bool `json:"alive"`
}

// Check implements Body.
func (b *Beat) Check() error {
	if _, err := job.ParseNode(string(b.Node)); err != nil {
		return err
	}
	switch {
	case b.Boot == "" || b.Instance == "" || len(b.Boot) > 64 || len(b.Instance) > 64:
		return fault.New(fault.Invalid, "beat of node %s lacks boot or instance", b.Node)
	case b.Role != RoleSynth && b.Role != RoleGPU:
		return fault.New(fault.Invalid, "beat of node %s has role %q", b.Node, b.Role)
	case b.State != StateReady && b.State != StateNotReady && b.State != StateDraining:
		return fault.New(fault.Invalid, "beat of node %s has state %q", b.Node, b.State)
	case b.Slots < 0 || b.WireMin < 1 || b.WireMax < b.WireMin:
		return fault.New(fault.Invalid, "beat of node %s: slots %d, wire %d to %d", b.Node, b.Slots, b.WireMin, b.WireMax)
	}
	if b.AckWaitMS != 0 && (b.AckWaitMS < 10 || b.AckWaitMS > AckWaitMSMax) {
		return fault.New(fault.Invalid, "beat of node %s asks for an ack wait of %d ms", b.Node, b.AckWaitMS)
	}
	if b.HeartbeatMS < 0 || b.HeartbeatMS > HeartbeatMSMax {
		return fault.New(fault.Invalid, "beat of node %s comes every %d ms", b.Node, b.HeartbeatMS)
	}
	for _, d := range b.Devices {
		if _, err := job.ParseDevice(string(d.Device)); err != nil {
			return err
		}
	}
	b.Flight = slices.DeleteFunc(b.Flight, func(r flight.Report) bool { return r.Check() != nil })
	b.Flight = b.Flight[:min(len(b.Flight), FlightMax)]
	return nil
}

// Kinds of control.
const (
	ControlCancel  = "cancel"  // stop an attempt, its fence was raised
	ControlDrain   = "drain"   // take nothing new, finish, report
	ControlUndrain = "undrain" // take tasks again
	ControlEvict   = "evict"   // give back an asset
	ControlPreload = "preload" // book and load the assets of a circuit
	ControlShare   = "share"   // let another node fetch a parameter file
	ControlFetch   = "fetch"   // fetch a parameter file from another node
	ControlReport  = "report"  // beat at once
	ControlTell    = "tell"    // send a diagnosis of the program
	ControlCanary  = "canary"  // have a device prove a known answer; its beats say what came of it
)

// Control tells a node's workers what to do. It is sent at most once; fences and beats repair what is lost.
type Control struct {
	Node    job.Node     `json:"node"`
	Kind    string       `json:"kind"`
	Attempt *job.Attempt `json:"attempt,omitempty"` // of cancel
	Asset   string       `json:"asset,omitempty"`   // of evict
	Circuit string       `json:"circuit,omitempty"` // of preload
	// Transfer is of share and fetch.
	Transfer *Transfer  `json:"transfer,omitempty"`
	Device   job.Device `json:"device,omitempty"` // of canary
	Canary   string     `json:"canary,omitempty"` // of canary: the id that beats give back
	Reason   string     `json:"reason,omitempty"`
	// Diagnosis is of tell: the id that comes back.
	Diagnosis string `json:"diagnosis,omitempty"`
}

// Check implements Body.
func (c *Control) Check() error {
	if _, err := job.ParseNode(string(c.Node)); err != nil {
		return err
	}
	switch c.Kind {
	case ControlCancel:
		if c.Attempt == nil {
			return fault.New(fault.Invalid, "control of node %s: cancel without an attempt", c.Node)
		}
	case ControlEvict:
		if c.Asset == "" {
			return fault.New(fault.Invalid, "control of node %s: evict without an asset", c.Node)
		}
	case ControlCanary:
		if _, err := job.ParseDevice(string(c.Device)); err != nil || c.Canary == "" || len(c.Canary) > CanaryIDBytesMax {
			return fault.New(fault.Invalid, "control of node %s: canary without a device or an id", c.Node)
		}
	case ControlPreload:
		if c.Circuit == "" || len(c.Circuit) > circuitBytesMax {
			return fault.New(fault.Invalid, "control of node %s: preload without a circuit", c.Node)
		}
	case ControlTell:
		return (&DiagnoseRequest{ID: c.Diagnosis}).Check()
	case ControlShare, ControlFetch:
		if c.Transfer == nil {
			return fault.New(fault.Invalid, "control of node %s: %s without a transfer", c.Node, c.Kind)
		}
		return c.Transfer.check(c.Kind == ControlFetch)
	case ControlDrain, ControlUndrain, ControlReport:
	default:
		return fault.New(fault.Invalid, "control of node %s has kind %q", c.Node, c.Kind)
	}
	return nil
}
