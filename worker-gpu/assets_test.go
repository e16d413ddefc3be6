//go:build toy

package workergpu_test

import (
	"os"
	"syscall"
	"testing"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// asset is what the node's book has of an asset, 0 when it is not there.
func (r *rack) asset(name string) bytesize.Bytes {
	if h := r.host(); h != nil {
		for _, a := range h.Assets {
			if a.Name == name {
				return a.Bytes
			}
		}
	}
	return 0
}

// tell sends an order to the node's workers.
func (r *rack) tell(c *wire.Control) {
	r.t.Helper()
	data, err := wire.Encode(c)
	if err == nil {
		err = r.bus.Send(r.t.Context(), bus.Message{Subject: wire.ControlSubject(node), Data: data})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// What the first engine decoded serves the next one: the parameter file is gone by then.
func TestDecodedParametersOutliveTheirEngine(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	gpu := r.startGPU("prove.decoded=true")
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	if n := r.asset("srs:toy"); n != 0 {
		t.Errorf("%s of parameters are booked before they are needed", n)
	}
	r.key = nil
	a := r.claim(r.job(1))
	r.wantProof(r.result(), a, 1)
	r.wait("decoded parameters are booked", func() bool { return r.asset("srs:toy") > 0 })
	if n, file := r.asset("srs:toy"), fileBytes(t, paramsFile(r)); n < file || n > file+6*4096 {
		t.Errorf("%s are booked for a file of %s", n, file)
	}
	if err := os.Remove(paramsFile(r)); err != nil {
		t.Fatal(err)
	}
	before := engines(gpu)
	if len(before) != 1 {
		t.Fatalf("engines %v", before)
	}
	if err := syscall.Kill(before[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.wait("there is another engine", func() bool {
		after := engines(gpu)
		return len(after) == 1 && after[0] != before[0]
	})
	a = r.claim(r.job(2))
	r.wantProof(r.result(), a, 2)
	r.clean()
	if n := r.asset("srs:toy"); n == 0 {
		t.Error("parameters are not booked any more")
	}
	r.tell(&wire.Control{Node: node, Kind: wire.ControlEvict, Asset: "srs:toy"})
	r.wait("all assets of the circuit are given back", func() bool {
		h := r.host()
		return h != nil && len(h.Assets) == 0
	})
}

func fileBytes(t *testing.T, path string) bytesize.Bytes {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytesize.Bytes(info.Size())
}

// Parameters that cannot be decoded, for they are gone, leave no byte booked and cost the attempt nothing.
func TestALoadThatFailsGivesItsBytesBack(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.startSynth()
	gpu := r.startGPU("prove.decoded=true")
	r.ready(wire.RoleSynth)
	r.ready(wire.RoleGPU)
	a := r.claim(r.job(1))
	r.wantProof(r.result(), a, 1)
	r.tell(&wire.Control{Node: node, Kind: wire.ControlEvict, Asset: "srs:toy"})
	r.wait("it is given back", func() bool { h := r.host(); return h != nil && len(h.Assets) == 0 })
	path := paramsFile(r)
	if err := os.Rename(path, path+".away"); err != nil {
		t.Fatal(err)
	}
	a = r.claim(r.job(2))
	if result := r.result(); result.Attempt != a || result.Outcome != job.OutcomeHandedBack {
		t.Fatalf("result %+v", result)
	}
	r.clean()
	r.wait("nothing is booked", func() bool { return r.asset("srs:toy") == 0 && r.asset("engine:cpu.toy") == 0 })
	r.wait("the circuit is not ready", func() bool { return !r.circuit().Ready })
	if err := os.Rename(path+".away", path); err != nil {
		t.Fatal(err)
	}
	r.wait("the circuit is ready again", func() bool { return r.circuit().Ready })
	a = r.claim(r.job(3))
	r.wantProof(r.result(), a, 3)
	if len(engines(gpu)) != 1 {
		t.Errorf("engines %v", engines(gpu))
	}
}
