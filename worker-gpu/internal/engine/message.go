package engine

import (
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/prover/simdevice"
)

// Setup is what an engine is told once, at its start.
type Setup struct {
	// Device is the kind of device: "cpu" or "cuda".
	Device string `json:"device"`
	// Name is the device's name on the node, UUID its identity; work is given by identity, never by a bare number.
	Name string `json:"name"`
	UUID string `json:"uuid,omitempty"`
	// Library is where the device library is, "" where it is looked for.
	Library string `json:"library,omitempty"`
	// MemoryBytes is the most that may be taken of the device's own memory; 0 is no limit but its size.
	MemoryBytes bytesize.Bytes `json:"memory_bytes,omitempty"`
	// Params is the folder with parameters, Cache the one for what is derived from them ("" uses Params).
	Params string `json:"params"`
	Cache  string `json:"cache,omitempty"`
	// Workers is how many cores to use; less than 1 means all that the process may use.
	Workers int `json:"workers,omitempty"`
	// Simulate wraps the device in a simulated one (tests only).
	Simulate *simdevice.Config `json:"simulate,omitempty"`
	// HookFolder and Hooks are test hooks; none in production.
	HookFolder string   `json:"hook_folder,omitempty"`
	Hooks      []string `json:"hooks,omitempty"`
}

// verb is what an engine is asked to do.
type verb string

const (
	verbSetup   verb = "setup"
	verbLoad    verb = "load"
	verbImage   verb = "image"
	verbPrepare verb = "prepare"
	verbStart   verb = "start"
	verbFinish  verb = "finish"
	verbDrop    verb = "drop"
	verbEvict   verb = "evict"
	verbCanary  verb = "canary"
)

// request is a frame from the worker. ID rises; every request gets one answer.
type request struct {
	ID      uint64 `json:"id"`
	Do      verb   `json:"do"`
	Setup   *Setup `json:"setup,omitempty"`
	Circuit string `json:"circuit,omitempty"`
	Work    *Work  `json:"work,omitempty"`
	Proof   uint64 `json:"proof,omitempty"` // of start, finish and drop: the prepare request's ID
}

// Work is a sealed segment to prove; its file goes with it.
type Work struct {
	Attempt job.Attempt `json:"attempt"`
	Circuit string      `json:"circuit"`
}

// Loaded is what an engine knows of a circuit whose parameters it holds.
type Loaded struct {
	Digest      string         `json:"digest"`
	Key         []byte         `json:"key"` // the verifying key as its file has it
	Development bool           `json:"development,omitempty"`
	SRS         bytesize.Bytes `json:"srs_bytes"`
	Artifact    bytesize.Bytes `json:"artifact_bytes"`
	Shared      bytesize.Bytes `json:"shared_bytes"`
	Pending     bytesize.Bytes `json:"pending_bytes"`
	Working     bytesize.Bytes `json:"working_bytes"`
	Device      bytesize.Bytes `json:"device_bytes"`
	Seconds     float64        `json:"seconds"` // what loading took
	// Image is the size of the decoded parameters; Decoded tells that the engine has them and uses no file.
	Image   bytesize.Bytes `json:"image_bytes"`
	Decoded bool           `json:"decoded,omitempty"`
}

// Ready is what an engine says of itself when it is set up.
type Ready struct {
	Device string `json:"device"` // as the device calls itself
	PID    int    `json:"pid"`
	// Progress is where it starts from.
	Progress Progress `json:"progress"`
}

// Progress shows that an engine works.
type Progress struct {
	Steps uint64        `json:"steps"` // stages begun, ever
	Stage string        `json:"stage,omitempty"`
	CPU   time.Duration `json:"cpu_ns"` // processor time used, ever
	// Free and Total are the device's own memory, 0 where it has none.
	Free  bytesize.Bytes `json:"free,omitempty"`
	Total bytesize.Bytes `json:"total,omitempty"`
	// Flight are the engine's buffers.
	Flight *flight.Report `json:"flight,omitempty"`
	// Loading is the load that goes on, nil when none does.
	Loading *Loading `json:"loading,omitempty"`
}

// Loading is how far a load is: bytes of the parameter file that are hashed, or of its image that are decoded.
type Loading struct {
	Circuit string         `json:"circuit"`
	Done    bytesize.Bytes `json:"done_bytes"`
	Total   bytesize.Bytes `json:"total_bytes"`
}

// Proved is a finished proof.
type Proved struct {
	Proof   []byte             `json:"proof"`
	Seconds map[string]float64 `json:"seconds,omitempty"`
}

// answer is a frame from the engine: to a request (ID > 0) or by itself (ID 0, Progress).
type answer struct {
	ID       uint64        `json:"id"`
	Fault    *fault.Report `json:"fault,omitempty"`
	Ready    *Ready        `json:"ready,omitempty"`
	Loaded   *Loaded       `json:"loaded,omitempty"`
	Proved   *Proved       `json:"proved,omitempty"`
	Progress *Progress     `json:"progress,omitempty"`
}
