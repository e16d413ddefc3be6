package verb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

func auditID(i int) job.ID { return job.ID(fmt.Sprintf("01890a5d-ac96-774b-bcce-%012d", i)) }

func auditRecord(i int) wire.Audit {
	return wire.Audit{
		Job: auditID(i), Tenant: "main", Miner: "f01000", SectorNumber: uint64(i), Circuit: "porep-2KiB",
		InputHash: "in" + fmt.Sprint(i), ProofSHA256: "out", ParamsDigest: "params", AttemptCount: 3,
		Attempts: []job.AttemptRecord{
			{Node: "n1", Device: "gpu0", Build: "v1"}, {Node: "n1", Device: "gpu0", Build: "v1"}, {Node: "n2", Device: "cpu"},
		},
	}
}

// audited is NATS with a rack that answers for audit records in pages of two; the middle page is empty.
func audited(t *testing.T) string {
	t.Helper()
	url, b := connected(t)
	pages := map[job.ID]*wire.AuditReply{
		"":         {Records: []wire.Audit{auditRecord(1), auditRecord(2)}, More: true, Next: auditID(2)},
		auditID(2): {Records: []wire.Audit{}, More: true, Next: auditID(7)},
		auditID(7): {Records: []wire.Audit{auditRecord(8)}},
	}
	_, err := b.Serve(bus.Service{Name: "c2", Version: "1.0.0", Endpoints: []bus.Endpoint{{
		Name: "audit", Subject: wire.AdminSubject(wire.AdminAudit),
		Handle: func(_ context.Context, m bus.Message) (bus.Message, error) {
			var q wire.AuditRequest
			if err := wire.Decode(m.Data, &q); err != nil {
				return bus.Message{}, err
			}
			data, err := wire.Encode(pages[q.After])
			return bus.Message{Data: data}, err
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// What is kept of each proof can be exported as a whole, and says what went in and what made it.
func TestAuditExportsAllPages(t *testing.T) {
	t.Parallel()
	url := audited(t)
	run := func(args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		code := Run(t.Context(), append([]string{"audit", "--server", url}, args...),
			Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		if code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, &errs)
		}
		return out.String()
	}
	page := run()
	for _, want := range []string{
		"input in1", "parameters params", "proof out, 3 attempts, made by n1/gpu0 (v1), n2/cpu (unknown build)",
		"further records: --after " + string(auditID(2)),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("a page lacks %q:\n%s", want, page)
		}
	}
	if empty := run("--after", string(auditID(2))); !strings.Contains(empty, "--after "+string(auditID(7))) {
		t.Errorf("a page without records does not say that there are further ones: %s", empty)
	}
	var jobs []job.ID
	decoder := json.NewDecoder(strings.NewReader(run("--all", "--json")))
	for {
		var reply wire.AuditReply
		err := decoder.Decode(&reply)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || reply.More {
			t.Fatalf("%+v, %v", reply, err)
		}
		for _, rec := range reply.Records {
			jobs = append(jobs, rec.Job)
		}
	}
	if got, want := fmt.Sprint(jobs), fmt.Sprint([]job.ID{auditID(1), auditID(2), auditID(8)}); got != want {
		t.Errorf("exported %s, want %s", got, want)
	}
}
