//go:build toy

package workergpu_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/wire"
)

// ends waits for a process and wants it to end well.
func (r *rack) ends(p *process, within time.Duration) {
	r.t.Helper()
	select {
	case <-p.done:
		if p.err != nil {
			r.t.Errorf("ended with %v", p.err)
		}
	case <-time.After(within):
		r.t.Fatalf("did not end within %s", within)
	}
}

func TestB109IdleWorkersEndAtOnce(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	synth, gpu := r.startSynth(), r.startGPU()
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	for _, p := range []*process{synth, gpu} {
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		r.ends(p, time.Minute)
	}
}

func (r *rack) order(kind string) {
	r.t.Helper()
	data, err := wire.Encode(&wire.Control{Node: node, Kind: kind, Reason: "test"})
	if err == nil {
		err = r.bus.Send(r.t.Context(), bus.Message{Subject: wire.ControlSubject(node), Data: data})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}
