package scheduler_test

import (
	"testing"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
)

// A partition that is larger than its tenant's quota on every device is refused with both numbers, as one larger than
// every node is (B41); it would wait for ever.
func TestB41LargerThanTheQuotaIsRefusedWithBothNumbers(t *testing.T) {
	t.Parallel()
	cfg := scheduler.DefaultConfig()
	cfg.Quotas = map[job.Tenant]scheduler.Quota{"small": {Bytes: gib(8)}, "few": {Partitions: 1}, "none": {}}
	w := newWorld(t, cfg)
	if err := w.core.FitsQuota("small", "c"); err != nil {
		t.Errorf("while no node says what it takes: %v", err)
	}
	w.addNode(nodeView("n1", 64, 1, map[string]scheduler.CircuitView{"c": ready(kind(10, 0, 20, "c"))}, "gpu0"))
	err := w.core.FitsQuota("small", "c")
	if fault.KindOf(err) != fault.Exhausted ||
		err.Error() != "a partition of c needs 10 GiB of ram, the quota of tenant small is 8 GiB" {
		t.Errorf("%v", err)
	}
	for _, tenant := range []job.Tenant{"few", "none", "another"} {
		if err := w.core.FitsQuota(tenant, "c"); err != nil {
			t.Errorf("tenant %s without a bound on bytes: %v", tenant, err)
		}
	}
	if err := w.core.FitsQuota("small", "d"); err != nil {
		t.Errorf("a circuit that nobody knows: %v", err)
	}
	// Elsewhere it takes less: shared assets count for nobody.
	w.addNode(nodeView("n2", 64, 1, map[string]scheduler.CircuitView{"c": ready(kind(8, 0, 40, "c"))}, "gpu0"))
	if err := w.core.FitsQuota("small", "c"); err != nil {
		t.Errorf("with a node where it fits: %v", err)
	}
}
