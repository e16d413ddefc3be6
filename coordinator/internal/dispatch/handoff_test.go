package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// A segment that went to disk: the record says so and why, as soon as it is sealed and for good, and the log says so
// once.
func TestB90TheRecordSaysWhyASegmentIsOnDisk(t *testing.T) {
	t.Parallel()
	const why = "no room in memory: 5 MiB are free, 8 MiB are needed"
	leading(t, func(r *reign) {
		a := r.given()
		tell := func(subject string, body wire.Body) {
			data, err := wire.Encode(body)
			r.check(err)
			r.check(r.bus.Send(r.t.Context(), bus.Message{Subject: subject, Data: data}))
			time.Sleep(time.Second)
		}
		history := func() job.AttemptRecord {
			j, _ := r.store.Get(a.Job)
			return j.Record.Partitions[0].Attempts[0]
		}
		for _, stage := range []job.Stage{job.Synthesizing, job.Sealed, job.Proving} {
			tell(wire.ReportSubject("n1"), &wire.Report{
				Attempt: a, Node: "n1", Stage: stage, Handoff: wire.HandoffDisk, HandoffReason: why,
			})
			if h := history(); h.Handoff != wire.HandoffDisk || h.HandoffReason != why {
				r.t.Errorf("%s: handed over in %q because of %q", stage, h.Handoff, h.HandoffReason)
			}
		}
		// A worker of the build before does not say why: what is known stays.
		data, err := wire.Encode(&wire.Result{
			Attempt: a, Node: "n1", Device: "cpu", Outcome: job.OutcomeFailed, Handoff: wire.HandoffDisk,
			Fault: &fault.Report{Kind: fault.Device, Message: "x"},
		})
		r.check(err)
		_, err = r.bus.Publish(r.t.Context(), bus.Message{Subject: wire.ResultSubject("n1"), ID: "r", Data: data})
		r.check(err)
		time.Sleep(time.Second)
		if h := history(); h.Outcome != job.OutcomeFailed || h.HandoffReason != why {
			r.t.Errorf("at the end: %s, handed over in %q because of %q", h.Outcome, h.Handoff, h.HandoffReason)
		}
		if n := strings.Count(r.logged.String(), why); n != 1 {
			r.t.Errorf("the log says %d times why", n)
		}
	})
}
