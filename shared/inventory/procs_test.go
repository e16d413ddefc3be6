package inventory_test

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// procsVariable makes the test binary tell how many processors it uses; its value says what it does before.
const procsVariable = "INVENTORY_TEST_PROCS"

// countProcs gives GOMAXPROCS, as Go found it or lowered to a made-up quota of half a processor.
func countProcs(how string) (int, error) {
	if how != "half" {
		return runtime.GOMAXPROCS(0), nil
	}
	return with(files{
		"proc/self/cgroup": "0::/a\n", "proc/self/mountinfo": unifiedMount, v2 + "a/cpu.max": "50000 100000\n",
	}).LowerProcs()
}

// B30: without a word from us Go follows the affinity mask. It follows a quota only down to two processors (Go 1.25
// and later), so programs lower what it chose, and never raise what was set by hand.
func TestB30ProcessesUseNoMoreProcessorsThanTheyMay(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		environ string
		oneCPU  bool
		how     string
		want    string
	}{
		"mask of one":  {"", true, "as it is", "1 <nil>"},
		"quota":        {"", false, "half", "1 <nil>"},
		"set by hand":  {"GOMAXPROCS=7", false, "as it is", "7 <nil>"},
		"set too high": {"GOMAXPROCS=7", false, "half", "1 <nil>"},
	} {
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), procsVariable+"="+c.how)
		if c.environ != "" {
			child.Env = append(child.Env, c.environ)
		}
		out, err := onOneCPU(c.oneCPU, child.Output)
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", name, got, err, c.want)
		}
	}
}

// onOneCPU runs do with the affinity of this thread, which children inherit, set to one processor.
func onOneCPU(one bool, do func() ([]byte, error)) ([]byte, error) {
	if !one {
		return do()
	}
	done := make(chan struct{})
	var out []byte
	var err error
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		var all, first unix.CPUSet
		if err = unix.SchedGetaffinity(0, &all); err != nil {
			return
		}
		for cpu := range 1024 {
			if all.IsSet(cpu) {
				first.Set(cpu)
				break
			}
		}
		if err = unix.SchedSetaffinity(0, &first); err == nil {
			out, err = do()
		}
	}()
	<-done
	return out, err
}
