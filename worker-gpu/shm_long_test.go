//go:build toy && long

package workergpu_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/wire"
)

// smallSHM gives the rack a spill folder on a tmpfs of its own, in a mount namespace that the workers are started in
// (recipe R1). It needs root.
func (r *rack) smallSHM(size string) {
	r.t.Helper()
	holder := exec.Command("unshare", "-m", "sh", "-c",
		fmt.Sprintf("mount -t tmpfs -o size=%s none %s && echo ready && exec sleep 600", size, r.spill))
	out, err := holder.StdoutPipe()
	if err != nil {
		r.t.Fatal(err)
	}
	holder.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := holder.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	})
	line := make([]byte, 6)
	if n, err := out.Read(line); n == 0 {
		r.t.Fatalf("mount a tmpfs (root is needed): %v", err)
	}
	r.enter = []string{"nsenter", "-m", "-t", strconv.Itoa(holder.Process.Pid)}
	r.view = filepath.Join("/proc", strconv.Itoa(holder.Process.Pid), "root", r.spill)
}

// B81, B90: a tmpfs smaller than the segment: said with both numbers, and nobody dies; with a disk folder the segment
// goes there, and everybody is told.
func TestLongB81SegmentLargerThanSHM(t *testing.T) {
	t.Parallel()
	const pad = "synth.pad_bytes=8MiB"
	for _, size := range []string{"4m", "1m"} {
		t.Run(size, func(t *testing.T) {
			t.Parallel()
			r := newRack(t)
			r.makeParams()
			r.smallSHM(size)
			first := []*process{r.startSynth(pad), r.startGPU()}
			r.wait("the worker says what is missing", func() bool {
				b := r.beat(wire.RoleSynth)
				return b.State == wire.StateNotReady && strings.Contains(b.Reason, "needs 8") && strings.Contains(b.Reason, "has")
			})
			if h := r.host(); h == nil || h.Capacity[ledger.PoolSHM] > 4*bytesize.MiB {
				t.Errorf("capacity %+v", h)
			}
			r.wait("the other worker can hear a signal", func() bool { return r.beat(wire.RoleGPU).Instance != "" })
			for _, p := range first {
				if err := p.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				r.ends(p, 10*time.Second)
			}
			disk := filepath.Join(t.TempDir(), "disk")
			r.startSynth(pad, "spill.disk_path="+disk)
			r.startGPU("spill.disk_path=" + disk)
			r.ready(wire.RoleSynth)
			a := r.claimWith(r.job(1), device, func(task *wire.SynthTask) {
				task.Amounts = ledger.Amounts{ledger.PoolRAM: 10 * bytesize.MiB} // the node moves them to disk itself
			})
			result := r.result()
			r.wantProof(result, a, 1)
			if result.Handoff != wire.HandoffDisk {
				t.Errorf("handoff %q", result.Handoff)
			}
		})
	}
}

// B82: a foreign file fills the tmpfs: the worker starts, is not ready and says who has the space; it is ready when the
// space is back, and the file was not touched.
func TestLongB82SpaceTakenByOthers(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.smallSHM("8m")
	foreign := filepath.Join(r.view, "foreign")
	if err := os.WriteFile(foreign, make([]byte, 8<<20-64<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	r.startSynth()
	r.startGPU()
	r.wait("it says who has the space", func() bool {
		b := r.beat(wire.RoleSynth)
		return b.State == wire.StateNotReady && strings.Contains(b.Reason, "foreign")
	})
	time.Sleep(2 * time.Second) // some sweeps
	if info, err := os.Stat(foreign); err != nil || info.Size() != 8<<20-64<<10 {
		t.Fatalf("the foreign file: %v", err)
	}
	if err := os.Remove(foreign); err != nil {
		t.Fatal(err)
	}
	r.ready(wire.RoleSynth)
	a := r.claim(r.job(1))
	r.wantProof(r.result(), a, 1)
	r.clean()
}

// A tmpfs that fills up between the book and the allocation: the attempt is handed back with the numbers.
func TestLongB81FilledAfterTheBook(t *testing.T) {
	t.Parallel()
	r := newRack(t)
	r.makeParams()
	r.smallSHM("8m")
	r.startSynth("test.folder="+r.hooks, "test.hooks=pause@synth.after-claim", "spill.sweep_every=1h",
		"worker.heartbeat=10s", "synth.pad_bytes=4MiB")
	r.wait("it is ready", func() bool { return r.beat(wire.RoleSynth).State == wire.StateReady })
	a := r.claimWith(r.job(1), device, func(task *wire.SynthTask) {
		task.Amounts = ledger.Amounts{ledger.PoolRAM: bytesize.MiB} // a ledger that is wrong about shm
	})
	r.wait("it has the task", func() bool { return r.reached("synth.after-claim#1") })
	if err := os.WriteFile(filepath.Join(r.view, "foreign"), make([]byte, 6<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	r.letGo("synth.after-claim#1")
	result := r.result()
	if result.Attempt != a || result.Outcome != job.OutcomeHandedBack || result.Fault.Kind != fault.Exhausted ||
		!strings.Contains(result.Fault.Message, "segment needs") {
		t.Errorf("result %s, %s", result.Outcome, faultText(result))
	}
	r.wait("nothing is left", func() bool { return len(r.bookings())+len(r.segments()) == 0 })
}
