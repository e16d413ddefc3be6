package redisledger_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// server is a real Redis of ours, on a Unix socket in a folder of its own.
type server struct {
	t      testing.TB
	folder string
	args   []string
	cmd    *exec.Cmd
	exited chan struct{}
}

// startServer starts redis-server with more settings. An absent binary fails the test, except in short runs.
func startServer(t testing.TB, args ...string) *server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		if testing.Short() {
			t.Skip("no redis-server, and this is a short run")
		}
		t.Fatalf("redis-server is needed: %v", err)
	}
	folder, err := os.MkdirTemp("", "ledger")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, folder: folder, args: args}
	t.Cleanup(func() {
		s.kill()
		os.RemoveAll(folder)
	})
	s.start()
	return s
}

func (s *server) socket() string { return filepath.Join(s.folder, "redis.sock") }

// start starts it on what its folder holds, and waits until it answers.
func (s *server) start() {
	s.t.Helper()
	s.spawn()
	client := s.client()
	defer client.Close()
	for deadline := time.Now().Add(time.Minute); ; {
		err := client.Ping(context.Background()).Err()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("redis-server doesn't answer: %v", err)
		}
		select {
		case <-s.exited:
			log, _ := os.ReadFile(filepath.Join(s.folder, "log"))
			s.t.Fatalf("redis-server ended:\n%s", log)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func (s *server) spawn() {
	s.t.Helper()
	args := append([]string{
		"--port", "0", "--unixsocket", s.socket(), "--dir", s.folder, "--logfile", filepath.Join(s.folder, "log"),
		"--save", "", "--appendonly", "yes", "--appendfsync", "everysec", "--maxmemory", "64mb",
		"--maxmemory-policy", "noeviction", "--daemonize", "no",
	}, s.args...)
	s.cmd = exec.Command("redis-server", args...)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	exited := make(chan struct{})
	s.exited = exited
	go func(cmd *exec.Cmd) { _ = cmd.Wait(); close(exited) }(s.cmd)
}

func (s *server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// kill ends it at once and waits until it is gone.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.exited
}

// client is for looking and meddling.
func (s *server) client() *redis.Client {
	return redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket(), Protocol: 2, MaxRetries: -1})
}

// processorTime is what the server has taken of processors, with its threads.
func (s *server) processorTime() time.Duration {
	s.t.Helper()
	client := s.client()
	defer client.Close()
	info := client.InfoMap(context.Background(), "cpu").Val()["CPU"]
	var sum float64
	for _, name := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(info[name], 64)
		if err != nil {
			s.t.Fatal(err)
		}
		sum += seconds
	}
	return time.Duration(sum * float64(time.Second))
}
