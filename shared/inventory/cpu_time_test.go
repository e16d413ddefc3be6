package inventory_test

import (
	"os"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/inventory"
)

func TestCPUTimeIsThatOfTheSystem(t *testing.T) {
	t.Parallel()
	for began := time.Now(); time.Since(began) < 50*time.Millisecond; { //nolint:revive // it takes time
	}
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		t.Fatal(err)
	}
	got, err := inventory.NewHost().CPUTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		t.Fatal(err)
	}
	of := func(u syscall.Rusage) time.Duration { return time.Duration(u.Utime.Nano() + u.Stime.Nano()) }
	// Each of the four figures is rounded down to a tick of 10 ms; processes that were waited for come on top.
	if got < of(before)-40*time.Millisecond || got > of(after)+time.Minute {
		t.Errorf("%s, the system says %s to %s", got, of(before), of(after))
	}
}

func TestCPUTimeOfWhatIsNoProcess(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	h := inventory.NewHostAt(fstest.MapFS{
		"proc/1/stat": file("1 (a) b) S 0 0 0 0 0 0 0 0 0 0 100 50 20 30 0 0 0 0 0"),
		"proc/2/stat": file("2 (a) S 0 0"),
		"proc/3/stat": file("3 (a) S 0 0 0 0 0 0 0 0 0 0 x 50 20 30 0"),
		"proc/4/stat": file("4 (a) S 0 0 0 0 0 0 0 0 0 0 9223372036854775807 50 20 30 0"),
	})
	if got, err := h.CPUTime(1); err != nil || got != 2*time.Second {
		t.Errorf("%s, %v", got, err)
	}
	for pid, want := range map[int]fault.Kind{2: fault.Corrupt, 3: fault.Corrupt, 4: fault.Corrupt, 5: fault.NotFound} {
		if _, err := h.CPUTime(pid); fault.KindOf(err) != want {
			t.Errorf("process %d: %v", pid, err)
		}
	}
}
