package coordinator_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// journal is a log that can be read while it is written.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(line []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(line)
}

func (j *journal) has(text string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Contains(j.text.String(), text)
}

// Workers that say 30 % less shm than their segments have: later attempts are booked with what was measured and a
// margin, and the log says so.
func TestSizeSaidTooLowIsBookedAsMeasured(t *testing.T) {
	t.Parallel()
	const really bytesize.Bytes = segmentBytes * 10 / 7
	log := &journal{}
	w := newWorld(t, func(c *coordinator.Config) { c.Log = zerolog.New(log).Level(zerolog.WarnLevel) })
	w.start()
	var mu sync.Mutex
	var last ledger.Amounts
	w.node("n1", 4, func(ctx context.Context, n *node, task *wire.SynthTask) {
		mu.Lock()
		last = task.Amounts
		mu.Unlock()
		n.stage(ctx, task.Attempt, job.Sealed)
		n.stage(ctx, task.Attempt, job.Proving)
		n.publish(ctx, &wire.Result{
			Attempt: task.Attempt, Outcome: job.OutcomeOK, Proof: n.w.made.proofs[task.Slice.SHA256], ParamsDigest: "abcd",
			Handoff: wire.HandoffSHM, Peaks: wire.Peaks{job.Synthesizing: {ledger.PoolSHM: really}},
		})
		n.free(ctx, task.Attempt)
	})
	w.ends(w.submit(6), job.Done)
	w.until("the log tells of it", func() bool { return log.has("drifts from what workers compute") })
	w.ends(w.submit(1), job.Done)
	mu.Lock()
	defer mu.Unlock()
	if want := really + really/10; last[ledger.PoolSHM] != want {
		t.Errorf("booked %s of shm, not %s", last[ledger.PoolSHM], want)
	}
}
