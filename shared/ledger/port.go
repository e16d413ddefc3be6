package ledger

import (
	"context"

	"github.com/proofrack/proofrack/shared/job"
)

// Call is what a leader's calls carry. It comes from Begin.
type Call struct {
	// Term is the leader's reign, 1 … 2^53−1; a lower one than a book has seen is refused.
	Term uint64
	// Epoch names the life of the ledger; a book that was not declared in it is closed.
	Epoch string
}

// Ledger is the port. Errors of all methods: fault.Lost when the call's term is over; *[Refusal] (fault.Transient) when
// the book is closed; fault.Transient when the store is away, loading or too slow (the outcome is then unknown);
// fault.Invalid for malformed arguments; fault.Corrupt when the store holds what this package didn't write.
type Ledger interface {
	// Begin starts a reign: from its return on no caller of a lower term changes a known book. Terms and epochs are
	// minted elsewhere. fault.Lost: a higher term has begun.
	Begin(ctx context.Context, term uint64, epoch string) (Call, error)

	// Declare takes a host's report of what it has and holds, corrects the book by it and opens it. An older report
	// than the last one of the same instance changes nothing (Drift.Stale).
	Declare(ctx context.Context, call Call, d *Declaration) (*Drift, error)

	// Reserve books an attempt's whole path, in all pools or not at all. The same reservation again renews it.
	// *Refusal (fault.Exhausted): it doesn't fit; fault.Lost: the attempt is in limbo or a higher fence is booked;
	// fault.Conflict: the attempt holds something else; fault.Exhausted also when the book is full.
	Reserve(ctx context.Context, call Call, r *Reservation) error

	// Transfer releases one live attempt and books another one on the same node in one step; when the other one
	// doesn't fit nothing changes. Errors as of Reserve; fault.NotFound: from is not booked; fault.Lost also when from
	// is in limbo.
	Transfer(ctx context.Context, call Call, from job.Attempt, to *Reservation) error

	// Renew begins new leases and gives those that have none to renew: they are in limbo or not booked.
	Renew(ctx context.Context, call Call, node job.Node, attempts []job.Attempt) (lost []job.Attempt, err error)

	// Shrink lowers what an attempt holds, live or in limbo, to what it keeps: in each pool to the lower of both, to
	// nothing in pools that keep lacks. fault.NotFound: it is not booked.
	Shrink(ctx context.Context, call Call, node job.Node, attempt job.Attempt, keep Amounts) error

	// Release ends an attempt's reservation, live or in limbo, and tells whether there was one. The caller has the
	// node's evidence that the bytes are gone.
	Release(ctx context.Context, call Call, node job.Node, attempt job.Attempt) (bool, error)

	// Expire puts attempts whose lease is over into limbo and gives all that are in limbo, sorted.
	Expire(ctx context.Context, call Call, node job.Node) (limbo []job.Attempt, err error)

	// Evict takes an idle asset out of all pools, on the node's evidence that it is unloaded, and tells whether it was
	// there. fault.Conflict: it is in use.
	Evict(ctx context.Context, call Call, node job.Node, asset string) (bool, error)

	// Forget drops the book of a node that is gone for good. fault.Conflict: attempts are booked on it.
	Forget(ctx context.Context, call Call, node job.Node) error

	// Node shows a node's book; operators may ask without a call. fault.NotFound: it has none.
	Node(ctx context.Context, node job.Node) (*NodeBook, error)

	// Nodes lists the nodes that have books, sorted.
	Nodes(ctx context.Context) ([]job.Node, error)

	// Close ends the connection; calls under way end soon.
	Close() error
}
