package agent_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/shared/agent"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/inventory"
)

// changing is /proc/7/status of a process whose private memory the test sets, in MiB.
type changing struct {
	mu      sync.Mutex
	private int
	gone    bool
}

func (c *changing) set(private int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.private = private
}

func (c *changing) Open(name string) (fs.File, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.gone {
		return nil, fs.ErrNotExist
	}
	text := fmt.Sprintf("VmRSS:\t%d kB\nRssAnon:\t%d kB\nRssFile:\t900000 kB\nRssShmem:\t900000 kB\n",
		1800000+c.private<<10, c.private<<10)
	return fstest.MapFS{"proc/7/status": {Data: []byte(text)}}.Open(name)
}

// A process's peak is what it had at most beyond what it had before, shared out among those that were at work at once
// since it was as small again.
func TestMeterSharesTheProcessOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		process := &changing{private: 30}
		m, err := agent.NewMeter(agent.MeterConfig{PID: 7, Facts: inventory.NewHostAt(process), Every: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		holds := func(private int) {
			process.set(private)
			time.Sleep(2 * time.Second)
			synctest.Wait()
		}
		same := func(what string, got agent.Peak, mib bytesize.Bytes, attempts int) {
			t.Helper()
			if want := (agent.Peak{Bytes: mib * bytesize.MiB, Attempts: attempts}); got != want {
				t.Errorf("%s: %+v, not %+v", what, got, want)
			}
		}
		one := m.Begin()
		holds(130)
		holds(60)
		same("alone", one.End(), 100, 1)
		same("ended twice", one.End(), 100, 1)
		process.set(31)
		one = m.Begin()
		holds(130)
		two := m.Begin()
		holds(230)
		same("the first of two", one.End(), 200, 2)
		holds(130)
		same("the second of two", two.End(), 200, 2)
		one = m.Begin() // the process has not given back what two had
		holds(140)
		same("alone, after two", one.End(), 110, 2)
		process.set(40)
		one = m.Begin()
		holds(130)
		same("alone again", one.End(), 100, 1)
		one = m.Begin()
		process.mu.Lock()
		process.gone = true
		process.mu.Unlock()
		time.Sleep(5 * time.Second)
		same("of a process that ended", one.End(), 100, 1)
	})
	var none *agent.Meter
	if got := none.Begin().End(); got != (agent.Peak{Attempts: 1}) {
		t.Errorf("of no meter: %+v", got)
	}
	if _, err := agent.NewMeter(agent.MeterConfig{PID: 8, Facts: inventory.NewHostAt(fstest.MapFS{})}); err == nil {
		t.Error("a process that is not there is measured")
	}
}

// played is the process that is measured: it takes private memory and a mapped file, says so, and waits for its end.
func playMeter(path string, bytes int) error {
	file, err := os.CreateTemp(path, "meter")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	fmt.Println("small")
	fmt.Scanln()
	debug.SetGCPercent(-1)
	private := make([]byte, bytes)
	for i := 0; i < len(private); i += 4096 {
		private[i] = 1
	}
	if err := file.Truncate(int64(bytes)); err != nil {
		return err
	}
	shared, err := unix.Mmap(int(file.Fd()), 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	for i := 0; i < len(shared); i += 4096 {
		shared[i] = 1
	}
	fmt.Println("large")
	fmt.Scanln()
	private[0]++
	return nil
}

// A real process: its private memory is measured, what it has mapped of a file is not.
func TestMeterOfAProcess(t *testing.T) {
	t.Parallel()
	const bytes = 64 << 20
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), envRole+"=meter", envPath+"="+t.TempDir(), envNumber+"="+strconv.Itoa(bytes))
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	word := func(want string) {
		t.Helper()
		var got string
		if _, err := fmt.Fscanln(out, &got); err != nil || got != want {
			t.Fatalf("it says %q, not %q: %v", got, want, err)
		}
	}
	word("small")
	m, err := agent.NewMeter(agent.MeterConfig{PID: c.Process.Pid, Facts: inventory.NewHost()})
	if err != nil {
		t.Fatal(err)
	}
	span := m.Begin()
	fmt.Fprintln(in)
	word("large")
	peak := span.End()
	if peak.Bytes < bytes || peak.Bytes > bytes+bytes/2 {
		t.Errorf("%s of %s were measured", peak.Bytes, bytesize.Bytes(bytes))
	}
	fmt.Fprintln(in)
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
}
