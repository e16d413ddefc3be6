package coordinator_test

import (
	"testing"

	"github.com/proofrack/proofrack/shared/job"
)

func TestAJobGoesItsWholeWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	n := w.node("n1", 2, nil)
	id := w.submit(5)
	r := w.ends(id, job.Done)
	w.proof(r)
	w.settles("n1")
	if n.most > 2 {
		t.Errorf("%d attempts were booked at once where 2 fit", n.most)
	}
}
