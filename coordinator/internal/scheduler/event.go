package scheduler

import (
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/sizes"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Event is something that happened; see the types that implement it.
type Event interface{ event() }

// Events.
type (
	// JobSeen brings a job that is new or whose record changed.
	JobSeen struct{ Job JobView }
	// JobGone says that a job has ended or is being cancelled: nothing of it waits any more. Bytes of its attempts stay
	// booked until Freed.
	JobGone struct{ Job job.ID }

	// NodeSeen brings a node that is new or changed, or whose book was read again.
	NodeSeen struct{ Node NodeView }
	// NodeGone says that a node has not been heard of for a lease.
	NodeGone struct{ Node job.Node }

	// Granted says that an Admit was carried out: reserved, claimed and published.
	Granted struct{ Attempt job.Attempt }
	// Refused says that it was not, and that nothing of it is left. Cause is for Why.
	Refused struct {
		Attempt job.Attempt
		Cause   string
		// OfJob tells that the job, not the node, was at fault (its record changed, its input is gone): the job pauses and
		// the node goes on.
		OfJob bool
	}
	// Progress says that an attempt reached a stage.
	Progress struct {
		Attempt job.Attempt
		Stage   job.Stage
	}
	// Ended says how an attempt ended; the job's new record follows as JobSeen or JobGone.
	Ended struct {
		Attempt job.Attempt
		Outcome job.Outcome
		// BlameDevice tells that the device or its engine was at fault.
		BlameDevice bool
		// Synth is how long synthesis took, Device for how long the device was taken; 0 is not known.
		Synth, Device time.Duration
		// Peaks are the most that the attempt had of each pool at each stage, by measurement; pools that were not
		// measured are missing.
		Peaks Peaks
	}
	// Shrunk says that bytes of a running attempt are gone.
	Shrunk struct {
		Attempt job.Attempt
		Node    job.Node
		Amounts ledger.Amounts
	}
	// Freed says that all bytes of an attempt are gone, by the node's evidence. It must come before the reservation is
	// released: the decision is either an Admit with From, or a Release.
	Freed struct {
		Attempt job.Attempt
		Node    job.Node
	}
	// Evicted is the outcome of an Evict.
	Evicted struct {
		Node  job.Node
		Asset string
		// OK tells that the asset's bytes are gone.
		OK bool
	}
	// Readmitted takes a device out of quarantine.
	Readmitted struct{ Place Place }
	// Resumed ends a Halt.
	Resumed struct{}
	// Paused stops admission, or lets it go on. Running work goes on.
	Paused struct {
		On     bool
		Reason string
	}
	// Remembered brings what an earlier reign learned of sizes and speeds.
	Remembered struct{ Sizes *sizes.Table }
	// SizePinned has so many bytes booked for a size whatever is measured, or, with 0, no more.
	SizePinned struct {
		Key   sizes.Key
		Bytes bytesize.Bytes
	}
	// Tick says that time has passed. Without other events it should come about every second.
	Tick struct{}
)

func (JobSeen) event()    {}
func (JobGone) event()    {}
func (NodeSeen) event()   {}
func (NodeGone) event()   {}
func (Granted) event()    {}
func (Refused) event()    {}
func (Progress) event()   {}
func (Ended) event()      {}
func (Shrunk) event()     {}
func (Freed) event()      {}
func (Evicted) event()    {}
func (Readmitted) event() {}
func (Resumed) event()    {}
func (Paused) event()     {}
func (Remembered) event() {}
func (SizePinned) event() {}
func (Tick) event()       {}
