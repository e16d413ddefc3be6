package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// A proof has come, and this coordinator has no verifying key: the job waits, and says for what (invariant 8).
func TestAProofThatCannotBeVerifiedYetIsAReasonToWait(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) { // its folder of parameters is empty
		r.pass(10 * time.Second)
		id := r.submit(1)
		r.pass(10 * time.Second)
		j, _ := r.store.Get(id)
		if j.Record.Partitions[0].Stage != job.Reserved {
			t.Fatalf("%+v", j.Record.Partitions[0])
		}
		result := &wire.Result{
			Attempt: j.Record.Attempt(0), Node: "n1", Device: "cpu", Outcome: job.OutcomeOK,
			Proof: make([]byte, wire.ProofBytes),
		}
		data, err := wire.Encode(result)
		r.check(err)
		_, err = r.bus.Publish(r.t.Context(), bus.Message{Subject: wire.ResultSubject("n1"), ID: result.ID(), Data: data})
		r.check(err)
		r.pass(10 * time.Second)
		reasons, err := r.leader.Why(r.t.Context(), id)
		r.check(err)
		if len(reasons) != 1 || !strings.Contains(reasons[0].Text, "verif") || !strings.Contains(reasons[0].Text, ".vk") {
			t.Errorf("reasons %+v", reasons)
		}
	})
}
