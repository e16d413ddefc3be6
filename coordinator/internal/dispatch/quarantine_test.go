package dispatch_test

import (
	"strings"
	"testing"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// orders counts the canaries that the node is sent, and has its beats answer them.
func (r *reign) orders(answer func(order int) *wire.Canary) (count func() int, stop func()) {
	r.t.Helper()
	got := make(chan string, 1000)
	n := 0
	stop, err := r.bus.Subscribe(wire.ControlSubject("n1"), func(m bus.Message) {
		var c wire.Control
		if err := wire.Decode(m.Data, &c); err == nil && c.Kind == wire.ControlCanary && c.Device == "cpu" {
			got <- c.Canary
		}
	})
	r.check(err)
	r.before = func() {
		for len(got) > 0 {
			id := <-got
			n++
			if c := answer(n); c != nil {
				c.ID = id
				r.canary = c
			}
		}
	}
	return func() int { r.before(); return n }, stop
}

func (r *reign) takenOut(q store.Quarantine) {
	r.t.Helper()
	_, err := r.store.SetMark(r.t.Context(), "n1", func(m *store.NodeMark) { m.Quarantined["cpu"] = q })
	r.check(err)
}

// A device in quarantine proves a known answer after a pause that doubles with each that is wrong, and is let back by
// itself when one is right; what it was taken out for before makes the next pause longer.
func TestADeviceInQuarantineIsLetBackByAKnownAnswer(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) {
		count, stop := r.orders(func(order int) *wire.Canary {
			return &wire.Canary{OK: order == 4, Reason: "wrong answer"}
		})
		defer stop()
		now := time.Now()
		r.takenOut(store.Quarantine{Reason: "3 faults in a row", At: now, Next: now.Add(time.Minute)})
		id := r.submit(1)
		for _, c := range []struct {
			pass   time.Duration
			orders int
		}{{58 * time.Second, 0}, {5 * time.Second, 1}, {110 * time.Second, 1}, {15 * time.Second, 2}, {230 * time.Second, 2},
			{20 * time.Second, 3}} {
			r.pass(c.pass)
			if n := count(); n != c.orders {
				r.t.Errorf("%s later: %d canaries, want %d", c.pass, n, c.orders)
			}
		}
		q := r.store.Mark("n1").Quarantined["cpu"]
		if q.TryCount != 3 || q.Failed != "wrong answer" || !strings.Contains(q.Text(), "wrong answer") {
			r.t.Errorf("after three wrong answers: %+v", q)
		}
		if stages, _ := r.stages(id); stages[job.Waiting] != 1 {
			r.t.Errorf("it was given work: %v", stages)
		}
		r.pass(8*time.Minute + 10*time.Second)
		mark := r.store.Mark("n1")
		if count() != 4 || len(mark.Quarantined) != 0 || mark.Paroled["cpu"].TryCount != 3 {
			r.t.Errorf("after the right answer, the %dth: %+v", count(), mark)
		}
		if stages, _ := r.stages(id); stages[job.Reserved] != 1 {
			r.t.Errorf("it is given no work: %v", stages)
		}
		r.pass(time.Hour)
		if count() != 4 {
			r.t.Errorf("%d canaries of a device that works", count()-4)
		}
	})
}

// A worker that does not answer, as one of the build before, is asked again and again, ever less often, and never let
// back by itself; an operator can.
func TestADeviceThatDoesNotAnswerStaysInQuarantine(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) {
		count, stop := r.orders(func(int) *wire.Canary { return nil })
		defer stop()
		now := time.Now()
		r.takenOut(store.Quarantine{Reason: "3 faults in a row", At: now}) // by the build before: without a time
		r.pass(6 * time.Hour)
		if n := count(); n < 8 || n > 12 { // 1, 2, 4, 8, 16, 32 and then 60 minutes
			r.t.Errorf("%d canaries in six hours", n)
		}
		if q := r.store.Mark("n1").Quarantined["cpu"]; !strings.Contains(q.Text(), "no answer within 2m0s") {
			r.t.Errorf("it is said: %s", q.Text())
		}
		r.check(r.leader.Readmit(r.t.Context(), "n1", "cpu"))
		if mark := r.store.Mark("n1"); len(mark.Quarantined)+len(mark.Paroled) != 0 {
			r.t.Errorf("after an operator's word: %+v", mark)
		}
		id := r.submit(1)
		r.pass(5 * time.Second)
		if stages, _ := r.stages(id); stages[job.Reserved] != 1 {
			r.t.Errorf("it is given no work: %v", stages)
		}
	})
}
