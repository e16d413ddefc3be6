package verb

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// An operator's word goes to the leader as it was given, without --yes as none; the answer says what was released.
func TestOperatorsWordsAreSentAsGiven(t *testing.T) {
	t.Parallel()
	a := job.Attempt{Job: auditID(1), Partition: 3, Fence: 7}
	url, b := connected(t)
	var unbook wire.UnbookRequest
	var release wire.ReleaseRequest
	answer := func(subject string, request, reply wire.Body) bus.Endpoint {
		return bus.Endpoint{
			Name: subject, Subject: wire.AdminSubject(subject),
			Handle: func(_ context.Context, m bus.Message) (bus.Message, error) {
				if err := wire.Decode(m.Data, request); err != nil {
					return bus.Message{}, err
				}
				data, err := wire.Encode(reply)
				return bus.Message{Data: data}, err
			},
		}
	}
	_, err := b.Serve(bus.Service{Name: "c2-leader", Version: "1.0.0", Endpoints: []bus.Endpoint{
		answer(wire.AdminUnbook, &unbook, &wire.ForgetReply{Forgotten: wire.Forgotten{
			Node: "n1", Attempts: []job.Attempt{a}, Held: ledger.Amounts{ledger.PoolRAM: bytesize.GiB},
		}}),
		answer(wire.AdminRelease, &release, &wire.Reply{}),
	}})
	if err != nil {
		t.Fatal(err)
	}
	run := func(want int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		code := Run(t.Context(), append(args, "--server", url), Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		if code != want {
			t.Errorf("%v: exit code %d: %s", args, code, &errs)
		}
		return out.String()
	}
	text := run(0, "ledger", "release", "n1", a.String(), "--yes", "--reason", "seen by eye")
	if !strings.Contains(text, "ram 1 GiB") || !strings.Contains(text, a.String()) || !strings.Contains(text, "n1") {
		t.Errorf("the answer lacks something: %s", text)
	}
	want := wire.UnbookRequest{Node: "n1", Attempt: a, Gone: true, Reason: "seen by eye"}
	if diff := cmp.Diff(want, unbook); diff != "" {
		t.Error(diff)
	}
	unbook = wire.UnbookRequest{}
	if run(0, "ledger", "release", "n1", a.String()); unbook.Gone {
		t.Error("a word that was not given")
	}
	run(2, "ledger", "release", "n1")
	run(2, "ledger", "release", "n1", "no-attempt", "--yes")
	run(0, "nodes", "readmit", "n1", "gpu0")
	if diff := cmp.Diff(wire.ReleaseRequest{Node: "n1", Device: "gpu0"}, release); diff != "" {
		t.Error(diff)
	}
	release = wire.ReleaseRequest{}
	text = run(0, "nodes", "readmit", "--halted")
	if release != (wire.ReleaseRequest{}) || !strings.Contains(text, "rack") {
		t.Errorf("%+v: %s", release, text)
	}
	run(2, "nodes", "readmit")
	run(2, "nodes", "readmit", "n1")
	run(2, "nodes", "readmit", "n1", "gpu0", "--halted")
}
