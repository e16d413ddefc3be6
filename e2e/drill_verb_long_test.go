//go:build long

package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// means writes a file of means for `proofrack drill`. What is to be started again the test starts: a command asks for
// it by a file, and waits for another one.
type means struct {
	r      *rack
	folder string
	start  map[string]func() *process
	text   strings.Builder
}

func (m *means) pidFile(name string) string { return filepath.Join(m.folder, name+".pid") }

func (m *means) note(name string, p *process) {
	m.r.t.Helper()
	m.r.check(os.WriteFile(m.pidFile(name), fmt.Appendf(nil, "%d", p.pid()), 0o600))
}

func (m *means) kill(name string) string { return fmt.Sprintf("kill -9 $(cat %s)", m.pidFile(name)) }

func (m *means) again(name string) string {
	path := filepath.Join(m.folder, name)
	return fmt.Sprintf("rm -f %[1]s.started; touch %[1]s.start; until [ -e %[1]s.started ]; do sleep 0.05; done", path)
}

func (m *means) add(fault, do, undo string, hold time.Duration) {
	fmt.Fprintf(&m.text, "[%s]\ndo = '''%s'''\nundo = '''%s'''\nhold = '%s'\n", fault, do, undo, hold)
}

// serve starts what is asked for.
func (m *means) serve() {
	m.r.t.Helper()
	for name, start := range m.start {
		path := filepath.Join(m.folder, name)
		if os.Remove(path+".start") != nil {
			continue
		}
		m.note(name, start())
		m.r.check(os.WriteFile(path+".started", nil, 0o600))
	}
}

// Every fault of `proofrack drill` on a rack of separate processes, by commands.
func TestLongDrillOnProcesses(t *testing.T) {
	r := newRack(t)
	first := r.startCoordinator()
	until(t, "the first one leads", func() bool { v := r.view(); return v != nil && v.Leader != "" })
	r.startCoordinator()
	n := r.addNode("n1")
	r.check(syscall.Mount("tmpfs", n.spill, "tmpfs", 0, "size=64m"))
	t.Cleanup(func() { _ = syscall.Unmount(n.spill, syscall.MNT_DETACH) })
	slow := simulated(2*time.Second, 200*time.Millisecond)
	synth, gpu := n.startSynth(), n.startGPU(slow...)
	r.ready()

	m := &means{r: r, folder: t.TempDir(), start: map[string]func() *process{
		"gpu": func() *process { return n.startGPU(slow...) }, "coordinator": func() *process { return r.startCoordinator() },
		"nats":  func() *process { r.nats.start(t); return r.nats.process },
		"redis": func() *process { r.redis.start(t); return r.redis.process },
	}}
	for name, p := range map[string]*process{
		"gpu": gpu, "synth": synth, "coordinator": first, "nats": r.nats.process, "redis": r.redis.process,
	} {
		m.note(name, p)
	}
	_, port, err := net.SplitHostPort(r.redis.listen)
	r.check(err)
	signal := func(s string) string { return fmt.Sprintf("kill -%s $(cat %s)", s, m.pidFile("gpu")) }
	ballast := filepath.Join(n.spill, ".drill")
	m.add("worker", m.kill("gpu"), m.again("gpu"), time.Second)
	m.add("pause", signal("STOP"), signal("CONT"), lease+2*time.Second)
	m.add("leader", m.kill("coordinator"), m.again("coordinator"), time.Second)
	m.add("broker", m.kill("nats"), m.again("nats"), 3*time.Second)
	m.add("store", m.kill("redis"), m.again("redis"), 3*time.Second)
	m.add("wipe", "redis-cli -p "+port+" flushall", "", 0)
	fill := fmt.Sprintf("fallocate -l $(df --output=avail -B1 %s | tail -1) %s", n.spill, ballast)
	m.add("spill", fill, "rm -f "+ballast, 4*time.Second)
	m.add("everything", fmt.Sprintf("%s; %s; rm -rf %s/* %s/*", m.kill("nats"), m.kill("redis"), r.nats.dir, r.redis.dir),
		m.again("nats")+"; "+m.again("redis"), time.Second)
	result := m.drill("worker", "pause", "leader", "broker", "store", "wipe", "spill", "everything")
	for _, v := range result.Verdicts {
		if !v.Tried || len(v.Wrong) > 0 {
			t.Errorf("%s: %q %q", v.Fault, v.Reason, v.Wrong)
		}
	}
	if !result.Passed || len(result.Verdicts) != 8 {
		t.Errorf("passed %t, %d verdicts", result.Passed, len(result.Verdicts))
	}
}

// A buffer of each class stays: each is named, and the rack has not stood the drill.
func TestLongDrillNamesALeakOfEachClass(t *testing.T) {
	r := newRack(t)
	r.startCoordinator()
	r.plantLeaks(r.addNode("n1"), simulated(2*time.Second, 200*time.Millisecond)...)
	m := &means{r: r, folder: t.TempDir()}
	_, port, err := net.SplitHostPort(r.redis.listen)
	r.check(err)
	m.add("wipe", "redis-cli -p "+port+" flushall", "", 0)
	result := m.drill("wipe")
	if result.Passed || len(result.Verdicts) != 1 {
		t.Fatalf("%+v", result)
	}
	wrong := strings.Join(result.Verdicts[0].Wrong, "\n")
	for class, process := range leaking() {
		if !strings.Contains(wrong, fmt.Sprintf("%s leaks %s", process, class)) {
			t.Errorf("%s of %s is not named: %s", class, process, wrong)
		}
	}
	if n := len(result.Verdicts[0].Wrong); n != len(leaking()) {
		t.Errorf("%d wrongs: %s", n, wrong)
	}
}

// drilled is what `proofrack drill --json` prints.
type drilled struct {
	Passed   bool
	Verdicts []struct {
		Fault           string
		Tried           bool
		Reason          string
		Wrong, Evidence []string
		Seconds         float64
	}
}

// drill runs `proofrack drill` for some faults, and starts meanwhile what it asks for.
func (m *means) drill(faults ...string) *drilled {
	r := m.r
	r.t.Helper()
	file := filepath.Join(m.folder, "means.toml")
	r.check(os.WriteFile(file, []byte(m.text.String()), 0o600))
	input := request("", 1, 1, 2)
	c1, err := io.ReadAll(input.Input)
	r.check(err)
	source := filepath.Join(m.folder, "input")
	r.check(os.WriteFile(source, c1, 0o600))
	line := r.command(append(append([]string{"drill"}, faults...), "--means", file, "--c1", source, "--kind", input.Kind,
		"--miner", "1000", "--sector-number", "1", "--within", "2m", "--lose-everything", "--yes", "--json")...)
	cmd := exec.Command(line[0], line[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	r.check(cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for waiting := true; waiting; {
		select {
		case err = <-ended:
			waiting = false
		case <-time.After(20 * time.Millisecond):
			m.serve()
		}
	}
	var result drilled
	if jsonErr := json.Unmarshal(out.Bytes(), &result); jsonErr != nil {
		r.t.Fatalf("%v: %v\n%s", err, jsonErr, &out)
	}
	if (err == nil) != result.Passed {
		r.t.Errorf("passed is %t, and the program ended with %v", result.Passed, err)
	}
	for _, v := range result.Verdicts {
		r.t.Logf("%s, %.1f s: %q", v.Fault, v.Seconds, v.Evidence)
	}
	return &result
}
