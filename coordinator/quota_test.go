package coordinator_test

import (
	"context"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// schedule.quota_partitions and schedule.quota_bytes: a tenant gets no more at once, and why says so (invariant 10).
func TestATenantGetsNoMoreThanItsQuota(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(*coordinator.ScheduleConfig)
		says string
	}{
		"partitions": {
			func(c *coordinator.ScheduleConfig) { c.QuotaPartitions = map[string]int{"main": 1} }, "its quota is 1 partitions",
		},
		"bytes": {
			func(c *coordinator.ScheduleConfig) { c.QuotaBytes = map[string]bytesize.Bytes{"main": 1} },
			"the quota of tenant main is 1 B",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *coordinator.Config) { test.edit(&c.Schedule) })
			w.start()
			gate := make(chan struct{})
			w.node("n1", 4, func(ctx context.Context, n *node, task *wire.SynthTask) {
				select {
				case <-gate:
				case <-ctx.Done():
				}
				prove(ctx, n, task)
			})
			id := w.submit(2)
			text := ""
			w.until("why names the quota", func() bool {
				why, err := ask[wire.WhyReply](w, wire.ClientSubject(wire.VerbWhy, job.MainTenant), &wire.JobRequest{Job: id})
				if err != nil || len(why.Reasons) == 0 {
					return false
				}
				text = why.Reasons[len(why.Reasons)-1].Text
				return strings.Contains(text, test.says)
			})
			close(gate)
			if name == "partitions" {
				w.proof(w.ends(id, job.Done))
			}
		})
	}
}

// schedule.patience: a job with a near deadline goes before an older one by that much, and not at all when it is 0.
func TestPatienceLetsANearDeadlineGoFirst(t *testing.T) {
	t.Parallel()
	for name, patience := range map[string]bool{"an hour": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(c *coordinator.Config) {
				if !patience {
					c.Schedule.Patience = 0
				}
				c.Schedule.QuotaPartitions = map[string]int{"main": 1}
			})
			w.start()
			gate := make(chan struct{})
			n := w.node("n1", 1, func(ctx context.Context, n *node, task *wire.SynthTask) {
				select {
				case <-gate:
				case <-ctx.Done():
				}
				prove(ctx, n, task)
			})
			running := w.submit(1)
			w.until("the first one runs", func() bool { return len(n.attempts()) == 1 })
			old := w.submit(1)
			near := w.submit(1, func(r *job.Record) {
				deadline := r.SubmittedAt.Add(2 * lease * 60)
				r.Deadline = &deadline
			})
			w.until("the leader knows both", func() bool {
				why, err := ask[wire.WhyReply](w, wire.ClientSubject(wire.VerbWhy, job.MainTenant), &wire.JobRequest{Job: near})
				return err == nil && len(why.Reasons) > 0
			})
			close(gate)
			for _, id := range []job.ID{running, old, near} {
				w.ends(id, job.Done)
			}
			order := n.attempts()
			if len(order) != 3 || (order[1].Job == near) != patience {
				t.Errorf("order %v: old %s, near %s", order, old, near)
			}
		})
	}
}
