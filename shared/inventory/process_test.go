package inventory_test

import (
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/inventory"
)

func TestThisHost(t *testing.T) {
	t.Parallel()
	h := inventory.NewHost()
	m, err := h.Memory(inventory.DefaultMargin())
	if err != nil || m.Budget <= 0 || m.Budget >= m.Total {
		t.Errorf("%+v, %v", m, err)
	}
	c, err := h.CPUs()
	if err != nil || c.Usable < 1 || c.Usable > runtime.NumCPU() {
		t.Errorf("%+v, %v", c, err)
	}
	nodes, err := h.NUMANodes()
	if err != nil || len(nodes) == 0 {
		t.Errorf("%+v, %v", nodes, err)
	}
	one, err1 := h.BootID()
	two, err2 := h.BootID()
	if err1 != nil || err2 != nil || one != two || one == "" {
		t.Errorf("boot %q, %q, %v, %v", one, two, err1, err2)
	}
	r, err := h.Resident(os.Getpid())
	if err != nil || r.Total < bytesize.MiB || r.Anonymous+r.Files+r.Shared != r.Total {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestAProcessIsKnownByPIDAndStart(t *testing.T) {
	t.Parallel()
	h := inventory.NewHost()
	alive := func(pid int, start uint64) bool {
		t.Helper()
		a, err := h.Alive(pid, start)
		if err != nil {
			t.Error(err)
		}
		return a
	}
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, err := h.Process(cmd.Process.Pid)
	if err != nil || p.Dead || p.StartTicks == 0 {
		t.Errorf("%+v, %v", p, err)
	}
	if !alive(p.PID, p.StartTicks) || alive(p.PID, p.StartTicks+1) {
		t.Error("alive only with its own start")
	}
	in.Close()
	// Ended, but not waited for: a zombie has no memory any more. The kernel says so when its output ends.
	for {
		if z, err := h.Process(p.PID); err != nil {
			t.Fatal(err)
		} else if z.Dead {
			break
		}
		runtime.Gosched()
	}
	if alive(p.PID, p.StartTicks) {
		t.Error("a zombie counts as alive")
	}
	if _, err := h.Resident(p.PID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("memory of a zombie: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if _, err := h.Process(p.PID); fault.KindOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
	if alive(p.PID, p.StartTicks) {
		t.Error("alive after its end")
	}
	self, err := h.Self()
	if err != nil || self.PID != os.Getpid() || !alive(self.PID, self.StartTicks) {
		t.Errorf("%+v, %v", self, err)
	}
}

func TestAProcessMayBeCalledAnything(t *testing.T) {
	t.Parallel()
	h := with(files{
		"proc/7/stat": "7 (a) S 1 2) (b) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20\n",
		"proc/8/stat": "8 (short) R 1 2\n", "proc/9/stat": "nothing",
	})
	if p, err := h.Process(7); err != nil || p.StartTicks != 4711 || p.Dead {
		t.Errorf("%+v, %v", p, err)
	}
	for _, pid := range []int{8, 9} {
		if _, err := h.Process(pid); fault.KindOf(err) != fault.Corrupt {
			t.Errorf("%d: %v", pid, err)
		}
		if _, err := h.Alive(pid, 1); err == nil {
			t.Errorf("%d: garbled is taken for dead, which would free its bytes", pid)
		}
	}
}
