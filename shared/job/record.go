package job

import (
	"maps"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
)

// RecordVersion is the version of records that this build writes; it reads this one and the one before.
const RecordVersion = 1

// State is where a job is.
type State string

// States of a job. The last three are its ends.
const (
	Active     State = "active"
	Cancelling State = "cancelling" // until nothing of it runs or holds bytes any more
	Done       State = "done"
	Failed     State = "failed"
	Cancelled  State = "cancelled"
)

// Known tells whether it is one of the states above.
func (s State) Known() bool { return s == Active || s == Cancelling || s.Ended() }

// Ended tells whether nothing will change any more.
func (s State) Ended() bool { return s == Done || s == Failed || s == Cancelled }

// Stage is where a partition is on its path.
type Stage string

// Stages of a partition, in order; the last two are ends without a proof.
const (
	Waiting       Stage = "waiting"
	Reserved      Stage = "reserved"
	Synthesizing  Stage = "synthesizing"
	Sealed        Stage = "sealed"
	Proving       Stage = "proving"
	Proved        Stage = "proved" // the device is done; the proof is on its way to the coordinator
	Verified      Stage = "verified"
	StageFailed   Stage = "failed"
	StageStopped  Stage = "cancelled"
	stagesInOrder       = "waiting reserved synthesizing sealed proving proved verified"
)

// Running tells whether an attempt owns the partition.
func (s Stage) Running() bool {
	switch s {
	case Reserved, Synthesizing, Sealed, Proving, Proved:
		return true
	case Waiting, Verified, StageFailed, StageStopped:
	}
	return false
}

// Outputs of a job.
const (
	OutputProof      = "proof"      // the concatenation, as the chain takes it
	OutputPartitions = "partitions" // the same bytes, labelled as input for aggregation
)

// Record is one job. It is written as JSON under the job's name: created by the coordinator that did the intake, later
// changed by the leader only, each time by compare-and-swap on the store's revision.
type Record struct {
	Version int    `json:"v"`
	ID      ID     `json:"id"`
	Tenant  Tenant `json:"tenant"`
	// Key is the client's idempotency key, "" for none.
	Key string `json:"key,omitempty"`
	// InputHash is of the parsed input, prover id and sector number (invariant 7), lower-case hex.
	InputHash string `json:"input_hash"`
	// Kind and Circuit are what the input needs, as the catalog names them.
	Kind    string `json:"kind"`
	Circuit string `json:"circuit"`
	// ProverID is hex; Miner is its readable form.
	ProverID     string `json:"prover_id"`
	Miner        string `json:"miner"`
	SectorNumber uint64 `json:"sector_number"`
	Output       string `json:"output"`
	// Priority orders waiting: higher first. 0 is normal, −100 … 100.
	Priority int `json:"priority,omitempty"`
	// Deadline is when the job fails if it has not ended; none when nil.
	Deadline *time.Time `json:"deadline,omitempty"`
	// WaitForNode keeps a job waiting that no known node could ever hold, instead of refusing it.
	WaitForNode bool `json:"wait_for_node,omitempty"`
	// Inputs names the object with the public inputs of all partitions.
	Inputs Object `json:"inputs"`
	// TraceParent is the W3C trace context of the submission, "" for none.
	TraceParent string `json:"traceparent,omitempty"`

	SubmittedAt time.Time  `json:"submitted_at"`
	EndedAt     *time.Time `json:"ended_at,omitempty"`
	State       State      `json:"state"`
	// Fault is why a job failed or was cancelled.
	Fault      *fault.Report `json:"fault,omitempty"`
	Partitions []Partition   `json:"partitions"`
	// Result names the object with the job's proof once it is done.
	Result *Object `json:"result,omitempty"`
	// ParamsDigest names the parameters that the last proof was made with, lower-case hex.
	ParamsDigest string `json:"params_digest,omitempty"`
	// LateCount counts results that came from stale attempts.
	LateCount int `json:"late_count,omitempty"`
}

// Object names stored bytes with their digest.
type Object struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"` // lower-case hex
}

// Partition is one of a job's Groth16 instances.
type Partition struct {
	Stage Stage  `json:"stage"`
	Slice Object `json:"slice"`
	// Fence is the partition's highest fence; it only rises.
	Fence  uint64 `json:"fence"`
	Node   Node   `json:"node,omitempty"`
	Device Device `json:"device,omitempty"`
	// StageAt is when the stage was reached; NotBefore is when a waiting partition may be claimed again.
	StageAt   time.Time  `json:"stage_at"`
	NotBefore *time.Time `json:"not_before,omitempty"`
	// FailedCount and LostCount are attempts that failed, and that were lost with their worker.
	FailedCount int `json:"failed_count,omitempty"`
	LostCount   int `json:"lost_count,omitempty"`
	// Proof is the 192 bytes of a verified partition.
	Proof []byte `json:"proof,omitempty"`
	// Attempts is the history, oldest first, at most AttemptsKept (the first and the latest). Unlisted counts those that
	// are no longer in it, nil for none.
	Attempts []AttemptRecord `json:"attempts,omitempty"`
	Unlisted *AttemptTally   `json:"unlisted,omitempty"`
}

// AttemptTally is what stays of attempts that are no longer listed.
type AttemptTally struct {
	Count int `json:"count"`
	// Outcomes counts them by how they ended.
	Outcomes map[Outcome]int `json:"outcomes,omitempty"`
	// FirstAt is when the first of them started, LastAt the last.
	FirstAt time.Time `json:"first_at"`
	LastAt  time.Time `json:"last_at"`
}

// AttemptCount is how many attempts there were.
func (p *Partition) AttemptCount() int {
	if p.Unlisted == nil {
		return len(p.Attempts)
	}
	return len(p.Attempts) + p.Unlisted.Count
}

// Unlist takes attempts first … end-1 out of the history and counts them.
func (p *Partition) Unlist(first, end int) {
	if first >= end {
		return
	}
	tally := AttemptTally{Outcomes: map[Outcome]int{}}
	if p.Unlisted != nil {
		tally = *p.Unlisted
		tally.Outcomes = maps.Clone(tally.Outcomes)
	}
	for i := first; i < end; i++ {
		a := &p.Attempts[i]
		if tally.Count == 0 || a.StartedAt.Before(tally.FirstAt) {
			tally.FirstAt = a.StartedAt
		}
		if a.StartedAt.After(tally.LastAt) {
			tally.LastAt = a.StartedAt
		}
		tally.Count++
		tally.Outcomes[a.Outcome]++
	}
	p.Attempts = append(p.Attempts[:first:first], p.Attempts[end:]...)
	p.Unlisted = &tally
}

// AttemptsKept bounds a partition's history.
const AttemptsKept = 16

// Outcome is how an attempt ended.
type Outcome string

// Outcomes; an attempt that still runs has none.
const (
	OutcomeOK         Outcome = "ok"
	OutcomeFailed     Outcome = "failed"
	OutcomeLost       Outcome = "lost"        // its worker died, hung or was cut off
	OutcomeHandedBack Outcome = "handed_back" // drain, stop or the node's veto; costs nothing
	OutcomeCancelled  Outcome = "cancelled"
)

// AttemptRecord is one attempt in a partition's history.
type AttemptRecord struct {
	Fence     uint64        `json:"fence"`
	Node      Node          `json:"node"`
	Device    Device        `json:"device"`
	StartedAt time.Time     `json:"started_at"`
	EndedAt   *time.Time    `json:"ended_at,omitempty"`
	Outcome   Outcome       `json:"outcome,omitempty"`
	Fault     *fault.Report `json:"fault,omitempty"`
	// Handoff tells where the segment lay ("shm", "disk"), HandoffReason why, when that is not the preferred place.
	Handoff       string `json:"handoff,omitempty"`
	HandoffReason string `json:"handoff_reason,omitempty"`
	// Build tells which program made it, DeviceUUID which card.
	Build      string `json:"build,omitempty"`
	DeviceUUID string `json:"device_uuid,omitempty"`
	TraceID    string `json:"trace_id,omitempty"`
	// Durations in seconds, for the audit record and the user.
	Seconds map[string]float64 `json:"seconds,omitempty"`
}

// VerifiedCount is the number of finished partitions.
func (r *Record) VerifiedCount() int {
	count := 0
	for i := range r.Partitions {
		if r.Partitions[i].Stage == Verified {
			count++
		}
	}
	return count
}

// Attempt names the attempt that owns a partition now, or owned it last.
func (r *Record) Attempt(partition int) Attempt {
	return Attempt{Job: r.ID, Partition: partition, Fence: r.Partitions[partition].Fence}
}
