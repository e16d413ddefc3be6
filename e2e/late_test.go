package e2e_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
)

// lateBy is how long after the deadline a proof comes: five seconds by timeScale.
const lateBy = 5 * time.Second / timeScale

// submitUntil has a job with a deadline accepted.
func (r *rack) submitUntil(deadline time.Time, seed uint64) *submitted {
	r.t.Helper()
	q := request("with a deadline", uint64(len(r.jobs)+1), seed)
	q.Deadline = &deadline
	s, err := r.client.Submit(r.t.Context(), q)
	r.check(err)
	return r.accepted(s.Job, seed)
}

// reachedWith submits a job of one partition that stays at a hook point. Where the machine does not get there before
// the deadline the job fails, and the next one gets more time.
func (r *rack) reachedWith(within time.Duration, point string) (deadline time.Time, j *submitted) {
	r.t.Helper()
	for ; ; within *= 2 {
		deadline = time.Now().Add(within)
		j = r.submitUntil(deadline, 1)
		reached := false
		until(r.t, point+" is reached, or the job has failed", func() bool {
			ended := r.record(j).State.Ended()
			_, reached = hook.ReachedBy(r.hooks, point)
			return reached || ended
		})
		if reached {
			return deadline, j
		}
		r.t.Logf("the machine does not get to %s within %s", point, within)
	}
}

// B47: the deadline is shorter than the job. The proof that comes after it is accepted.
func TestB47ProofAfterTheDeadlineIsAccepted(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.startCoordinator()
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU(r.hooked(
		"pause@gpu.mid-proof", "pause@gpu.mid-proof#2", "pause@gpu.mid-proof#3", "pause@gpu.mid-proof#4",
	)...)
	r.ready()
	point, within := "gpu.mid-proof#1", 2*lease
	deadline, j := r.reachedWith(within, point)
	for k := 2; k <= 4 && !time.Now().Before(deadline); k++ { // the machine is slow: another job, with more time
		r.letGo(point)
		r.waitEnd(j)
		point, within = fmt.Sprintf("gpu.mid-proof#%d", k), 2*within
		deadline, j = r.reachedWith(within, point)
	}
	time.Sleep(time.Until(deadline.Add(lateBy)))
	if record := r.record(j); record.State != job.Active {
		t.Fatalf("in mid-proof %s after the deadline the job is %s: %+v", lateBy, record.State, record.Fault)
	}
	r.letGo(point)
	r.waitDone(j)
	record := r.record(j)
	if !record.EndedAt.After(deadline) || len(record.Partitions[0].Attempts) != 1 || record.LateCount != 0 {
		t.Errorf("ended at %s with a deadline of %s, %d results too late: %+v", record.EndedAt, deadline, record.LateCount,
			record.Partitions[0].Attempts)
	}
	r.checkQuiet()
}

// B47: a proof comes after its attempt was given up. It was made while NATS was away, and lies with a worker that
// is frozen for longer than its lease. Then it changes nothing (invariant 5) and is recorded as late, whether the
// retry has begun or the job has failed at its deadline meanwhile; the worker is told nothing worse than that, and
// the job is there to be asked for.
func TestB47ProofOfAnAttemptThatWasGivenUpIsRecorded(t *testing.T) {
	t.Parallel()
	t.Run("the retry has begun", func(t *testing.T) {
		t.Parallel()
		r, j := heldBack(t, time.Hour)
		n2 := r.addNode("n2")
		n2.startSynth()
		n2.startGPU(r.hooked("pause@gpu.mid-proof")...)
		r.reached("gpu.mid-proof#1")
		r.comesLate(j)
		r.letGo("gpu.mid-proof#1")
		r.waitDone()
		if p := r.record(j).Partitions[0]; len(p.Attempts) != 2 || p.Node != "n2" {
			t.Errorf("the retry's attempts: %+v", p.Attempts)
		}
		r.checkQuiet()
		r.wantLate(j, 1)
	})
	t.Run("the job has failed", func(t *testing.T) {
		t.Parallel()
		r, j := heldBack(t, 2*lease)
		r.waitEnd(j)
		r.comesLate(j)
		if record := r.record(j); record.State != job.Failed || record.Fault.Kind != fault.Exhausted {
			t.Errorf("the job is %s: %+v", record.State, record.Fault)
		}
		r.checkQuiet()
		r.wantLate(j, 1)
	})
}

// heldBack is a rack with a job whose proof was made while NATS was away, by a worker that is frozen since.
func heldBack(t *testing.T, within time.Duration) (*rack, *submitted) {
	t.Helper()
	r := newRack(t)
	r.startCoordinator()
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU(r.hooked("pause@gpu.after-proof", "pause@gpu.after-result")...)
	r.ready()
	_, j := r.reachedWith(within, "gpu.after-proof#1")
	r.nats.kill()
	r.letGo("gpu.after-proof#1")
	r.reached("gpu.after-result#1") // the result is kept, there is nobody to send it to
	n.gpu.signal(syscall.SIGSTOP)
	r.nats.start(t)
	return r, j
}

// comesLate lets the frozen worker go on, and its proof is recorded and changes nothing else.
func (r *rack) comesLate(j *submitted) {
	r.t.Helper()
	before := r.record(j)
	if p := &before.Partitions[0]; lost(p) != 1 || before.LateCount != 0 {
		r.t.Fatalf("while the first worker is frozen: %+v", before)
	}
	r.nodes[0].gpu.signal(syscall.SIGCONT)
	r.letGo("gpu.after-result#1")
	until(r.t, "the proof is recorded as late", func() bool { return r.record(j).LateCount == 1 })
	after := r.record(j)
	p := &after.Partitions[0]
	if after.State != before.State || len(p.Proof) > 0 || p.Fence != before.Partitions[0].Fence {
		r.t.Errorf("a late proof changed\n%+v to\n%+v", before, after)
	}
}

func (r *rack) wantLate(j *submitted, want int) {
	r.t.Helper()
	if count := r.record(j).LateCount; count != want {
		r.t.Errorf("%d late results, not %d", count, want)
	}
}
