package dispatch_test

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// A leader that begins asks the nodes for the reports without which it grants nothing: it does not wait for their next
// beats, and it does not ask again and again.
func TestANewLeaderAsksForReports(t *testing.T) {
	t.Parallel()
	onTight(t, func(r *tight) {
		var asked atomic.Int64
		answer := make(chan struct{}, 100)
		stop, err := r.bus.Subscribe(wire.ControlSubject("n1"), func(m bus.Message) {
			var c wire.Control
			if err := wire.Decode(m.Data, &c); err == nil && c.Kind == wire.ControlReport {
				asked.Add(1)
				answer <- struct{}{}
			}
		})
		r.check(err)
		defer stop()
		r.report()
		time.Sleep(time.Second)
		began := time.Now()
		r.lead(1)
		id := r.submit(1)
		for granted := false; !granted; {
			select {
			case <-answer:
				r.report()
			case <-time.After(10 * time.Millisecond):
			}
			stages, _ := r.stages(id)
			granted = stages[job.Reserved] == 1
			if time.Since(began) > time.Minute {
				r.t.Fatalf("asked %d times, and nothing is granted", asked.Load())
			}
		}
		if took := time.Since(began); took > 100*time.Millisecond {
			r.t.Errorf("granted after %s", took)
		}
		for range 60 {
			r.report()
			time.Sleep(time.Second)
		}
		if n := asked.Load(); n > 3 {
			r.t.Errorf("asked %d times", n)
		}
		r.stop()
	})
}

// A worker that beats too seldom is named in the log, once.
func TestAWorkerThatBeatsTooSeldomIsNamed(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) {
		r.every = 40 * time.Second
		r.pass(10 * time.Second)
		if n := strings.Count(r.logged.String(), "it beats every 40s"); n != 2 {
			r.t.Errorf("said %d times of two workers: %s", n, r.logged.String())
		}
		id := r.submit(1)
		r.pass(10 * time.Second)
		if stages, _ := r.stages(id); stages[job.Waiting] != 1 {
			r.t.Errorf("given work: %v", stages)
		}
		reply, err := r.leader.Rack(r.t.Context())
		r.check(err)
		if reply.Ready || !strings.Contains(reply.Reason, "it beats every 40s") {
			r.t.Errorf("ready %v: %s", reply.Ready, reply.Reason)
		}
	})
}
