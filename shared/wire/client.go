package wire

import (
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// InlineBytesMax bounds an input inside a submit request; larger ones go by reference.
const InlineBytesMax = 512 << 10

// ReferenceBytesMax bounds an input by reference.
const ReferenceBytesMax = 700_000_000

// Submit asks for a job. Exactly one of Inline, Object, Path and URL says where the input is.
type Submit struct {
	Tenant job.Tenant `json:"tenant,omitempty"` // must be the subject's when given
	// Key makes the request idempotent: the same key and input give the same job.
	Key  string `json:"key,omitempty"`
	Kind string `json:"kind,omitempty"` // of proof, "porep" when ""
	// Miner is an ID address, "f01000", or the bare number.
	Miner string `json:"miner"`
	// SectorNumber may be left out when the input brings it.
	SectorNumber *uint64    `json:"sector_number,omitempty"`
	Priority     int        `json:"priority,omitempty"`
	Deadline     *time.Time `json:"deadline,omitempty"`
	Output       string     `json:"output,omitempty"`
	WaitForNode  bool       `json:"wait_for_node,omitempty"`
	TraceParent  string     `json:"traceparent,omitempty"`

	Inline []byte `json:"inline,omitempty"`
	// Object is in the tenant's bucket for inputs; its SHA256 must be given.
	Object *job.Object `json:"object,omitempty"`
	// Path and URL are read by the coordinator, when its operator allows them; SHA256 must be given with them.
	Path   string `json:"path,omitempty"`
	URL    string `json:"url,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// Check implements Body.
func (s *Submit) Check() error {
	sources := 0
	for _, given := range []bool{len(s.Inline) > 0, s.Object != nil, s.Path != "", s.URL != ""} {
		if given {
			sources++
		}
	}
	switch {
	case sources != 1:
		return fault.New(fault.Invalid, "submit: give exactly one of inline, object, path and url (%d given)", sources)
	case len(s.Inline) > InlineBytesMax:
		return fault.New(fault.Invalid, "submit: inline input of %d bytes is over the limit of %d: send it by reference",
			len(s.Inline), InlineBytesMax)
	case s.Object != nil && s.Object.Bytes > ReferenceBytesMax:
		return fault.New(fault.Invalid, "submit: object of %d bytes is over the limit of %d", s.Object.Bytes,
			int64(ReferenceBytesMax))
	case s.Priority < -100 || s.Priority > 100:
		return fault.New(fault.Invalid, "submit: priority %d is outside -100 to 100", s.Priority)
	case s.Output != "" && s.Output != job.OutputProof && s.Output != job.OutputPartitions:
		return fault.New(
			fault.Invalid,
			"submit: output %q is neither %q nor %q",
			s.Output,
			job.OutputProof,
			job.OutputPartitions,
		)
	case s.Object != nil && !named(s.Object):
		return fault.New(fault.Invalid, "submit: illegal object name")
	case s.Object != nil && len(s.Object.SHA256) != 64, (s.Path != "" || s.URL != "") && len(s.SHA256) != 64:
		return fault.New(fault.Invalid, "submit: an input by reference needs its sha256 (64 hex digits)")
	case len(s.Path) > 4096 || len(s.URL) > 4096 || len(s.Miner) > 64 || len(s.TraceParent) > 256:
		return fault.New(fault.Invalid, "submit: a field is too long")
	}
	_, err := job.ParseKey(s.Key)
	return fault.As(fault.Invalid, err)
}

// named tells whether an object has a name that a store can have.
func named(o *job.Object) bool {
	return o.Name != "" && len(o.Name) <= 256 && !strings.ContainsAny(o.Name, "\x00\n")
}

// Reply is what every answer begins with: exactly one of Fault and the rest is there.
type Reply struct {
	Fault *fault.Report `json:"fault,omitempty"`
}

// Check implements Body.
func (r *Reply) Check() error { return nil }

// Err is the fault as an error, nil when there is none.
func (r *Reply) Err() error {
	if r.Fault == nil {
		return nil
	}
	return r.Fault
}

// SubmitReply answers Submit.
type SubmitReply struct {
	Reply
	Job job.ID `json:"job_id,omitempty"`
	// Existing tells that the same request was accepted before.
	Existing bool      `json:"existing,omitempty"`
	State    job.State `json:"state,omitempty"`
	Warnings []string  `json:"warnings,omitempty"`
}

// JobRequest asks about, or for the end of, one job.
type JobRequest struct {
	Job    job.ID `json:"job_id"`
	Reason string `json:"reason,omitempty"` // of cancel
}

// Check implements Body.
func (r *JobRequest) Check() error {
	if len(r.Reason) > fault.HintBytesMax {
		return fault.New(fault.Invalid, "reason of %d bytes is over the limit of %d", len(r.Reason), fault.HintBytesMax)
	}
	_, err := job.ParseID(string(r.Job))
	return fault.As(fault.Invalid, err)
}

// StatusReply answers JobRequest.
type StatusReply struct {
	Reply
	Record *job.Record `json:"record,omitempty"`
	// Liveness of running partitions, by index.
	Live []Live `json:"live,omitempty"`
}

// Live is what is known of a running partition beyond its record.
type Live struct {
	Partition int       `json:"partition"`
	BeatAt    time.Time `json:"beat_at"` // when its worker last showed progress
	Progress  uint64    `json:"progress"`
}

// JobsRequest lists a tenant's jobs, newest first.
type JobsRequest struct {
	State  job.State `json:"state,omitempty"`
	Before job.ID    `json:"before,omitempty"` // the last one of the page before
	Limit  int       `json:"limit,omitempty"`  // 1 … 500, 100 when 0
}

// JobsPageMax bounds a page.
const JobsPageMax = 500

// Check implements Body.
func (r *JobsRequest) Check() error {
	if r.State != "" && !r.State.Known() {
		return fault.New(fault.Invalid, "jobs: state %.20q is none of %s, %s, %s, %s, %s", r.State,
			job.Active, job.Cancelling, job.Done, job.Failed, job.Cancelled)
	}
	if r.Limit < 0 || r.Limit > JobsPageMax {
		return fault.New(fault.Invalid, "jobs: limit %d is outside 0 to %d", r.Limit, JobsPageMax)
	}
	if r.Before == "" {
		return nil
	}
	_, err := job.ParseID(string(r.Before))
	return fault.As(fault.Invalid, err)
}

// JobSummary is one line of a list.
type JobSummary struct {
	ID           job.ID        `json:"job_id"`
	Tenant       job.Tenant    `json:"tenant"`
	Key          string        `json:"key,omitempty"`
	Circuit      string        `json:"circuit"`
	Miner        string        `json:"miner"`
	SectorNumber uint64        `json:"sector_number"`
	State        job.State     `json:"state"`
	Verified     int           `json:"verified"`
	Partitions   int           `json:"partitions"`
	Waiting      int           `json:"waiting,omitempty"` // partitions that nobody works on yet
	Priority     int           `json:"priority,omitempty"`
	SubmittedAt  time.Time     `json:"submitted_at"`
	EndedAt      *time.Time    `json:"ended_at,omitempty"`
	Fault        *fault.Report `json:"fault,omitempty"`
}

// JobsReply answers JobsRequest.
type JobsReply struct {
	Reply
	Jobs []JobSummary `json:"jobs"`
	More bool         `json:"more,omitempty"`
}

// WhyReply says why a job waits (invariant 8).
type WhyReply struct {
	Reply
	State   job.State `json:"state,omitempty"`
	Reasons []Reason  `json:"reasons,omitempty"`
}

// Reason is why partitions wait: which pool of which node lacks how much, and who holds it; or text when it is no
// pool.
type Reason struct {
	Partitions []int          `json:"partitions"`
	Text       string         `json:"text"`
	Node       job.Node       `json:"node,omitempty"`
	Pool       ledger.Pool    `json:"pool,omitempty"`
	Missing    bytesize.Bytes `json:"missing,omitempty"`
	Holders    []Holder       `json:"holders,omitempty"`
	Until      *time.Time     `json:"until,omitempty"`
}

// Holder holds bytes of a pool.
type Holder struct {
	Name  string         `json:"name"` // an attempt or an asset
	Bytes bytesize.Bytes `json:"bytes"`
	Since *time.Time     `json:"since,omitempty"`
}
