package verb

import (
	"errors"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// Invariant 8: whoever waits for a job is told what it waits for, once while that stays the same, and no more when it
// runs. A rack that does not answer that changes nothing.
func TestWatchSaysWhatAJobWaitsFor(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	w := &watcher{a: &app{Streams: Streams{Err: &text}}, meter: &meter{}}
	asked := 0
	w.why = func() (*wire.WhyReply, error) {
		asked++
		return &wire.WhyReply{Reasons: []wire.Reason{
			{Partitions: []int{0, 1}, Text: "ram of n1: 3GiB missing,\nheld by j2"}, {Partitions: []int{2}, Text: "other"},
		}}, nil
	}
	status := func(stages ...job.Stage) *wire.StatusReply {
		r := &job.Record{State: job.Active}
		for _, stage := range stages {
			r.Partitions = append(r.Partitions, job.Partition{Stage: stage})
		}
		return &wire.StatusReply{Record: r}
	}
	for range 3 {
		w.see(status(job.Waiting, job.Waiting, job.Waiting))
	}
	want := "0 of 3 proved, 3 waiting; partitions 0,1: ram of n1: 3GiB missing, held by j2 (and 1 more)\n"
	if got := text.String(); asked != 1 || strings.Count(got, "\n") != 1 || !strings.HasSuffix(got, want) {
		t.Errorf("asked %d times: %q", asked, got)
	}
	text.Reset()
	w.see(status(job.Proving, job.Proving, job.Verified))
	if got := text.String(); !strings.HasSuffix(got, "1 of 3 proved, 2 proving\n") {
		t.Errorf("while it runs: %q", got)
	}
	text.Reset()
	w.why = func() (*wire.WhyReply, error) { return nil, errors.New("nobody leads") }
	w.see(status(job.Waiting, job.Verified, job.Verified))
	if got := text.String(); !strings.HasSuffix(got, "2 of 3 proved, 1 waiting\n") {
		t.Errorf("while nobody leads: %q", got)
	}
}
