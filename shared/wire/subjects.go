package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/proofrack/proofrack/shared/job"
)

// Streams and their subjects (design section 2).
const (
	StreamSynth  = "C2_SYNTH"
	StreamProve  = "C2_PROVE"
	StreamResult = "C2_RESULT"
	StreamEvents = "C2_EVENTS"
	StreamDLQ    = "C2_DLQ"

	AllSynth  = "c2.synth.*"
	AllProve  = "c2.prove.*.*"
	AllResult = "c2.result.*"
	AllEvents = "c2.event.>"
	AllDLQ    = "c2.dlq.*"
)

// Buckets.
const (
	BucketJobs  = "c2-jobs"
	BucketNodes = "c2-nodes"
	BucketLead  = "c2-lead"

	ObjectsSlices = "c2-slices"
)

// ObjectsIn is the bucket that a tenant's inputs are put in.
func ObjectsIn(t job.Tenant) string { return "c2-in-" + string(t) }

// ObjectsProofs is the bucket that a tenant's proofs are read from.
func ObjectsProofs(t job.Tenant) string { return "c2-proofs-" + string(t) }

// SynthSubject is where a node's synthesis workers get their tasks.
func SynthSubject(n job.Node) string { return "c2.synth." + string(n) }

// ProveSubject is where a device's worker gets its tasks.
func ProveSubject(n job.Node, d job.Device) string { return "c2.prove." + string(n) + "." + string(d) }

// ResultSubject is where a node's workers publish outcomes.
func ResultSubject(n job.Node) string { return "c2.result." + string(n) }

// BeatSubject is where a node's workers say that they live.
func BeatSubject(n job.Node) string { return "c2.node." + string(n) + ".beat" }

// ReportSubject is where a node's workers say how attempts advance.
func ReportSubject(n job.Node) string { return "c2.node." + string(n) + ".report" }

// All beats and reports.
const (
	AllBeats   = "c2.node.*.beat"
	AllReports = "c2.node.*.report"
)

// ControlSubject is where a node's workers are told what to do.
func ControlSubject(n job.Node) string { return "c2.ctl." + string(n) }

// Verbs of clients; a client's subject is c2.<verb>.<tenant>.
const (
	VerbSubmit = "submit"
	VerbStatus = "status"
	VerbCancel = "cancel"
	VerbJobs   = "jobs"
	VerbWhy    = "why"
)

// ClientSubject is where a tenant's clients ask.
func ClientSubject(verb string, t job.Tenant) string { return "c2." + verb + "." + string(t) }

// AdminSubject is where operators ask.
func AdminSubject(verb string) string { return "c2.admin." + verb }

// EventSubject is where the events of a job are published; what is one word, e.g. "done".
func EventSubject(t job.Tenant, id job.ID, what string) string {
	return "c2.event." + string(t) + "." + string(id) + "." + what
}

// DLQMessages is the kind, of dead letters, for messages that are no tasks.
const DLQMessages = "message"

// DLQSubject is where dead letters of a kind are published.
func DLQSubject(kind string) string { return "c2.dlq." + kind }

// SynthConsumer is the durable consumer that a node's synthesis workers share. Coordinators make it, as all consumers.
func SynthConsumer(n job.Node) string { return "synth-" + string(n) }

// ProveConsumer is the durable consumer of a device.
func ProveConsumer(n job.Node, d job.Device) string { return "prove-" + string(n) + "_" + string(d) }

// Token gives the n-th part of a subject (from 0), "" when there is none.
func Token(subject string, n int) string {
	for part := range strings.SplitSeq(subject, ".") {
		if n == 0 {
			return part
		}
		n--
	}
	return ""
}

// JobKey is a record's key in BucketJobs.
func JobKey(id job.ID) string { return "job." + string(id) }

// JobKeyPrefix is what all records' keys begin with.
const JobKeyPrefix = "job."

// IdempotencyKey is the key, in BucketJobs, of a tenant's idempotency key: keys are free text, so they are hashed.
func IdempotencyKey(t job.Tenant, key string) string {
	sum := sha256.Sum256([]byte(key))
	return "key." + string(t) + "." + hex.EncodeToString(sum[:])
}

// SliceName is the name of a partition's slice in ObjectsSlices.
func SliceName(id job.ID, partition int) string { return fmt.Sprintf("%s.%d", id, partition) }

// InputsName is the name, in ObjectsSlices, of the public inputs of a job.
func InputsName(id job.ID) string { return string(id) + ".inputs" }

// NodeKey is a node's key in BucketNodes.
func NodeKey(n job.Node) string { return "node." + string(n) }
