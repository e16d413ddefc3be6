package e2e_test

import (
	"context"
	"strings"
	"testing"

	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/job"
)

// B64: on fresh servers a client submits before there is a rack, and the programs start in any order, each when the one
// before is at work or waits for what it needs. All six orders end in a rack that proves what was submitted.
func TestB64AnyStartOrderEndsInAWorkingRack(t *testing.T) {
	t.Parallel()
	const c, s, g = "coordinator", "synth", "gpu"
	for _, order := range [][]string{{c, s, g}, {c, g, s}, {s, c, g}, {s, g, c}, {g, c, s}, {g, s, c}} {
		t.Run(strings.Join(order, " "), func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			n := r.addNode("n1")
			accepted := make(chan job.ID, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 3*patience)
			defer cancel()
			go func() {
				submitted, err := r.client.Submit(ctx, early())
				if err != nil {
					t.Errorf("submit: %v", err)
					cancel()
					return
				}
				accepted <- submitted.Job
			}()
			for _, program := range order {
				var p *process
				switch program {
				case c:
					p = r.startCoordinator()
				case s:
					p = n.startSynth()
				case g:
					p = n.startGPU()
				}
				until(t, program+" has come up", func() bool { return strings.Contains(p.log.String(), "connected to NATS") })
			}
			r.ready()
			select {
			case id := <-accepted:
				r.accepted(id, 1, 2)
			case <-ctx.Done():
				t.Fatal("the job was not accepted")
			}
			r.waitDone()
		})
	}
}

// early is a job that is submitted before there is a rack.
func early() client.Request {
	r := request("early", 1, 1, 2)
	r.WaitForNode, r.SetupWait = true, 3*patience
	return r
}
