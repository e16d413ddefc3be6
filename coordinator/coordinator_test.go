package coordinator_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/redisledger"
)

// goesItsWay runs some jobs on two nodes.
func goesItsWay(t testing.TB, w *world) {
	t.Helper()
	w.start()
	w.start() // a second one, which follows
	a, b := w.node("n1", 2, nil), w.node("n2", 1, nil)
	var ids []job.ID
	for i := range 4 {
		ids = append(ids, w.submit(1+i))
	}
	for _, id := range ids {
		w.proof(w.ends(id, job.Done))
	}
	w.settles("n1", "n2")
	for _, n := range []*node{a, b} {
		if n.most > n.room {
			t.Errorf("%s: %d attempts were booked at once where %d fit", n, n.most, n.room)
		}
	}
	if len(a.attempts())+len(b.attempts()) != 10 {
		t.Errorf("%d attempts for 10 partitions", len(a.attempts())+len(b.attempts()))
	}
}

func TestJobsGoTheirWholeWay(t *testing.T) {
	t.Parallel()
	goesItsWay(t, newWorld(t))
}

func TestJobsGoTheirWholeWayOnNATSAndTheEmbeddedStore(t *testing.T) {
	t.Parallel()
	w := newNATSWorld(t)
	server := miniredis.RunT(t)
	w.onRedis(server.Addr())
	goesItsWay(t, w)
}

func TestJobsGoTheirWholeWayOnNATSAndRedis(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs a Redis server")
	}
	w := newNATSWorld(t)
	w.onRedis(startRedis(t))
	goesItsWay(t, w)
}

// onRedis uses a ledger on a server, opened as the program does.
func (w *world) onRedis(address string) {
	w.edits = append(w.edits, func(c *coordinator.Config) { c.Ledger.Address = address })
	w.ledger = nil
	w.open = func() ledger.Ledger {
		c := redisledger.DefaultConfig()
		c.Address, c.Ledger.Lease = address, lease
		l, err := redisledger.Open(c)
		if err != nil {
			w.t.Fatal(err)
		}
		return l
	}
}

// startRedis starts a server of its own on a socket.
func startRedis(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "redis")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	server := exec.Command("redis-server", "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "",
		"--appendonly", "no", "--maxmemory", "64mb", "--maxmemory-policy", "noeviction")
	if err := server.Start(); err != nil {
		t.Fatalf("start redis-server: %v", err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill()
		_ = server.Wait()
	})
	deadline := time.Now().Add(patience)
	for {
		var d net.Dialer
		if c, err := d.DialContext(context.Background(), "unix", socket); err == nil {
			_ = c.Close()
			return socket
		}
		if time.Now().After(deadline) {
			t.Fatal("redis-server does not listen")
		}
		time.Sleep(5 * time.Millisecond)
	}
}
