package coordinator_test

import (
	"testing"

	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// A task that somebody deletes from the queue is noticed: the stream calls its id a duplicate, so the partition gets a
// new attempt with a new id (B57, and no job without a message: B48).
func TestB48B57ADeletedTaskGetsANewAttempt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	n := w.node("n1", 1, nil, func(n *node) { n.slots, n.slotsSaid = 0, 1 }) // nobody fetches
	id := w.submit(1)
	log, err := w.bus.Log(t.Context(), wire.StreamSynth)
	w.check(err)
	w.until("its task is deleted", func() bool {
		m, err := log.Next(t.Context(), wire.AllSynth, 1)
		return err == nil && log.Delete(t.Context(), m.Sequence) == nil
	})
	w.until("it is handed back", func() bool {
		last := w.record(id).Partitions[0].Last()
		return last != nil && last.Outcome == job.OutcomeHandedBack
	})
	n.stop()
	n.slots = 1
	n.start()
	w.proof(w.ends(id, job.Done))
	w.settles("n1")
}
