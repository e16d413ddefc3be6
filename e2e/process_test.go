package e2e_test

import (
	"bytes"
	"math/rand/v2"
	"net"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// process is a program that runs.
type process struct {
	t    *testing.T
	name string
	cmd  *exec.Cmd
	log  *logged
	done chan struct{}
}

// logged is a program's output.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// logKept is how much of each log a failed test shows.
const logKept = 12 << 10

// start runs a program until the test ends. It may end before, but not by a panic.
func start(t *testing.T, name string, command ...string) *process {
	t.Helper()
	p := &process{
		t: t, name: name, cmd: exec.Command(command[0], command[1:]...), log: &logged{}, done: make(chan struct{}),
	}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.WaitDelay = time.Second // engines may hold the pipe a moment longer
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		text := p.log.String()
		for _, bad := range []string{"DATA RACE", "panic: ", "fatal error: "} {
			if strings.Contains(text, bad) {
				t.Errorf("%s: %s", name, bad)
			}
		}
		if t.Failed() {
			t.Logf("log of %s:\n%s", name, text[max(0, len(text)-logKept):])
		}
	})
	return p
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends it at once, if it runs, and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %s: %v", p.name, err)
	}
}

// killed waits until it was ended by a signal 9 that a hook sent.
func (p *process) killed() {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("%s does not end", p.name)
	}
	if s, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || s.Signal() != syscall.SIGKILL {
		p.t.Fatalf("%s ended with %s, not by signal 9", p.name, p.cmd.ProcessState)
	}
}

// lastPort is the port that was given out last. Ports are below those that the system gives to connections, and no two
// tests get the same one: a server that is away for a while must find its own free when it comes back.
var lastPort atomic.Int32 //nolint:gochecknoglobals // one sequence for all tests

// Ports that tests take.
const portMin, portCount = 12000, 18000

// freePort is a loopback address that nobody listens on now.
func freePort(t *testing.T) string {
	t.Helper()
	lastPort.CompareAndSwap(0, 1+rand.Int32N(portCount))
	for range portCount {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(portMin+int(lastPort.Add(1)%portCount)))
		if l, err := net.Listen("tcp", address); err == nil {
			_ = l.Close()
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}

// natsServer is a NATS server process.
type natsServer struct {
	*process

	dir, listen string
	cluster     []string // URLs of all servers, when they are several
}

func startNATS(t *testing.T) *natsServer {
	s := &natsServer{dir: t.TempDir(), listen: freePort(t)}
	s.start(t)
	return s
}

// start starts it, also again, on its store.
func (s *natsServer) start(t *testing.T) {
	t.Helper()
	s.process = start(t, "nats", built.nats, "-dir", s.dir, "-listen", s.listen)
	s.await(t, s.listen)
}

func (s *natsServer) url() string {
	if len(s.cluster) > 0 {
		return strings.Join(s.cluster, ",")
	}
	return "nats://" + s.listen
}

// await waits until somebody listens.
func (p *process) await(t *testing.T, address string) {
	t.Helper()
	until(t, p.name+" listens", func() bool {
		select {
		case <-p.done:
			t.Fatalf("%s ended: %s", p.name, p.log)
		default:
		}
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
}

// redisServer is a Redis process with the settings that the ledger wants.
type redisServer struct {
	*process

	dir, listen string
}

func startRedis(t *testing.T) *redisServer {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if testing.Short() {
			t.Skip("no redis-server, and this is a short run")
		}
		t.Fatalf("redis-server is needed: %v", err)
	}
	s := &redisServer{dir: t.TempDir(), listen: freePort(t)}
	s.start(t)
	return s
}

// start starts it, also again, on what its folder holds.
func (s *redisServer) start(t *testing.T) {
	t.Helper()
	_, port, err := net.SplitHostPort(s.listen)
	if err != nil {
		t.Fatal(err)
	}
	s.process = start(t, "redis", "redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", s.dir, "--save", "",
		"--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory", "64mb", "--maxmemory-policy", "noeviction")
	s.await(t, s.listen)
}

// aof is the folder of its log.
func (s *redisServer) aof() string { return filepath.Join(s.dir, "appendonlydir") }

// children are the live child processes of a process: a GPU worker's engines.
func children(pid int) []int {
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	if err != nil {
		return nil
	}
	var found []int
	for _, path := range tasks {
		for _, field := range strings.Fields(readText(path)) {
			if n, err := strconv.Atoi(field); err == nil {
				found = append(found, n)
			}
		}
	}
	return found
}
