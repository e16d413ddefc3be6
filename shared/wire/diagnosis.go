package wire

import (
	"encoding/json"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// AdminDiagnose is the verb of operators that has all programs tell about themselves.
const AdminDiagnose = "diagnose"

// AdminTell is the verb of a plain message, a DiagnoseRequest, at which every coordinator sends its Diagnosis to the
// report subject of NodeCoordinators.
const AdminTell = "tell"

// NodeCoordinators stands for coordinators in subjects; no node can have its name.
const NodeCoordinators job.Node = "_coordinators"

// HeaderDiagnosis marks a message on a node's report subject as a Diagnosis; it has the id.
const HeaderDiagnosis = "c2-diagnosis"

// Bounds of diagnoses.
const (
	DiagnosisIDBytesMax = 64
	DiagnosisBytesMax   = 400 << 10
	DiagnosisEventsMax  = 200
)

// DiagnoseRequest asks all programs for diagnoses. Workers send theirs to their node's report subject, where operators
// hear them.
type DiagnoseRequest struct {
	// ID comes back with each.
	ID string `json:"id"`
}

// Check implements Body.
func (r *DiagnoseRequest) Check() error {
	if r.ID == "" || len(r.ID) > DiagnosisIDBytesMax {
		return fault.New(fault.Invalid, "diagnose: an id of 1 to %d bytes is needed", DiagnosisIDBytesMax)
	}
	return nil
}

// DiagnoseReply says who was asked.
type DiagnoseReply struct {
	Reply
	Programs []Program `json:"programs"`
	// Leader is the leader's own diagnosis, Events are the latest events, oldest first.
	Leader *Diagnosis        `json:"leader,omitempty"`
	Events []json.RawMessage `json:"events,omitempty"`
}

// Program is a program that was asked.
type Program struct {
	Node     job.Node `json:"node"`
	Role     string   `json:"role"`
	Instance string   `json:"instance"`
}

// Diagnosis is what one program tells about itself: a report of package support, packed.
type Diagnosis struct {
	ID string `json:"id"`
	Program
	Packed []byte `json:"packed"`
}

// Check implements Body.
func (d *Diagnosis) Check() error {
	if d.ID == "" || len(d.ID) > DiagnosisIDBytesMax || len(d.Packed) > DiagnosisBytesMax ||
		len(d.Role) > DiagnosisIDBytesMax || len(d.Instance) > DiagnosisIDBytesMax {
		return fault.New(fault.Invalid, "diagnosis %.64q is over a bound", d.ID)
	}
	return nil
}
