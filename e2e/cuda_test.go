package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	program "github.com/proofrack/proofrack/shared/attempt/host"
)

// A rack whose device is the device library, compiled for the processor: jobs go through NATS, a spill segment, the
// engine with the library, and verification.
func TestRackProvesOnTheDeviceLibrary(t *testing.T) {
	t.Parallel()
	library, err := filepath.Abs("../cuda/build/libproofrack_cuda_host.so") // make cuda-host makes it
	if err != nil {
		t.Fatal(err)
	}
	r := newRack(t)
	r.startCoordinator()
	n := r.addNode("n1")
	n.startSynth()
	n.startGPU("prove.devices=cuda", "prove.library="+library)
	r.ready()
	j := r.submit(1, 2)
	r.waitDone()
	for i, p := range r.record(j).Partitions {
		if last := p.Last(); last == nil || last.Device != "host" || last.DeviceUUID != "host" {
			t.Errorf("partition %d was proved on another device: %+v", i, last)
		}
	}
	r.checkQuiet()
}

// A GPU worker that is to drive GPUs and finds none says why, and ends with an exit code of its own.
func TestGPUWorkerWithoutADeviceSaysWhyAndEnds(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.startCoordinator()
	n := r.addNode("n1")
	p := n.startGPU("prove.devices=cuda", "prove.library=/nowhere/libproofrack_cuda.so")
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatal("the worker does not end")
	}
	if code := p.cmd.ProcessState.ExitCode(); code != program.ExitNoDevice {
		t.Errorf("exit code %d, want %d", code, program.ExitNoDevice)
	}
	if text := p.log.String(); !strings.Contains(text, "no device library") || !strings.Contains(text, "/nowhere/") {
		t.Errorf("the reason is not told:\n%s", text)
	}
}
