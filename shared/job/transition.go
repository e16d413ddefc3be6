package job

import (
	"fmt"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
)

// ErrStale says that an attempt does not own its partition (any more): whatever it did must change nothing.
var ErrStale = fault.New(fault.Lost, "attempt is stale")

// ErrIllegal says that a transition does not exist from where the job is.
var ErrIllegal = fault.New(fault.Conflict, "job does not allow this now")

// Policy bounds attempts.
type Policy struct {
	// FailedMax is how many failed attempts end a partition, LostMax how many that were lost with their worker.
	FailedMax, LostMax int
	// BackoffMin is the pause after the first failure; it doubles up to BackoffMax.
	BackoffMin, BackoffMax time.Duration
}

// DefaultPolicy is design section 4's start values.
func DefaultPolicy() Policy {
	return Policy{FailedMax: 3, LostMax: 10, BackoffMin: time.Second, BackoffMax: 30 * time.Second}
}

func (p Policy) backoff(count int) time.Duration {
	pause := p.BackoffMin
	for i := 1; i < count && pause < p.BackoffMax; i++ {
		pause *= 2
	}
	return min(pause, p.BackoffMax)
}

// owned gives the partition when the attempt owns it.
func (r *Record) owned(a Attempt) (*Partition, error) {
	if a.Job != r.ID || a.Partition < 0 || a.Partition >= len(r.Partitions) {
		return nil, fmt.Errorf("attempt %s is none of job %s: %w", a, r.ID, ErrStale)
	}
	p := &r.Partitions[a.Partition]
	if r.State != Active || p.Fence != a.Fence || !p.Stage.Running() {
		return nil, fmt.Errorf("attempt %s (job %s, partition %s, fence %d): %w", a, r.State, p.Stage, p.Fence, ErrStale)
	}
	return p, nil
}

// Claim gives a waiting partition to a new attempt and raises the fence.
func (r *Record) Claim(partition int, node Node, device Device, now time.Time) (Attempt, error) {
	p := &r.Partitions[partition]
	if r.State != Active || p.Stage != Waiting {
		return Attempt{}, fmt.Errorf(
			"claim partition %d of job %s (%s, %s): %w",
			partition,
			r.ID,
			r.State,
			p.Stage,
			ErrIllegal,
		)
	}
	p.Fence++
	p.Node, p.Device, p.NotBefore = node, device, nil
	p.enter(Reserved, now)
	p.remember(AttemptRecord{Fence: p.Fence, Node: node, Device: device, StartedAt: now})
	return r.Attempt(partition), nil
}

// PassOver raises the fence of a partition to that of an attempt which was never claimed, so that it never can be: its
// name may then be forgotten everywhere, and what is still under way in its name comes too late. It reports whether
// anything changed; a fence that is as high changes nothing.
func (r *Record) PassOver(a Attempt) (changed bool) {
	if a.Partition < 0 || a.Partition >= len(r.Partitions) || r.Partitions[a.Partition].Fence >= a.Fence {
		return false
	}
	r.Partitions[a.Partition].Fence = a.Fence
	return true
}

// Advance moves an attempt's partition on to a later running stage. It reports whether anything changed: a report of a
// stage that was reached or passed changes nothing.
func (r *Record) Advance(a Attempt, stage Stage, now time.Time) (changed bool, err error) {
	p, err := r.owned(a)
	if err != nil {
		return false, err
	}
	if !stage.Running() {
		return false, fmt.Errorf("advance attempt %s to %s: %w", a, stage, ErrIllegal)
	}
	if strings.Index(stagesInOrder, string(stage)) <= strings.Index(stagesInOrder, string(p.Stage)) {
		return false, nil
	}
	p.enter(stage, now)
	return true, nil
}

// Accept finishes a partition with its proof, which the caller has verified.
func (r *Record) Accept(a Attempt, proof []byte, now time.Time) error {
	p, err := r.owned(a)
	if err != nil {
		return err
	}
	p.Proof = proof
	p.enter(Verified, now)
	p.settle(OutcomeOK, nil, now)
	return nil
}

// Fail ends an attempt. Invalid and exhausted budgets end the partition and with it the job; anything else puts it
// back
// to wait. Faults of kind Lost and Cancelled are no failures of the attempt: use Lose, HandBack or Cancel.
func (r *Record) Fail(a Attempt, report *fault.Report, policy Policy, now time.Time) error {
	p, err := r.owned(a)
	if err != nil {
		return err
	}
	p.FailedCount++
	p.settle(OutcomeFailed, report, now)
	if report.FaultKind() != fault.Invalid && p.FailedCount < policy.FailedMax && p.mismatches() < MismatchesMax {
		p.wait(policy.backoff(p.FailedCount), now)
		return nil
	}
	p.enter(StageFailed, now)
	last := *report
	if report.FaultKind() != fault.Invalid {
		last.Message = fmt.Sprintf("partition %d failed %d times, last: %s", a.Partition, p.FailedCount, report.Message)
	}
	r.fail(&last, now)
	return nil
}

// MismatchesMax is how many failed attempts may find stored bytes that are not what their digest says. What can be made
// anew was, after the first; what still does not match then never will (field report B78).
const MismatchesMax = 2

// mismatches counts them among the attempts that failed since the budget was new.
func (p *Partition) mismatches() (count int) {
	failed := p.FailedCount
	for i := len(p.Attempts) - 1; i >= 0 && failed > 0; i-- {
		a := &p.Attempts[i]
		if a.Outcome != OutcomeFailed {
			continue
		}
		failed--
		if a.Fault != nil && a.Fault.FaultKind() == fault.Corrupt {
			count++
		}
	}
	return count
}

// Lose ends an attempt whose worker died, hung or was cut off; cause says what is known, e.g. "signal: killed".
func (r *Record) Lose(a Attempt, cause string, policy Policy, now time.Time) error {
	p, err := r.owned(a)
	if err != nil {
		return err
	}
	p.LostCount++
	p.settle(OutcomeLost, &fault.Report{Kind: fault.Lost, Stage: string(p.Stage), Message: cause}, now)
	if p.LostCount < policy.LostMax {
		p.wait(policy.backoff(p.LostCount), now)
		return nil
	}
	p.enter(StageFailed, now)
	r.fail(&fault.Report{
		Kind:    fault.Device,
		Message: fmt.Sprintf("partition %d: worker died %d times (%s)", a.Partition, p.LostCount, cause),
	}, now)
	return nil
}

// HandBack puts the partition of an attempt that was given up on purpose back to wait, at no cost.
func (r *Record) HandBack(a Attempt, reason string, pause time.Duration, now time.Time) error {
	p, err := r.owned(a)
	if err != nil {
		return err
	}
	p.settle(OutcomeHandedBack, &fault.Report{Kind: fault.Cancelled, Stage: string(p.Stage), Message: reason}, now)
	p.wait(pause, now)
	return nil
}

// Cancel stops a job: nothing of it may change anything from now on. It becomes Cancelled by Stopped. Cancelling again
// changes nothing; an ended job refuses.
func (r *Record) Cancel(report *fault.Report, now time.Time) error {
	switch {
	case r.State == Cancelling || r.State == Cancelled:
		return nil
	case r.State.Ended():
		return fmt.Errorf("cancel job %s, which is %s: %w", r.ID, r.State, ErrIllegal)
	}
	r.State, r.Fault = Cancelling, report
	r.stop(now)
	return nil
}

// Stopped ends a cancelling job of which nothing runs or holds bytes any more.
func (r *Record) Stopped(now time.Time) error {
	if r.State != Cancelling {
		return fmt.Errorf("end job %s, which is %s: %w", r.ID, r.State, ErrIllegal)
	}
	r.State, r.EndedAt = Cancelled, &now
	return nil
}

// Overdue tells whether the deadline has passed and the job should fail for it: when every partition without a proof
// is
// being worked on, the attempts may still end it well, late as it is.
func (r *Record) Overdue(now time.Time) bool {
	if r.State != Active || r.Deadline == nil || now.Before(*r.Deadline) {
		return false
	}
	for i := range r.Partitions {
		if r.Partitions[i].Stage == Waiting {
			return true
		}
	}
	return false
}

// Expire fails a job that is overdue.
func (r *Record) Expire(now time.Time) error {
	if !r.Overdue(now) {
		return fmt.Errorf("expire job %s: %w", r.ID, ErrIllegal)
	}
	r.fail(&fault.Report{Kind: fault.Exhausted, Message: fmt.Sprintf("deadline %s passed with %d of %d partitions proved",
		r.Deadline.UTC().Format(time.RFC3339), r.VerifiedCount(), len(r.Partitions))}, now)
	return nil
}

// FailWhole ends an active job that cannot go on, e.g. because its input is gone.
func (r *Record) FailWhole(report *fault.Report, now time.Time) error {
	if r.State != Active {
		return fmt.Errorf("fail job %s, which is %s: %w", r.ID, r.State, ErrIllegal)
	}
	r.fail(report, now)
	return nil
}

// Complete ends a job all of whose partitions are verified.
func (r *Record) Complete(result Object, now time.Time) error {
	if r.State != Active || r.VerifiedCount() != len(r.Partitions) {
		return fmt.Errorf("complete job %s (%s, %d of %d partitions verified): %w",
			r.ID, r.State, r.VerifiedCount(), len(r.Partitions), ErrIllegal)
	}
	r.State, r.EndedAt, r.Result = Done, &now, &result
	return nil
}

// Replay makes a failed job active again with fresh budgets; finished partitions stay finished.
func (r *Record) Replay(now time.Time) error {
	if r.State != Failed {
		return fmt.Errorf("replay job %s, which is %s: %w", r.ID, r.State, ErrIllegal)
	}
	r.State, r.Fault, r.EndedAt, r.Deadline = Active, nil, nil, nil
	for i := range r.Partitions {
		p := &r.Partitions[i]
		if p.Stage != Verified {
			p.FailedCount, p.LostCount = 0, 0
			p.wait(0, now)
		}
	}
	return nil
}

func (r *Record) fail(report *fault.Report, now time.Time) {
	r.State, r.Fault, r.EndedAt = Failed, report, &now
	r.stop(now)
}

// stop fences out whatever of the job runs.
func (r *Record) stop(now time.Time) {
	for i := range r.Partitions {
		p := &r.Partitions[i]
		if p.Stage.Running() {
			p.settle(OutcomeCancelled, nil, now)
		}
		if p.Stage.Running() || p.Stage == Waiting {
			p.Fence++
			p.enter(StageStopped, now)
		}
	}
}

func (p *Partition) enter(stage Stage, now time.Time) {
	p.Stage, p.StageAt = stage, now
}

// wait puts a partition back to wait and fences out whoever had it.
func (p *Partition) wait(pause time.Duration, now time.Time) {
	p.Fence++
	p.Node, p.Device, p.NotBefore = "", "", nil
	if pause > 0 {
		at := now.Add(pause)
		p.NotBefore = &at
	}
	p.enter(Waiting, now)
}

func (p *Partition) remember(a AttemptRecord) {
	p.Attempts = append(p.Attempts, a)
	if len(p.Attempts) > AttemptsKept {
		p.Unlist(1, len(p.Attempts)-AttemptsKept+1)
	}
}

func (p *Partition) settle(outcome Outcome, report *fault.Report, now time.Time) {
	if last := p.Last(); last != nil && last.EndedAt == nil {
		last.Outcome, last.Fault, last.EndedAt = outcome, report, &now
	}
}

// Last is the latest attempt in the history, nil before the first.
func (p *Partition) Last() *AttemptRecord {
	if len(p.Attempts) == 0 {
		return nil
	}
	return &p.Attempts[len(p.Attempts)-1]
}
