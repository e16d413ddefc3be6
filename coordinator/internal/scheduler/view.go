package scheduler

import (
	"time"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Versions is a range of message versions, both ends included.
type Versions struct {
	Min, Max int
}

// meet is the range that both speak; it is empty (Max < Min) when there is none.
func (v Versions) meet(w Versions) Versions {
	return Versions{Min: max(v.Min, w.Min), Max: min(v.Max, w.Max)}
}

// Place is a device of a node, or a whole node when Device is "".
type Place struct {
	Node   job.Node
	Device job.Device
}

// String is node/device.
func (p Place) String() string {
	if p.Device == "" {
		return string(p.Node)
	}
	return string(p.Node) + "/" + string(p.Device)
}

// JobView is what the scheduler knows of a job.
type JobView struct {
	ID          job.ID
	Circuit     string
	Tenant      job.Tenant
	Priority    int // higher goes first
	SubmittedAt time.Time
	Deadline    time.Time // zero for none
	Partitions  []PartitionView
}

// PartitionView is what it knows of a partition.
type PartitionView struct {
	Stage  job.Stage
	Fence  uint64
	Node   job.Node
	Device job.Device
	// StageAt is when the stage was reached, NotBefore when a waiting partition may go (zero: at once).
	StageAt   time.Time
	NotBefore time.Time
	// Avoid is where the last attempt failed, was lost or was handed back; the zero Place is nowhere. Last says how it
	// ended, and why, for people.
	Avoid Place
	Last  string
}

// ViewOf takes a job's view from its record. Partitions of a job that is not active are stopped, whatever their stage
// says.
func ViewOf(r *job.Record) JobView {
	v := JobView{
		ID: r.ID, Circuit: r.Circuit, Tenant: r.Tenant, Priority: r.Priority, SubmittedAt: r.SubmittedAt,
		Partitions: make([]PartitionView, len(r.Partitions)),
	}
	if r.Deadline != nil {
		v.Deadline = *r.Deadline
	}
	for i := range r.Partitions {
		p := &r.Partitions[i]
		w := PartitionView{Stage: p.Stage, Fence: p.Fence, Node: p.Node, Device: p.Device, StageAt: p.StageAt}
		if p.NotBefore != nil {
			w.NotBefore = *p.NotBefore
		}
		if r.State != job.Active && p.Stage != job.Verified {
			w.Stage = job.StageStopped
		}
		if last := p.Last(); last != nil && p.Stage == job.Waiting {
			switch last.Outcome {
			case job.OutcomeFailed:
				w.Avoid = Place{Node: last.Node, Device: last.Device}
			case job.OutcomeLost, job.OutcomeHandedBack:
				w.Avoid = Place{Node: last.Node}
			case job.OutcomeOK, job.OutcomeCancelled:
			}
			w.Last = endOfLast(last)
		}
		v.Partitions[i] = w
	}
	return v
}

// endOfLast says where, how and why an attempt ended.
func endOfLast(a *job.AttemptRecord) string {
	how := ""
	switch a.Outcome {
	case job.OutcomeFailed:
		how = "failed"
	case job.OutcomeLost:
		how = "was lost"
	case job.OutcomeHandedBack:
		how = "was handed back"
	case job.OutcomeOK, job.OutcomeCancelled:
		return ""
	}
	text := "on " + Place{Node: a.Node, Device: a.Device}.String() + " " + how
	if a.Fault != nil {
		text += because(a.Fault.Message)
	}
	return text
}

// Needs is what one attempt takes on a node.
type Needs struct {
	// Amounts are the attempt's own, for its whole path.
	Amounts ledger.Amounts
	// Assets are shared by all attempts that need them, and counted once on a node (B40).
	Assets []ledger.Asset
}

// CircuitView is what proofs of one circuit take on a device and its node.
type CircuitView struct {
	Ready bool
	// Missing says what is missing when not ready, e.g. the parameter file.
	Missing string
	// Choices are the ways to run an attempt, the preferred one first (say a segment in shm, then one on disk). A later
	// one is taken only where the first can never fit, or for a device that has nothing to do.
	Choices []Needs
	// Computed is what the workers compute by stage and pool: measured peaks are compared with it.
	Computed []Computed
}

// DeviceView is what the scheduler knows of a device.
type DeviceView struct {
	Device      job.Device
	Kind        string // its model; what is learned of sizes is shared by devices of a kind
	Healthy     bool
	Quarantined bool
	// Reason says why it is not healthy or in quarantine.
	Reason string
	// Instance names one start of the process that drives it; a new one clears the faults counted against the device.
	Instance string
	Wire     Versions
	Circuits map[string]CircuitView
}

// NodeView is what the scheduler knows of a node.
type NodeView struct {
	Node job.Node
	// Ready tells that a synthesis worker and the host's agent are; Reason says why not.
	Ready    bool
	Reason   string
	Draining bool
	Cordoned bool
	// SynthSlots is the sum over its ready synthesis workers; Wire is what all of these speak.
	SynthSlots int
	Wire       Versions
	Capacity   ledger.Amounts
	Devices    []DeviceView
	// NoDevice says why there is none.
	NoDevice string
	// Book is the ledger's book of the node. It must have been read after the outcomes of all earlier Admits that it
	// may contain were reported. nil leaves what is known.
	Book *Book
}

// Book is what the ledger holds for a node.
type Book struct {
	// Declared is false while the node has not declared its holdings in this epoch: then it gets nothing.
	Declared bool
	Holdings []Holding
	Assets   []ledger.Asset
}

// Holding is one reservation, live or in limbo.
type Holding struct {
	Attempt job.Attempt
	Amounts ledger.Amounts
	// Assets are the names of the assets that it uses.
	Assets []string
	Limbo  bool
}
