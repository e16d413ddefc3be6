package attempt

import (
	"errors"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// Verdict is what becomes of an attempt whose work ended with an error.
type Verdict struct {
	// Outcome is what the result says; "" publishes none: the fence was raised, nobody waits for it.
	Outcome job.Outcome
	// Blame tells that the device or its engine is at fault.
	Blame bool
}

// Judge decides by the kind of an error alone, but for ErrDeaths.
func Judge(err error) Verdict {
	if errors.Is(err, ErrDeaths) {
		return Verdict{Outcome: job.OutcomeLost}
	}
	switch kind := fault.KindOf(err); kind {
	case fault.Invalid, // the coordinator ends the job: no retry helps
		fault.Conflict, fault.NotFound, fault.Corrupt, fault.Transient, fault.Internal:
		return Verdict{Outcome: job.OutcomeFailed}
	case fault.Device:
		return Verdict{Outcome: job.OutcomeFailed, Blame: true}
	case fault.Exhausted, // the node's veto
		fault.Cancelled: // the worker leaves
		return Verdict{Outcome: job.OutcomeHandedBack}
	case fault.Lost:
		return Verdict{}
	default:
		panic("attempt: no verdict for fault kind " + string(kind))
	}
}

// Causes for which runs are cancelled.
var (
	// ErrHandBack: the worker is asked to leave at once.
	ErrHandBack = fault.New(fault.Cancelled, "handed back: the worker stops")
	// ErrCancelled: the coordinator raised the fence and said so.
	ErrCancelled = fault.New(fault.Lost, "cancelled by the coordinator")
	// ErrStalled: the work showed no progress for too long.
	ErrStalled = fault.New(fault.Internal, "no progress")
	// ErrDeaths: DeathsMax workers died at work on the attempt.
	ErrDeaths = fault.New(fault.Lost, "its workers died")
	// ErrOrphaned: the job's record is gone.
	ErrOrphaned = fault.New(fault.Lost, "orphaned: the job's record is gone")
)
