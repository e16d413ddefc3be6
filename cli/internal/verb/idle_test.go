package verb

import (
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// B103: where there is nothing to do, nothing is called a failure, and nothing failed among jobs that were cancelled.
func TestB103NothingToDoIsNoFailure(t *testing.T) {
	t.Parallel()
	ready := wire.NodeView{Node: "n1", Ready: true, SeenAt: time.Now()}
	for name, c := range map[string]struct {
		printed result
		mention string
	}{
		"rack without nodes": {&nodesResult{&wire.NodesReply{Reason: "no node is ready"}}, "none has joined yet"},
		"idle workers": {&nodesResult{&wire.NodesReply{Ready: true, Nodes: []wire.NodeView{ready}}},
			"idle: no partition"},
		"no jobs": {&jobsResult{&wire.JobsReply{}}, "no jobs"},
		"cancelled jobs": {&jobsResult{&wire.JobsReply{Jobs: []wire.JobSummary{
			{ID: "01890a5d-ac96-774b-bcce-b302099a8057", State: job.Cancelled, Partitions: 10},
		}}}, "cancelled"},
		"nothing waits":   {&whyResult{&wire.WhyReply{State: job.Active}}, "nothing of it waits"},
		"empty ledger":    {&ledgerResult{&wire.LedgerReply{}}, "no node has a book yet"},
		"no dead letters": {&lettersResult{&wire.DLQReply{}}, "no dead letters"},
		"no proofs":       {&auditResult{&wire.AuditReply{}}, "no records"},
		"nothing runs":    {&drainResult{DrainReply: &wire.DrainReply{Drained: true}}, "nothing runs any more"},
		"drain undone":    {&drainResult{DrainReply: &wire.DrainReply{}, undone: true}, "takes work again"},
	} {
		var text strings.Builder
		c.printed.human(&text)
		if got := text.String(); !strings.Contains(got, c.mention) || strings.Contains(got, "fail") ||
			strings.Contains(got, "error") || strings.Contains(got, "0%") || strings.Contains(got, "NaN") {
			t.Errorf("%s: %q", name, got)
		}
	}
	busy := nodesResult{&wire.NodesReply{Ready: true, Waiting: 1200, Nodes: []wire.NodeView{{Node: "n1", Running: 3}}}}
	var text strings.Builder
	busy.human(&text)
	if !strings.Contains(text.String(), "1,200 partitions wait, 3 run") {
		t.Errorf("%q", &text)
	}
}

// Raw messages in the dead letters are shown without letting them write on the terminal.
func TestDeadMessagesAreListedHarmless(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	(&lettersResult{&wire.DLQReply{Messages: []wire.DeadMessage{{
		At: time.Now(), Subject: "c2.synth.n1", Reason: "not a task\nsecond line", Bytes: 70_000, Start: []byte("\x1b[31m{}"),
	}}}}).human(&text)
	got := text.String()
	if strings.Contains(got, "\x1b") || strings.Count(got, "\n") != 1 ||
		!strings.Contains(got, "68.36 KiB on c2.synth.n1") {
		t.Errorf("%q", got)
	}
}
