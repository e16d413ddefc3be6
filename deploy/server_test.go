package deploy_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	natsserver "github.com/nats-io/nats-server/v2/server"

	"github.com/proofrack/proofrack/deploy/internal/keyring"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
)

// servers are the rack's, with the shipped configurations and keys of their own.
type servers struct {
	t    testing.TB
	dir  string // stands for /etc/proofrack
	ring *keyring.Ring
	nats *natsserver.Server
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newServers starts NATS with deploy/nats/server.conf and credentials for a small rack.
func newServers(t testing.TB) *servers {
	t.Helper()
	s := &servers{t: t, dir: t.TempDir()}
	var err error
	s.ring, err = keyring.Create(s.dir, []string{"localhost", "127.0.0.1"})
	check(t, err)
	for _, u := range []struct {
		kind    keyring.Kind
		name    string
		devices []string
	}{
		{keyring.KindCoordinator, "c1", nil}, {keyring.KindCoordinator, "c2", nil},
		{keyring.KindNode, "n1", []string{"cpu"}}, {keyring.KindNode, "n2", []string{"cpu", "gpu-1a2b3c4d"}},
		{keyring.KindTenant, "main", nil}, {keyring.KindTenant, "other", nil}, {keyring.KindOperator, "ann", nil},
	} {
		_, err := s.ring.Add(u.kind, u.name, u.devices...)
		check(t, err)
	}
	options, err := natsserver.ProcessConfigFile(s.conf("nats/server.conf"))
	check(t, err)
	options.Host, options.Port, options.HTTPPort = "127.0.0.1", natsserver.RANDOM_PORT, 0
	options.NoLog, options.NoSigs = true, true
	s.nats, err = natsserver.NewServer(options)
	check(t, err)
	s.nats.Start()
	t.Cleanup(func() { s.nats.Shutdown(); s.nats.WaitForShutdown() })
	if !s.nats.ReadyForConnections(20*time.Second) || !s.nats.JetStreamEnabled() {
		t.Fatal("nats is not ready")
	}
	return s
}

// conf is a shipped file with the test's folders in place of the system's.
func (s *servers) conf(name string) string {
	s.t.Helper()
	text, err := os.ReadFile(name)
	check(s.t, err)
	data := filepath.Join(s.dir, "data")
	check(s.t, os.MkdirAll(filepath.Join(data, "redis"), 0o700))
	changed := strings.NewReplacer("/etc/proofrack", s.dir, "/var/lib/proofrack", data).Replace(string(text))
	path := filepath.Join(s.dir, name)
	check(s.t, os.WriteFile(path, []byte(changed), 0o600))
	return path
}

// as is how a user connects.
func (s *servers) as(kind keyring.Kind, name string) natsbus.Config {
	c := natsbus.DefaultConfig()
	c.URLs = []string{"tls://" + s.nats.Addr().String()}
	c.CredsFile = filepath.Join(s.dir, keyring.CredsFile(kind, name))
	c.CAFile = filepath.Join(s.dir, "tls", "ca.crt")
	c.CallTimeout = time.Second // how long a call waits that the server refuses
	return c
}

func (s *servers) dial(kind keyring.Kind, name string) *natsbus.Bus {
	s.t.Helper()
	b, err := natsbus.Dial(context.Background(), s.as(kind, name), natsbus.Options{Events: bus.Events{}})
	check(s.t, err)
	s.t.Cleanup(b.Close)
	return b
}

// redis starts redis-server with deploy/redis/redis.conf and gives its address.
func (s *servers) redis() string {
	s.t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		if testing.Short() {
			s.t.Skip("no redis-server, and this is a short run")
		}
		s.t.Fatalf("redis-server is needed: %v", err)
	}
	port := freePort(s.t)
	cmd := exec.Command(program, s.conf("redis/redis.conf"), "--tls-port", port, "--bind", "127.0.0.1")
	var log strings.Builder
	cmd.Stdout, cmd.Stderr = &log, &log
	check(s.t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		if s.t.Failed() {
			s.t.Logf("redis: %s", &log)
		}
	})
	waitPort(s.t, "127.0.0.1:"+port)
	return "127.0.0.1:" + port
}

// reload has the server read its configuration again, as SIGHUP does.
func (s *servers) reload() {
	s.t.Helper()
	options, err := natsserver.ProcessConfigFile(s.conf("nats/server.conf"))
	check(s.t, err)
	now := s.nats.Addr().String()
	options.Host, options.NoLog, options.NoSigs = "127.0.0.1", true, true
	options.Port, err = strconv.Atoi(now[strings.LastIndex(now, ":")+1:])
	check(s.t, err)
	options.HTTPPort = 0
	check(s.t, s.nats.ReloadOptions(options))
}

func copyFile(t testing.TB, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	check(t, err)
	to := filepath.Join(t.TempDir(), "copy")
	check(t, os.WriteFile(to, text, 0o600))
	return to
}
