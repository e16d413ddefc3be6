package scheduler

import (
	"fmt"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
)

// Code is the kind of a wait.
type Code string

// Codes.
const (
	Backoff       Code = "backoff"       // until a time, after a failure or a refusal
	PausedCode    Code = "paused"        // admission is paused or halted
	NoNode        Code = "no-node"       // no node at all
	NoParams      Code = "no-params"     // no worker has what the circuit needs
	Unschedulable Code = "unschedulable" // larger than every node
	Unavailable   Code = "unavailable"   // what could run it is draining, cordoned, not ready, or of another version
	Memory        Code = "memory"        // bytes of a pool are missing
	Eviction      Code = "eviction"      // an idle asset is on its way out
	Pinned        Code = "pinned"        // an older waiter keeps the node's free bytes
	Refusal       Code = "refused"       // the ledger refused on the node, which is left alone for a moment
	Slots         Code = "slots"         // synthesis has its slots full
	Turn          Code = "turn"          // the devices have enough work ahead
	QuotaCode     Code = "quota"         // the tenant has as much in flight as it may
	Asked         Code = "asked"         // being reserved right now
)

// Hold is what holds a waiter, in short: for traces and metrics.
type Hold struct {
	Code Code
	// Pool and Node are set for waits for memory.
	Pool ledger.Pool
	Node job.Node
}

// Reason is why one partition waits (invariant 8).
type Reason struct {
	Partition int
	Code      Code
	// Text is the whole reason for people.
	Text string
	// Place is the node, and where it matters the device, that the partition could run on soonest.
	Place Place
	// Of waits for memory and unschedulable ones: the pool, what is needed of it, what is free (or the largest node has),
	// how much is missing and who holds it, largest first.
	Pool    ledger.Pool
	Need    bytesize.Bytes
	Free    bytesize.Bytes
	Missing bytesize.Bytes
	Holders []Holder
	// Until is when a backoff ends.
	Until time.Time
	// Ahead is how many waiters go before it.
	Ahead int
}

// Holder is an attempt or asset that holds bytes.
type Holder struct {
	Name  string
	Bytes bytesize.Bytes
}

// Unfit says that a circuit's partitions are larger than every known node (B41).
type Unfit struct {
	Circuit string
	Pool    ledger.Pool
	Need    bytesize.Bytes
	// Largest is the node with the largest capacity of the pool, Has that capacity.
	Largest job.Node
	Has     bytesize.Bytes
}

// Error names both numbers.
func (u *Unfit) Error() string {
	return fmt.Sprintf("unschedulable: a partition of %s needs %s of %s, the largest node %s has %s",
		u.Circuit, u.Need, u.Pool, u.Largest, u.Has)
}

// FaultKind is Exhausted.
func (u *Unfit) FaultKind() fault.Kind { return fault.Exhausted }

// Hint says what to do.
func (u *Unfit) Hint() string { return "add a larger node, or submit with --wait-for-node" }
