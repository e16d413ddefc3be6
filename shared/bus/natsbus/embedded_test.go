package natsbus_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// quick is a configuration whose waits suit tests.
func quick() natsbus.Config {
	cfg := natsbus.DefaultConfig()
	cfg.ReconnectWait, cfg.ReconnectMax = 10*time.Millisecond, 100*time.Millisecond
	cfg.SetupWait, cfg.PullWait, cfg.GuardInterval = 200*time.Millisecond, time.Second, time.Second
	return cfg
}

// embedded starts a server on a store of its own.
func embedded(t testing.TB, change func(*natsbus.EmbeddedConfig)) *natsbus.Embedded {
	t.Helper()
	cfg := natsbus.EmbeddedConfig{Dir: t.TempDir(), Sync: true, StoreMax: bytesize.GiB}
	if change != nil {
		change(&cfg)
	}
	e, err := natsbus.StartEmbedded(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// dial connects to an embedded server.
func dial(t testing.TB, e *natsbus.Embedded, cfg natsbus.Config, events bus.Events) *natsbus.Bus {
	t.Helper()
	b, err := natsbus.Dial(t.Context(), cfg, natsbus.Options{Embedded: e, Events: events})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

func TestEmbeddedServerStaysWithinThisHostAndItsFolder(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{
		"0.0.0.0:0", "192.168.1.1:4222", "example.org:4222", "127.0.0.1", ":4222", "127.0.0.1:x",
	} {
		if e, err := natsbus.StartEmbedded(natsbus.EmbeddedConfig{Dir: t.TempDir(), Listen: listen}); err == nil {
			t.Errorf("listens on %s", listen)
			_ = e.Close()
		} else if fault.KindOf(err) != fault.Invalid {
			t.Error(err)
		}
	}
	dir := t.TempDir()
	e := embedded(t, func(c *natsbus.EmbeddedConfig) { c.Dir, c.Listen = dir, "127.0.0.1:0" })
	if _, err := natsbus.StartEmbedded(natsbus.EmbeddedConfig{Dir: dir}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a second server on the same store: %v", err)
	}
	taken := natsbus.EmbeddedConfig{Dir: t.TempDir(), Listen: strings.TrimPrefix(e.URL(), "nats://")}
	if _, err := natsbus.StartEmbedded(taken); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a second server on the same port: %v", err)
	}
	cfg := quick()
	cfg.URLs = []string{e.URL()}
	b, err := natsbus.Connect(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := e.Health(); err != nil || !b.Connected() {
		t.Errorf("not ready: %v", err)
	}
}

// A server that was killed lets go of its folder a moment later: the next one waits for that.
func TestEmbeddedServerWaitsForTheFolderOfAKilledOne(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	lock, err := os.OpenFile(filepath.Join(dir, "proofrack.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(300*time.Millisecond, func() { _ = lock.Close() })
	e, err := natsbus.StartEmbedded(natsbus.EmbeddedConfig{Dir: dir, StoreMax: bytesize.GiB})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}
