package wire

import (
	"fmt"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// SynthTask asks a node to synthesize a partition and to hand it to one of its devices.
type SynthTask struct {
	Attempt job.Attempt `json:"attempt"`
	Node    job.Node    `json:"node"`
	Device  job.Device  `json:"device"`
	Circuit string      `json:"circuit"`
	Slice   job.Object  `json:"slice"`
	// Amounts are what the ledger holds for the whole path.
	Amounts     ledger.Amounts `json:"amounts"`
	Priority    int            `json:"priority,omitempty"`
	Deadline    *time.Time     `json:"deadline,omitempty"`
	TraceParent string         `json:"traceparent,omitempty"`
	SynthTaskSince2
}

// Check implements Body.
func (t *SynthTask) Check() error {
	if t.Circuit == "" || t.Slice.Name == "" || len(t.Slice.SHA256) != 64 {
		return fault.New(fault.Invalid, "synth task %s lacks circuit or slice", t.Attempt)
	}
	return checkWork(t.Attempt, t.Node, t.Device)
}

// Handoffs.
const (
	HandoffSHM  = "shm"
	HandoffDisk = "disk"
)

// ProveTask asks a device to prove a sealed segment.
type ProveTask struct {
	Attempt     job.Attempt    `json:"attempt"`
	Node        job.Node       `json:"node"`
	Device      job.Device     `json:"device"`
	Circuit     string         `json:"circuit"`
	Segment     string         `json:"segment"` // its name in the node's spill folder
	Handoff     string         `json:"handoff"`
	Amounts     ledger.Amounts `json:"amounts"`
	Deadline    *time.Time     `json:"deadline,omitempty"`
	TraceParent string         `json:"traceparent,omitempty"`
	// HandoffReason says why the segment lies there, when that is not the preferred place.
	HandoffReason string `json:"handoff_reason,omitempty"`
	ProveTaskSince2
	Peaks Peaks `json:"stage_peaks,omitempty"`
}

// Check implements Body.
func (t *ProveTask) Check() error {
	if t.Circuit == "" || t.Segment == "" || t.Handoff != HandoffSHM && t.Handoff != HandoffDisk {
		return fault.New(fault.Invalid, "prove task %s lacks circuit, segment or handoff", t.Attempt)
	}
	if err := t.Peaks.check(); err != nil {
		return fmt.Errorf("prove task %s: %w", t.Attempt, err)
	}
	return checkWork(t.Attempt, t.Node, t.Device)
}

// Result is the one outcome of an attempt.
type Result struct {
	Attempt job.Attempt   `json:"attempt"`
	Node    job.Node      `json:"node"`
	Device  job.Device    `json:"device,omitempty"`
	Outcome job.Outcome   `json:"outcome"`
	Proof   []byte        `json:"proof,omitempty"` // 192 bytes when the outcome is ok
	Fault   *fault.Report `json:"fault,omitempty"` // when it is not
	// BlameDevice says that the device or its engine, not the input, is at fault.
	BlameDevice  bool   `json:"blame_device,omitempty"`
	Build        string `json:"build,omitempty"`
	DeviceUUID   string `json:"device_uuid,omitempty"`
	ParamsDigest string `json:"params_digest,omitempty"`
	// Handoff tells where the segment lay, HandoffReason why, when that is not the preferred place.
	Handoff       string             `json:"handoff,omitempty"`
	HandoffReason string             `json:"handoff_reason,omitempty"`
	Seconds       map[string]float64 `json:"seconds,omitempty"`
	Peaks         Peaks              `json:"stage_peaks,omitempty"`
	TraceParent   string             `json:"traceparent,omitempty"`
}

// Peaks are the most that an attempt had of each pool at each stage, where that was measured.
type Peaks map[job.Stage]ledger.Amounts

// peakStagesMax bounds the stages of peaks.
const peakStagesMax = 8

func (p Peaks) check() error {
	if len(p) > peakStagesMax {
		return fault.New(fault.Invalid, "peaks of %d stages are over the limit of %d", len(p), peakStagesMax)
	}
	for stage, amounts := range p {
		if err := amounts.Check(); err != nil {
			return fmt.Errorf("peaks of stage %.40q: %w", stage, err)
		}
	}
	return nil
}

// ProofBytes is the size of one partition's proof.
const ProofBytes = 192

// Check implements Body.
func (r *Result) Check() error {
	switch r.Outcome {
	case job.OutcomeOK:
		if len(r.Proof) != ProofBytes {
			return fault.New(fault.Invalid, "result of attempt %s has a proof of %d bytes", r.Attempt, len(r.Proof))
		}
	case job.OutcomeFailed, job.OutcomeLost, job.OutcomeHandedBack, job.OutcomeCancelled:
		if r.Fault == nil || len(r.Proof) != 0 {
			return fault.New(fault.Invalid, "result of attempt %s (%s) lacks a reason or has a proof", r.Attempt, r.Outcome)
		}
	default:
		return fault.New(fault.Invalid, "result of attempt %s has outcome %q", r.Attempt, r.Outcome)
	}
	if err := r.Peaks.check(); err != nil {
		return fmt.Errorf("result of attempt %s: %w", r.Attempt, err)
	}
	return checkWork(r.Attempt, r.Node, "x")
}

// ID is the message id of a result: one per attempt and outcome.
func (r *Result) ID() string { return r.Attempt.String() + "." + string(r.Outcome) }

// Report says how an attempt advances. It is sent at most once; beats repair what is lost.
type Report struct {
	Attempt job.Attempt `json:"attempt"`
	Node    job.Node    `json:"node"`
	// Stage is the stage that was reached, "" when only bytes went.
	Stage job.Stage `json:"stage,omitempty"`
	// Keeps is what the attempt still holds when bytes of it are gone although it goes on: a report that comes twice, or
	// late, says the same. Freed tells that all are gone.
	Keeps         ledger.Amounts `json:"keeps,omitempty"`
	Freed         bool           `json:"freed,omitempty"`
	Handoff       string         `json:"handoff,omitempty"`
	HandoffReason string         `json:"handoff_reason,omitempty"`
}

// Check implements Body.
func (r *Report) Check() error { return checkWork(r.Attempt, r.Node, "x") }

func checkWork(a job.Attempt, n job.Node, d job.Device) error {
	if _, err := job.ParseAttempt(a.String()); err != nil {
		return fmt.Errorf("attempt: %w", err)
	}
	if _, err := job.ParseNode(string(n)); err != nil {
		return err
	}
	_, err := job.ParseDevice(string(d))
	return err
}
