//go:build long

package e2e_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/wire"
)

// slowWay is an address that leads to another one. What goes there is held for a while once it is made slow.
type slowWay struct {
	listen string
	delay  atomic.Int64
}

// newSlowWay is fast at first.
func newSlowWay(t *testing.T, to string) *slowWay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &slowWay{listen: l.Addr().String()}
	var running sync.WaitGroup
	t.Cleanup(func() { l.Close(); running.Wait() })
	running.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { w.join(t, from, to) })
		}
	})
	return w
}

// join passes bytes both ways until one side ends, or the test does.
func (w *slowWay) join(t *testing.T, from net.Conn, to string) {
	defer from.Close()
	far, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer far.Close()
	type piece struct {
		data []byte
		due  time.Time
	}
	pieces := make(chan piece, 4096)
	var both sync.WaitGroup
	both.Go(func() {
		_, _ = io.Copy(from, far)
		_ = from.Close()
	})
	both.Go(func() {
		for p := range pieces {
			select {
			case <-time.After(time.Until(p.due)):
			case <-t.Context().Done():
			}
			_, _ = far.Write(p.data)
		}
		_ = far.Close()
	})
	stop := make(chan struct{})
	both.Go(func() {
		select {
		case <-t.Context().Done():
		case <-stop:
		}
		_ = from.Close()
	})
	for buffer := make([]byte, 64<<10); ; {
		n, err := from.Read(buffer)
		if n > 0 {
			pieces <- piece{append([]byte(nil), buffer[:n]...), time.Now().Add(time.Duration(w.delay.Load()))}
		}
		if err != nil {
			break
		}
	}
	close(stop)
	close(pieces)
	both.Wait()
}

// stubDriver is a folder with a driver's library that has one card, and loses it once there is a file.
func stubDriver(t *testing.T) (folder, lost string) {
	t.Helper()
	folder = t.TempDir()
	lost = filepath.Join(folder, "lost")
	source := filepath.Join(folder, "stub.c")
	text := fmt.Sprintf(`#include <string.h>
#include <unistd.h>
typedef struct { unsigned long long total, free, used; } memory;
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)(long)(i + 1); return 0; }
int nvmlDeviceGetUUID(void *d, char *s, unsigned n) { strncpy(s, "GPU-stub", n); return 0; }
int nvmlDeviceGetMemoryInfo(void *d, memory *m) {
  m->total = m->free = 1ull << 30;
  m->used = 0;
  return access(%q, F_OK) == 0 ? 999 : 0;
}
`, lost)
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	library := filepath.Join(folder, "libnvidia-ml.so.1")
	if out, err := exec.Command("gcc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("build the stub of a driver: %v: %s", err, out)
	}
	return folder, lost
}

// damagedParams is a folder with the toy's parameters, of which a part is wrong.
func damagedParams(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	files, err := os.ReadDir(built.params)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		data, err := os.ReadFile(filepath.Join(built.params, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(f.Name(), ".params") {
			data[len(data)/2] ^= 1
		}
		if err := os.WriteFile(filepath.Join(folder, f.Name()), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// Parameters that are damaged, a card that is lost, a page that is too small, an upstream and a collector that are
// away, a way to NATS that is slow, and a coordinator that is stopped for moments.
func TestLongAlertsOfProgramsAndWays(t *testing.T) {
	t.Parallel()
	r, a := newRack(t), newAlarms(t)
	r.calm()
	r.startCoordinator(a.page("coordinator 1"))
	second := a.page("coordinator 2")
	n1, n2 := r.addNode("n1"), r.addNode("n2")
	n1.startSynth(a.page("synth n1"))
	gpu1, gpu2, synth2, door := a.page("gpu n1"), a.page("gpu n2"), a.page("synth n2"), a.page("gateway")
	a.on()

	whole := r.params
	r.params = damagedParams(t)
	var waiting *submitted
	a.provoke(func() {
		n1.startGPU(gpu1)
		q := request("waits", 1, 1)
		q.WaitForNode = true
		s, err := r.client.Submit(t.Context(), q)
		r.check(err)
		waiting = r.accepted(s.Job, 1)
	}, "LoadsFail", "CheckFails", "NodeNotReady", "WaitsForNothing")

	r.params = whole
	library, lost := stubDriver(t)
	way := newSlowWay(t, r.nats.listen)
	a.provoke(func() { n2.startSynth(synth2, "metrics.series_max=1") }, "MetricsIncomplete")
	n2.startStubbedGPU(library, "nats.urls=nats://"+way.listen, "nats.ping_interval=1m", gpu2)
	r.waitDone(waiting)
	a.sees("c2_gpu_healthy == 1")
	a.provoke(func() { r.check(os.WriteFile(lost, nil, 0o600)) }, "GPULost")
	a.provoke(func() { r.startGateway("forward.to=unix:///nowhere", "forward.check_every=1s", door) }, "UpstreamDown")

	a.provoke(func() {
		n2.synth.kill() // the other worker speaks for the node now, over the way that becomes slow
		way.delay.Store(int64(5 * time.Second))
	}, "ClockOffset")
	way.delay.Store(0)
	stalledAndUnheard(r, a, second)
}

// stalledAndUnheard starts a second coordinator that drops some of what comes while it is stopped, sooner or later;
// then it leads, and its spans go nowhere.
func stalledAndUnheard(r *rack, a *alarms, page string) {
	t := r.t
	t.Helper()
	stalled := r.startCoordinator("nats.pending_max=1", page, "traces.endpoint=http://127.0.0.1:1",
		"traces.queue_max=64")
	a.sees(`c2_nats_dropped_total{instance="` + strings.TrimPrefix(page, "metrics.listen=") + `"} == 0`)
	a.calm("MessagesDropped", "SpansDropped")
	beats := make(chan struct{}, 1000)
	stop, err := r.bus.Subscribe(wire.AllBeats, func(bus.Message) {
		select {
		case beats <- struct{}{}:
		default:
		}
	})
	r.check(err)
	t.Cleanup(stop)
	untilWithin(t, 2*patience, "it drops messages", func() bool {
		thaw := frozen(t, stalled.pid())
		for range 30 {
			select {
			case <-beats:
			case <-time.After(patience):
				t.Fatal("nobody beats")
			}
		}
		thaw()
		return fires(t, a.address)["ProofrackMessagesDropped"]
	})
	a.fire("MessagesDropped")
	a.provoke(func() { // more than wait for a collector that is not there
		r.coordinators[0].kill()
		for range 40 {
			r.submit(1)
		}
	}, "SpansDropped")
}

// startStubbedGPU starts a worker that finds a driver's library in a folder, with a simulated device of its card.
func (n *node) startStubbedGPU(library string, settings ...string) {
	n.rack.t.Helper()
	kept := n.rack.programs.gpu
	script := filepath.Join(n.rack.t.TempDir(), "gpu")
	text := "#!/bin/sh\nLD_LIBRARY_PATH=" + library + " exec " + kept + " \"$@\"\n"
	n.rack.check(os.WriteFile(script, []byte(text), 0o700))
	n.rack.programs.gpu = script
	defer func() { n.rack.programs.gpu = kept }()
	n.startGPU(append([]string{
		"prove.devices=sim-a", `simulate={sim-a='{"uuid":"GPU-stub","memory_bytes":"1GiB","job_bytes":"1MiB"}'}`,
		"gpu.interval=1s",
	}, settings...)...)
}
