package job_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const id = job.ID("01890a5d-ac96-774b-bcce-b302099a8057")

func active(partitions int) *job.Record {
	r := &job.Record{Version: job.RecordVersion, ID: id, Tenant: job.MainTenant, State: job.Active, SubmittedAt: start}
	for range partitions {
		r.Partitions = append(r.Partitions, job.Partition{Stage: job.Waiting, StageAt: start})
	}
	return r
}

func claim(t *testing.T, r *job.Record, partition int) job.Attempt {
	t.Helper()
	a, err := r.Claim(partition, "n1", "cpu", start)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestNames(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"n1": true, "rack-7-node-12": true, "a": true, "": false, "A": false, "a.b": false, "a*": false, "-a": false,
		"a-":        false,
		"../../etc": false, "a b": false, "ä": false, "0123456789012345678901234567890123": false,
	} {
		if _, err := job.ParseNode(text); (err == nil) != ok || err != nil && !errors.Is(err, job.ErrName) {
			t.Errorf("ParseNode(%q): %v", text, err)
		}
	}
	made, err := job.NewID()
	if err != nil {
		t.Fatal(err)
	}
	a := job.Attempt{Job: made, Partition: 12, Fence: 345}
	if got, err := job.ParseAttempt(a.String()); err != nil || got != a {
		t.Errorf("%s -> %v, %v", a, got, err)
	}
	for _, text := range []string{
		"", "..", string(id), string(id) + ".0.0", string(id) + ".-1.1", string(id) + ".01.1", string(id) + ".9999.1",
		"../x.0.1", string(id) + ".0.1.2", string(id) + ".0.99999999999999999999",
	} {
		if got, err := job.ParseAttempt(text); err == nil {
			t.Errorf("ParseAttempt(%q) = %v", text, got)
		}
	}
}

func TestOneJobToItsEnd(t *testing.T) {
	t.Parallel()
	r := active(2)
	for partition := range 2 {
		a := claim(t, r, partition)
		for _, stage := range []job.Stage{job.Synthesizing, job.Sealed, job.Proving, job.Proved} {
			if changed, err := r.Advance(a, stage, start); !changed || err != nil {
				t.Fatalf("advance to %s: %v, %v", stage, changed, err)
			}
			if changed, err := r.Advance(a, job.Synthesizing, start); changed || err != nil {
				t.Fatalf("an old report: %v, %v", changed, err)
			}
		}
		if err := r.Complete(job.Object{}, start); !errors.Is(err, job.ErrIllegal) {
			t.Fatalf("complete too early: %v", err)
		}
		if err := r.Accept(a, []byte{1}, start); err != nil {
			t.Fatal(err)
		}
		if err := r.Accept(a, []byte{2}, start); !errors.Is(err, job.ErrStale) || r.Partitions[partition].Proof[0] != 1 {
			t.Fatalf("a second result: %v", err)
		}
	}
	if err := r.Complete(job.Object{Name: "x"}, start); err != nil || r.State != job.Done {
		t.Fatal(err)
	}
	if err := r.Cancel(nil, start); !errors.Is(err, job.ErrIllegal) || r.State != job.Done {
		t.Fatalf("cancel after done: %v", err)
	}
}

func TestBudgetsEndAJob(t *testing.T) {
	t.Parallel()
	policy := job.DefaultPolicy()
	r := active(2)
	for count := 1; count <= policy.FailedMax; count++ {
		a := claim(t, r, 1)
		if err := r.Fail(a, &fault.Report{Kind: fault.Device, Message: fmt.Sprint("no ", count)}, policy, start); err != nil {
			t.Fatal(err)
		}
	}
	if r.State != job.Failed || r.Fault.Message != "partition 1 failed 3 times, last: no 3" ||
		r.Fault.Kind != fault.Device {
		t.Fatalf("%s: %+v", r.State, r.Fault)
	}
	if r.Partitions[0].Stage != job.StageStopped {
		t.Errorf("the other partition is %s", r.Partitions[0].Stage)
	}
	if err := r.Replay(start); err != nil || r.State != job.Active || r.Partitions[1].Stage != job.Waiting {
		t.Fatalf("replay: %v", err)
	}
	for range policy.LostMax {
		if err := r.Lose(claim(t, r, 0), "signal: killed", policy, start); err != nil {
			t.Fatal(err)
		}
	}
	if r.State != job.Failed || r.Fault.Message != "partition 0: worker died 10 times (signal: killed)" {
		t.Fatalf("%s: %+v", r.State, r.Fault)
	}
	if err := r.Replay(start); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := r.HandBack(claim(t, r, 0), "drain", 0, start); err != nil || r.State != job.Active {
			t.Fatalf("handing back costs nothing: %v", err)
		}
	}
	if n := len(r.Partitions[0].Attempts); n != job.AttemptsKept {
		t.Errorf("%d attempts in the history", n)
	}
	// What is no longer listed is counted: all but the first and the latest.
	p := &r.Partitions[0]
	unlisted := map[job.Outcome]int{
		job.OutcomeLost: policy.LostMax - 1, job.OutcomeHandedBack: 50 - (job.AttemptsKept - 1),
	}
	if p.AttemptCount() != policy.LostMax+50 || p.Unlisted == nil || !maps.Equal(p.Unlisted.Outcomes, unlisted) {
		t.Errorf("%d attempts, not listed %+v", p.AttemptCount(), p.Unlisted)
	}
	if err := r.Fail(claim(t, r, 0), &fault.Report{Kind: fault.Invalid, Message: "bad"}, policy, start); err != nil {
		t.Fatal(err)
	}
	if r.State != job.Failed || r.Fault.Message != "bad" {
		t.Fatalf("invalid input is not retried: %s: %+v", r.State, r.Fault)
	}
}

// B78: what still is not what its digest says after it could be made anew ends the job; a replay begins anew.
func TestB78SecondMismatchEndsAJob(t *testing.T) {
	t.Parallel()
	policy := job.DefaultPolicy()
	r := active(1)
	fail := func(kind fault.Kind) job.State {
		t.Helper()
		if err := r.Fail(claim(t, r, 0), &fault.Report{Kind: kind, Message: "slice x"}, policy, start); err != nil {
			t.Fatal(err)
		}
		return r.State
	}
	for range 2 { // the second time after a replay
		if fail(fault.Corrupt) != job.Active {
			t.Fatal("the first mismatch ends the job")
		}
		if fail(fault.Corrupt) != job.Failed || r.Fault.Message != "partition 0 failed 2 times, last: slice x" {
			t.Fatalf("after the second mismatch the job is %s: %+v", r.State, r.Fault)
		}
		if err := r.Replay(start); err != nil {
			t.Fatal(err)
		}
	}
	if fail(fault.Device) != job.Active || fail(fault.Corrupt) != job.Active {
		t.Fatal("one mismatch and another fault end the job")
	}
}

func TestPausesDoubleUpToABound(t *testing.T) {
	t.Parallel()
	policy := job.Policy{FailedMax: 10, LostMax: 10, BackoffMin: time.Second, BackoffMax: 5 * time.Second}
	r := active(1)
	var got []time.Duration
	for range 5 {
		if err := r.Lose(claim(t, r, 0), "gone", policy, start); err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Partitions[0].NotBefore.Sub(start)/time.Second)
	}
	if diff := cmp.Diff([]time.Duration{1, 2, 4, 5, 5}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCancelledJobNeverTurnsDone(t *testing.T) {
	t.Parallel()
	r := active(1)
	a := claim(t, r, 0)
	for range 2 {
		if err := r.Cancel(&fault.Report{Kind: fault.Cancelled}, start); err != nil || r.State != job.Cancelling {
			t.Fatalf("%s, %v", r.State, err)
		}
	}
	if err := r.Accept(a, []byte{1}, start); !errors.Is(err, job.ErrStale) {
		t.Errorf("a result after cancel: %v", err)
	}
	if err := r.Stopped(start); err != nil || r.State != job.Cancelled || r.EndedAt == nil {
		t.Errorf("%s, %v", r.State, err)
	}
}

func TestB47DeadlineWaitsForRunningAttempts(t *testing.T) {
	t.Parallel()
	r := active(1)
	deadline := start.Add(time.Minute)
	r.Deadline = &deadline
	late := deadline.Add(time.Second)
	if r.Overdue(deadline.Add(-1)) || !r.Overdue(late) {
		t.Error("a waiting job is overdue from its deadline on")
	}
	a := claim(t, r, 0)
	if r.Overdue(late) {
		t.Error("a running attempt may still end well")
	}
	if err := r.Accept(a, []byte{1}, late); err != nil {
		t.Errorf("a late proof: %v", err)
	}
	other := active(1)
	other.Deadline = &deadline
	if err := other.Expire(late); err != nil || other.State != job.Failed || other.Fault.Kind != fault.Exhausted {
		t.Errorf("%s, %v", other.State, err)
	}
}

// Random histories keep what design section 4 promises: fences only rise (5), proofs stay (6), ends stay (3).
func TestInvariantsUnderRandomTransitions(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := active(3)
		var known []job.Attempt
		policy := job.Policy{FailedMax: 4, LostMax: 5, BackoffMin: 1, BackoffMax: 8}
		now := start
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			before, _ := json.Marshal(r)
			var old job.Record
			_ = json.Unmarshal(before, &old)
			now = now.Add(time.Second)
			a := job.Attempt{Job: id, Partition: rapid.IntRange(0, 2).Draw(t, "partition")}
			if len(known) > 0 && rapid.Bool().Draw(t, "known") {
				a = rapid.SampledFrom(known).Draw(t, "attempt")
			}
			stale := a.Fence != old.Partitions[a.Partition].Fence
			report := &fault.Report{Kind: fault.Device, Message: "x"}
			var err error
			needsFence := true
			switch rapid.IntRange(0, 8).Draw(t, "what") {
			case 0, 1:
				needsFence = false
				if got, e := r.Claim(a.Partition, "n", "d", now); e == nil {
					known = append(known, got)
				}
			case 2:
				_, err = r.Advance(a, rapid.SampledFrom([]job.Stage{job.Synthesizing, job.Sealed, job.Proving}).Draw(t, "s"), now)
			case 3:
				err = r.Accept(a, []byte{byte(a.Fence)}, now)
			case 4:
				err = r.Fail(a, report, policy, now)
			case 5:
				err = r.Lose(a, "gone", policy, now)
			case 6:
				err = r.HandBack(a, "drain", 0, now)
			case 7:
				needsFence = false
				if rapid.IntRange(0, 9).Draw(t, "rarely") == 0 {
					_ = r.Cancel(report, now)
				}
			case 8:
				needsFence = false
				_ = r.Complete(job.Object{}, now)
			}
			after, _ := json.Marshal(r)
			if needsFence && stale && (!errors.Is(err, job.ErrStale) || string(after) != string(before)) {
				t.Fatalf("stale %s changed the record (%v):\n%s\n%s", a, err, before, after)
			}
			if err != nil && string(after) != string(before) {
				t.Fatalf("an error (%v) changed the record", err)
			}
			if old.State.Ended() && string(after) != string(before) {
				t.Fatalf("an ended job changed: %s -> %s", before, after)
			}
			for i, p := range r.Partitions {
				if p.Fence < old.Partitions[i].Fence {
					t.Fatalf("fence of partition %d fell", i)
				}
				if old.Partitions[i].Stage == job.Verified && !cmp.Equal(p, old.Partitions[i]) {
					t.Fatalf("finished partition %d changed", i)
				}
			}
		}
	})
}

func TestWhatIsPassedOverCannotBeClaimed(t *testing.T) {
	t.Parallel()
	r := active(1)
	never := job.Attempt{Job: id, Partition: 0, Fence: 1}
	if !r.PassOver(never) || r.PassOver(never) {
		t.Fatal("a name is passed over once")
	}
	a := claim(t, r, 0)
	if a.Fence != 2 {
		t.Errorf("the next claim has fence %d", a.Fence)
	}
	if r.PassOver(a) || r.PassOver(never) || r.Partitions[0].Stage != job.Reserved {
		t.Error("what was claimed was passed over")
	}
	if r.PassOver(job.Attempt{Job: id, Partition: 1, Fence: 1}) {
		t.Error("a partition that is not there was passed over")
	}
}
