package wire

import (
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Verbs of operators; an operator's subject is c2.admin.<verb>.
const (
	AdminNodes   = "nodes"
	AdminDrain   = "drain"
	AdminLedger  = "ledger"
	AdminIntake  = "intake"
	AdminDLQ     = "dlq"
	AdminAudit   = "audit"
	AdminJobs    = "jobs"    // of all tenants
	AdminRelease = "release" // a device from quarantine
	AdminForget  = "forget"  // a node that is gone
	AdminUnbook  = "unbook"  // an attempt that is over
	AdminFlight  = "flight"
)

// Empty is a request without fields.
type Empty struct{}

// Check implements Body.
func (*Empty) Check() error { return nil }

// PageRequest asks for the nodes, or for their books. A large rack is answered in pages.
type PageRequest struct {
	// After is Next of the page before, "" for the first one.
	After string `json:"after,omitempty"`
}

// Check implements Body.
func (r *PageRequest) Check() error {
	if len(r.After) > 256 {
		return fault.New(fault.Invalid, "after of %d bytes is none that an answer gave", len(r.After))
	}
	return nil
}

// NodesReply lists the rack.
type NodesReply struct {
	Reply
	Leader  string     `json:"leader,omitempty"` // instance of the coordinator that leads
	Term    uint64     `json:"term,omitempty"`
	Ready   bool       `json:"ready"`
	Reason  string     `json:"reason,omitempty"`
	Paused  bool       `json:"paused,omitempty"` // intake
	Waiting int        `json:"waiting"`          // partitions
	Nodes   []NodeView `json:"nodes"`
	// Next asks for the next page, "" when this is the last one.
	Next string `json:"next,omitempty"`
}

// NodeView is one node as the leader sees it.
type NodeView struct {
	Node      job.Node       `json:"node"`
	Ready     bool           `json:"ready"`
	Reason    string         `json:"reason,omitempty"`
	Cordoned  bool           `json:"cordoned,omitempty"`
	Draining  bool           `json:"draining,omitempty"`
	SeenAt    time.Time      `json:"seen_at"`
	Processes []ProcessView  `json:"processes"`
	Devices   []DeviceView   `json:"devices"`
	Capacity  ledger.Amounts `json:"capacity,omitempty"`
	Reserved  ledger.Amounts `json:"reserved,omitempty"`
	Running   int            `json:"running"`
	// SynthSlots is the sum over its processes.
	SynthSlots int `json:"synth_slots"`
}

// ProcessView is one worker process.
type ProcessView struct {
	Instance string `json:"instance"`
	Role     string `json:"role"`
	Build    string `json:"build"`
	WireMin  int    `json:"wire_min"`
	WireMax  int    `json:"wire_max"`
	State    string `json:"state"`
	Reason   string `json:"reason,omitempty"`
	Host     bool   `json:"host,omitempty"` // holds the host's lock
}

// DeviceView is one device as the leader sees it.
type DeviceView struct {
	Device      job.Device `json:"device"`
	UUID        string     `json:"uuid,omitempty"`
	Name        string     `json:"name,omitempty"`
	Healthy     bool       `json:"healthy"`
	Quarantined bool       `json:"quarantined,omitempty"`
	Reason      string     `json:"reason,omitempty"`
	Circuits    []string   `json:"circuits,omitempty"`
	// Bad counts proofs of it that did not verify.
	Bad int `json:"bad,omitempty"`
}

// DrainRequest drains a node, or the whole rack when Node is "".
type DrainRequest struct {
	Node job.Node `json:"node,omitempty"`
	Undo bool     `json:"undo,omitempty"`
	// Cordon takes no new work but says nothing about leaving.
	Cordon bool `json:"cordon,omitempty"`
}

// Check implements Body.
func (r *DrainRequest) Check() error {
	if r.Node == "" {
		return nil
	}
	_, err := job.ParseNode(string(r.Node))
	return fault.As(fault.Invalid, err)
}

// DrainReply tells how far it is.
type DrainReply struct {
	Reply
	Running  int           `json:"running"` // partitions that have to end first
	Estimate time.Duration `json:"estimate_ns"`
	Drained  bool          `json:"drained"`
}

// IntakeRequest pauses or resumes intake of the rack.
type IntakeRequest struct {
	Pause  bool   `json:"pause"`
	Reason string `json:"reason,omitempty"`
}

// Check implements Body.
func (r *IntakeRequest) Check() error {
	if len(r.Reason) > fault.HintBytesMax {
		return fault.New(fault.Invalid, "reason of %d bytes is over the limit of %d", len(r.Reason), fault.HintBytesMax)
	}
	return nil
}

// ReleaseRequest lets a device out of quarantine. Without a node it lets the rack admit work again after most devices
// failed at once.
type ReleaseRequest struct {
	Node   job.Node   `json:"node,omitempty"`
	Device job.Device `json:"device,omitempty"`
}

// Check implements Body.
func (r *ReleaseRequest) Check() error {
	if r.Node == "" && r.Device == "" {
		return nil
	}
	if _, err := job.ParseNode(string(r.Node)); err != nil {
		return fault.As(fault.Invalid, err)
	}
	_, err := job.ParseDevice(string(r.Device))
	return fault.As(fault.Invalid, err)
}

// ForgetRequest drops everything that is kept about a node that does not beat any more.
type ForgetRequest struct {
	Node job.Node `json:"node"`
	// Gone is the operator's word that the machine will not come back with what it held: it releases what is still booked
	// there. Without it a node on which something is booked is not forgotten.
	Gone   bool   `json:"gone,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Check implements Body.
func (r *ForgetRequest) Check() error {
	if len(r.Reason) > fault.HintBytesMax {
		return fault.New(fault.Invalid, "reason of %d bytes is over the limit of %d", len(r.Reason), fault.HintBytesMax)
	}
	_, err := job.ParseNode(string(r.Node))
	return fault.As(fault.Invalid, err)
}

// UnbookRequest releases one attempt that is over and still booked on a node.
type UnbookRequest struct {
	Node    job.Node    `json:"node"`
	Attempt job.Attempt `json:"attempt"`
	// Gone is the operator's word that nothing of the attempt is left on the node. Without it nothing is released.
	Gone   bool   `json:"gone,omitempty"`
	Reason string `json:"reason,omitempty"`
}

// Check implements Body.
func (r *UnbookRequest) Check() error {
	if err := (&ForgetRequest{Node: r.Node, Reason: r.Reason}).Check(); err != nil {
		return err
	}
	_, err := job.ParseAttempt(r.Attempt.String())
	return fault.As(fault.Invalid, err)
}

// ForgetReply tells what was released by the operator's word alone.
type ForgetReply struct {
	Reply
	Forgotten Forgotten `json:"forgotten"`
}

// Forgotten is what is kept of a node that was forgotten.
type Forgotten struct {
	Node   job.Node  `json:"node"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason,omitempty"`
	// Attempts were booked on it, with Held in all; they were released by the operator's word.
	Attempts []job.Attempt  `json:"attempts,omitempty"`
	Held     ledger.Amounts `json:"held,omitempty"`
}

// LedgerReply is the ledger as operators see it.
type LedgerReply struct {
	Reply
	Nodes []LedgerNode `json:"nodes"`
	// Next asks for the next page, "" when this is the last one. A page may begin with the rest of a node's entries.
	Next string `json:"next,omitempty"`
}

// LedgerNode is one node's book.
type LedgerNode struct {
	Node     job.Node       `json:"node"`
	Declared bool           `json:"declared"`
	Capacity ledger.Amounts `json:"capacity"`
	Held     ledger.Amounts `json:"held"`
	Entries  []LedgerEntry  `json:"entries"`
	// Openings is how often the node's declaration opened the book since the leader's term began: once at first, and after
	// each loss of the store. OpenedWhy is why it had been closed the last time, OpenedAt when that was over.
	Openings  uint64     `json:"openings,omitempty"`
	OpenedWhy string     `json:"opened_why,omitempty"`
	OpenedAt  *time.Time `json:"opened_at,omitempty"`
}

// LedgerEntry is one holding: an attempt's reservation or an asset.
type LedgerEntry struct {
	Name    string         `json:"name"`
	Amounts ledger.Amounts `json:"amounts"`
	Since   time.Time      `json:"since"`
	LeaseAt *time.Time     `json:"lease_at,omitempty"` // until when it must be renewed
	Limbo   bool           `json:"limbo,omitempty"`
	Owner   job.Tenant     `json:"owner,omitempty"`
}

// DLQRequest lists, shows or replays dead letters.
type DLQRequest struct {
	Job    job.ID `json:"job_id,omitempty"` // "" lists
	Replay bool   `json:"replay,omitempty"`
	// After is the last job of the page before.
	After job.ID `json:"after,omitempty"`
}

// Check implements Body.
func (r *DLQRequest) Check() error {
	if r.After != "" {
		if _, err := job.ParseID(string(r.After)); err != nil {
			return fault.As(fault.Invalid, err)
		}
	}
	if r.Job == "" {
		if r.Replay {
			return fault.New(fault.Invalid, "dlq: replay needs a job")
		}
		return nil
	}
	_, err := job.ParseID(string(r.Job))
	return fault.As(fault.Invalid, err)
}

// DeadLetter is one job that failed for good.
type DeadLetter struct {
	Job     job.ID        `json:"job_id"`
	Tenant  job.Tenant    `json:"tenant"`
	Circuit string        `json:"circuit"`
	At      time.Time     `json:"at"`
	Fault   *fault.Report `json:"fault"`
	// Record is the job's record at that moment.
	Record *job.Record `json:"record,omitempty"`
}

// Check implements Body.
func (d *DeadLetter) Check() error {
	_, err := job.ParseID(string(d.Job))
	return err
}

// DLQReply answers DLQRequest.
type DLQReply struct {
	Reply
	Letters []DeadLetter `json:"letters"`
	// More tells that there are older letters: After of the next request is the last job here.
	More bool `json:"more,omitempty"`
	// Messages are those that workers could not read, the newest last, on the first page of a list.
	Messages []DeadMessage `json:"messages,omitempty"`
}

// DeadMessage is a message that was no task: somebody put it straight on a queue.
type DeadMessage struct {
	At time.Time `json:"at"`
	// Subject is the queue that it came by, Reason why it was refused.
	Subject string `json:"subject"`
	Reason  string `json:"reason"`
	// Bytes is what is kept of it, Start its beginning.
	Bytes int    `json:"bytes"`
	Start []byte `json:"start,omitempty"`
}

// Headers of a dead message.
const (
	HeaderDeadSubject = "Subject"
	HeaderDeadReason  = "Reason"
)

// AuditRequest asks for audit records, oldest first.
type AuditRequest struct {
	Since *time.Time `json:"since,omitempty"`
	After job.ID     `json:"after,omitempty"`
	Limit int        `json:"limit,omitempty"`
}

// Check implements Body.
func (r *AuditRequest) Check() error {
	if r.Limit < 0 || r.Limit > JobsPageMax {
		return fault.New(fault.Invalid, "audit: limit %d is outside 0 to %d", r.Limit, JobsPageMax)
	}
	return nil
}

// Audit is what is kept of a proof: what went in, what made it, when.
type Audit struct {
	Job          job.ID              `json:"job_id"`
	Tenant       job.Tenant          `json:"tenant"`
	Miner        string              `json:"miner"`
	SectorNumber uint64              `json:"sector_number"`
	Circuit      string              `json:"circuit"`
	InputHash    string              `json:"input_hash"`
	ProofSHA256  string              `json:"proof_sha256"`
	ParamsDigest string              `json:"params_digest"`
	SubmittedAt  time.Time           `json:"submitted_at"`
	EndedAt      time.Time           `json:"ended_at"`
	Attempts     []job.AttemptRecord `json:"attempts"` // of each partition the one that counted
	AttemptCount int                 `json:"attempt_count"`
}

// AuditReply answers AuditRequest.
type AuditReply struct {
	Reply
	Records []Audit `json:"records"`
	// More tells that there are further ones, after job Next.
	More bool   `json:"more,omitempty"`
	Next job.ID `json:"next,omitempty"`
}

// Event is published when a job changes.
type Event struct {
	Job       job.ID        `json:"job_id"`
	Tenant    job.Tenant    `json:"tenant"`
	What      string        `json:"what"`
	At        time.Time     `json:"at"`
	State     job.State     `json:"state"`
	Partition *int          `json:"partition,omitempty"`
	Stage     job.Stage     `json:"stage,omitempty"`
	Node      job.Node      `json:"node,omitempty"`
	Device    job.Device    `json:"device,omitempty"`
	Verified  int           `json:"verified"`
	Fault     *fault.Report `json:"fault,omitempty"`
}

// What happens to a job.
const (
	EventAccepted  = "accepted"
	EventPartition = "partition"
	EventDone      = "done"
	EventFailed    = "failed"
	EventCancelled = "cancelled"
)

// Check implements Body.
func (e *Event) Check() error {
	_, err := job.ParseID(string(e.Job))
	return err
}

// Lead is the value of the one key in BucketLead: who leads the rack, and the life of the ledger.
type Lead struct {
	Version  int           `json:"v"`
	Term     uint64        `json:"term"`
	Epoch    string        `json:"epoch"`
	Instance string        `json:"instance"`
	Lease    time.Duration `json:"lease_ns"`
	Seq      uint64        `json:"seq"` // rises with each renewal
	// Unable is why the leader cannot do all of its work; it gives way to an instance that can.
	Unable string `json:"unable,omitempty"`
}

// LeadKey is that key; LeadChallengeKey is written by an instance that could do better than a leader who is unable.
const (
	LeadKey          = "leader"
	LeadChallengeKey = "challenger"
)

// FlightRequest asks for the buffers of a node, or of the whole rack when Node is "".
type FlightRequest struct {
	Node job.Node `json:"node,omitempty"`
}

// Check implements Body.
func (r *FlightRequest) Check() error {
	if r.Node == "" {
		return nil
	}
	_, err := job.ParseNode(string(r.Node))
	return fault.As(fault.Invalid, err)
}

// FlightReply has the buffers of each node.
type FlightReply struct {
	Reply
	Nodes []FlightNode `json:"nodes"`
	// Left is how many nodes did not fit into the answer: ask for them by name.
	Left int `json:"left,omitempty"`
}

// FlightNode is the buffers of one node as of its processes' last beats.
type FlightNode struct {
	Node   job.Node  `json:"node"`
	SeenAt time.Time `json:"seen_at"`
	// Idle tells that no attempt runs or is booked there, and that nothing but assets is left.
	Idle    bool            `json:"idle"`
	Reports []flight.Report `json:"reports"`
	Leaks   []flight.Leak   `json:"leaks,omitempty"`
	// Defects count transitions that cannot be, in all its processes.
	Defects uint64 `json:"defects,omitempty"`
}
