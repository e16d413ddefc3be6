package e2e_test

import (
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// What can never end is refused when it is submitted: a partition over its tenant's whole quota, with both numbers, and
// a small input of a tenant that the rack has no buckets for. Others go on.
func TestWhatCanNeverEndIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.calm()
	r.startCoordinator("streams.tenants=main,small", "schedule.quota_bytes={small='4KiB'}")
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU()
	r.ready()
	for tenant, want := range map[job.Tenant]struct {
		kind  fault.Kind
		texts []string
	}{
		"small": {fault.Exhausted, []string{
			"a partition of toy needs ", "the quota of tenant small is 4 KiB", "quota_bytes",
		}},
		"stranger": {fault.NotFound, []string{"no tenant stranger", "streams.tenants"}},
	} {
		c := client.New(r.bus, tenant)
		q := request("refused", 1, 1)
		q.WaitForNode = true
		_, err := c.Submit(t.Context(), q)
		report := fault.ReportOf("", err)
		if report == nil || report.Kind != want.kind {
			t.Errorf("tenant %s: %v", tenant, err)
			continue
		}
		for _, text := range want.texts {
			if !strings.Contains(report.Message+" "+report.Hint, text) {
				t.Errorf("tenant %s: %+v lacks %q", tenant, report, text)
			}
		}
		if jobs, err := c.Jobs(t.Context(), wire.JobsRequest{}); err != nil || len(jobs.Jobs) > 0 {
			t.Errorf("tenant %s has jobs: %+v, %v", tenant, jobs, err)
		}
	}
	r.submit(2)
	r.waitDone()
	r.checkQuiet()
}
