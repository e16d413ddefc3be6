package e2e_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/job"
)

// stopWithin is how long a process may take to end that has nothing to finish. It is far below the drain time, which
// would end a process that hangs.
const stopWithin = patience

// stops asks a process to stop and waits until it has ended well.
func (p *process) stops() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	p.endsWell()
}

// endsWell waits until a process that was asked to stop, or has nothing left to do, has ended well.
func (p *process) endsWell() {
	p.t.Helper()
	p.ends()
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Errorf("%s ended with %s", p.name, p.cmd.ProcessState)
	}
}

// ends waits until such a process has ended. One that was asked before it was quite there ends by
// the signal itself.
func (p *process) ends() {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(stopWithin):
		p.t.Fatalf("%s does not stop", p.name)
	}
}

// B79: Redis is frozen with a job at work, and everybody is asked to stop meanwhile: the worker in mid-proof finishes
// and ends, the leader ends, a coordinator ends that has not found the ledger yet. Those who come instead begin while
// Redis is still frozen, and all is normal after thawing.
func TestB79EverybodyStopsWhileRedisIsFrozen(t *testing.T) {
	t.Parallel()
	r, j := pausedInProof(t)
	n := r.nodes[0]
	r.redis.signal(syscall.SIGSTOP)
	late := r.startCoordinator()
	until(t, "the late one is at work", func() bool { return strings.Contains(late.log.String(), "connected to NATS") })
	n.gpu.signal(syscall.SIGTERM)
	time.Sleep(lease) // the leader's calls to the ledger are over their time, the worker's lease is not
	select {
	case <-n.gpu.done:
		t.Error("the worker did not finish what it had")
	default:
	}
	r.letGo(heldProof)
	n.gpu.endsWell()
	untilWithin(t, stopWithin, "its proof counts although Redis is frozen", func() bool {
		for _, p := range r.record(j).Partitions {
			if p.Stage == job.Verified {
				return true
			}
		}
		return false
	})
	n.synth.stops()
	r.coordinators[0].stops()
	late.stops()
	r.startCoordinator()
	n.startSynth()
	n.startGPU()
	time.Sleep(time.Second)
	r.redis.signal(syscall.SIGCONT)
	r.submit(4)
	r.waitDone()
	r.wantOneAttempt(j)
	r.checkQuiet()
}
