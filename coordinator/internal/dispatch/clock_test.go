package dispatch_test

import (
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/job"
)

// The coordinator that led before had a clock an hour ahead: its pauses are in the records. They are no longer here than
// any pause can be.
func TestAPauseByAnotherClockEndsHere(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) {
		r.pass(10 * time.Second)
		id := r.submit(1)
		_, err := r.store.Update(r.t.Context(), id, func(record *job.Record) error {
			p, ahead := &record.Partitions[0], time.Now().Add(time.Hour)
			p.Fence, p.StageAt = 2, ahead
			pause := ahead.Add(time.Second)
			p.NotBefore = &pause
			return nil
		})
		r.check(err)
		r.pass(2 * time.Minute)
		if stages, _ := r.stages(id); stages[job.Reserved] != 1 {
			t.Errorf("two minutes later: %v", stages)
		}
	})
}
