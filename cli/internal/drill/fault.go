package drill

import (
	"context"
	"slices"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Fault is one that a drill can bring about.
type Fault struct {
	Name string `json:"fault"`
	What string `json:"what"`
	// Stage is where a partition has to be when it strikes; job.Waiting is no condition.
	Stage job.Stage `json:"stage"`
	// Empties says that accepted jobs do not survive it: clients submit again.
	Empties bool `json:"empties,omitempty"`
}

// Names of faults.
const (
	Worker     = "worker"
	Pause      = "pause"
	Leader     = "leader"
	Broker     = "broker"
	Store      = "store"
	Wipe       = "wipe"
	Spill      = "spill"
	Everything = "everything"
)

// Faults are all there are, in the order in which they are tried.
func Faults() []Fault {
	return []Fault{
		{Name: Worker, What: "a worker is killed in mid-proof", Stage: job.Proving},
		{Name: Pause, What: "a worker stands still past its lease, then goes on", Stage: job.Proving},
		{Name: Leader, What: "the leading coordinator is killed", Stage: job.Proving},
		{Name: Broker, What: "the NATS server is killed, and comes back on its files", Stage: job.Proving},
		{Name: Store, What: "the ledger's Redis is killed, and comes back", Stage: job.Proving},
		{Name: Wipe, What: "the ledger is emptied", Stage: job.Proving},
		{Name: Spill, What: "the spill folder is full when jobs come", Stage: job.Waiting},
		{
			Name: Everything, What: "NATS and Redis lose all they have", Stage: job.Proving, Empties: true,
		},
	}
}

// Action does something to a rack.
type Action struct {
	// Text says what, for the plan: a command, or a sentence.
	Text string
	// Run does it and gives what there is to say of it. Nil does nothing.
	Run func(ctx context.Context) (evidence string, err error)
}

// Means bring a fault about and undo it.
type Means struct {
	Do, Undo Action
	// Hold is the time between them.
	Hold time.Duration
	// Lacking says why the fault cannot be brought about; "" when it can.
	Lacking string
}

// Step is a fault with its means.
type Step struct {
	Fault
	Means Means
}

// Plan pairs the faults of the given names, all when there are none, with their means. What empties the rack is only
// planned by name. It fails with fault.Invalid for a name that is none.
func Plan(names []string, means map[string]Means) ([]Step, error) {
	known := Faults()
	for _, name := range names {
		if !slices.ContainsFunc(known, func(f Fault) bool { return f.Name == name }) {
			return nil, fault.New(fault.Invalid, "no fault %q", name)
		}
	}
	var steps []Step
	for _, f := range known {
		if len(names) > 0 && !slices.Contains(names, f.Name) || len(names) == 0 && f.Empties {
			continue
		}
		m, ok := means[f.Name]
		if !ok {
			m.Lacking = "no means were given"
		}
		steps = append(steps, Step{f, m})
	}
	return steps, nil
}
