package reconcile

import "github.com/proofrack/proofrack/shared/job"

// Facts are what is known of one attempt.
type Facts struct {
	// Owner tells that the record says that the attempt owns its partition, Stage how far it is.
	Owner bool
	Stage job.Stage
	// Granted tells that the ledger has a reservation, live or in limbo. It means something only if BookOpen: the node
	// has declared what it holds in the ledger's present life.
	Granted, BookOpen bool
	// NodeGone tells that the node has not been heard of for a lease.
	NodeGone bool
	// Held tells that the node's own book has it, Complete that this book is whole, Live that a worker names it.
	Held, Complete, Live bool
	// Overdue tells that it was proved longer ago than a result takes to the record.
	Overdue bool
	// UnderWay tells that something about it is being done right now.
	UnderWay bool
}

// Repair is what brings the truths together.
type Repair string

// Repairs.
const (
	None     Repair = "none"
	Publish  Repair = "publish"   // its task again, with the same message id
	HandBack Repair = "hand back" // its partition, at no cost
	Lose     Repair = "lose"      // its partition, as of a lost worker
	Declare  Repair = "declare"   // the node's holdings
	Release  Repair = "release"   // its reservation
	Cancel   Repair = "cancel"    // tell the node to stop it
)

// Judge gives the repair.
func Judge(f Facts) Repair {
	switch {
	case f.UnderWay:
		return None
	case f.Owner:
		return judgeOwner(f)
	case f.NodeGone:
		return None // its bytes stay booked until the node speaks again
	case f.Held || f.Live:
		return Cancel
	case f.Granted && f.Complete:
		return Release
	}
	return None
}

func judgeOwner(f Facts) Repair {
	known := f.Granted && f.BookOpen
	switch {
	case f.NodeGone && !f.Granted:
		return Lose // no lease will end for it
	case f.NodeGone, !f.BookOpen:
		return None
	case f.Stage == job.Reserved && !f.Held && !f.Live:
		if known {
			return Publish
		}
		return HandBack
	case f.Stage == job.Proved && known && !f.Held && f.Complete:
		return Release
	case f.Stage == job.Proved && !f.Granted && !f.Held && f.Overdue:
		return Lose // its bytes came back, so no lease will end for it
	case f.Stage == job.Proved, known:
		return None
	case f.Held:
		return Declare
	case f.Live || !f.Complete:
		return None
	}
	return Lose
}
