package natsbus

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// EmbeddedConfig is a server inside this process, for `proofrack up` and tests.
type EmbeddedConfig struct {
	Dir      string         `doc:"Folder of the store; one server at a time holds it."`
	Listen   string         `doc:"Loopback address and port, e.g. 127.0.0.1:4222; port 0 picks one; empty for none."`
	StoreMax bytesize.Bytes `doc:"Bound of the store; 0 is three quarters of what is free, but 32 GiB at least."`
	Sync     bool           `doc:"Call fsync before anything is answered."`
}

// readyWait bounds how long a server may read its store at start.
const readyWait = 30 * time.Second

// healInterval is how often it is looked whether the server gave up its store because the disk was full.
const healInterval = 500 * time.Millisecond

// Embedded is a NATS server with JetStream in this process. It can be stopped and started again on the same store;
// clients connected to it go on. Only loopback is listened on, without credentials: whoever can run programs here is
// trusted.
type Embedded struct {
	cfg EmbeddedConfig

	mu     sync.Mutex
	server *server.Server // nil while stopped
	lock   *os.File       // held while it runs
	port   int            // the one picked first, so that a restart listens there again
	ends   chan struct{}  // closed to end heal
	healed chan struct{}
}

// StartEmbedded starts a server on a folder.
func StartEmbedded(cfg EmbeddedConfig) (*Embedded, error) {
	if cfg.StoreMax < 0 {
		return nil, fault.New(fault.Invalid, "start nats: store_max is negative")
	}
	e := &Embedded{cfg: cfg}
	if err := e.checkListen(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	if err := e.Start(); err != nil {
		return nil, err
	}
	return e, nil
}

// holdWait is how long a folder's last server may take to go: one that was killed lets go of its files only when the
// last of its threads has ended, and who restarts it may be faster.
const holdWait = 3 * time.Second

// hold takes the folder for one server.
func (e *Embedded) hold() (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(e.cfg.Dir, "proofrack.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("start nats: %w", err)
	}
	err = syscall.EAGAIN
	for deadline := time.Now().Add(holdWait); err != nil && time.Now().Before(deadline); {
		if err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
	if err != nil {
		_ = lock.Close()
		return nil, fault.As(fault.Conflict, fmt.Errorf("start nats: store %s is another server's: %w", e.cfg.Dir, err))
	}
	return lock, nil
}

func (e *Embedded) checkListen() error {
	if e.cfg.Listen == "" {
		return nil
	}
	host, port, err := net.SplitHostPort(e.cfg.Listen)
	if err != nil {
		return fault.As(fault.Invalid, fmt.Errorf("start nats: listen: %w", err))
	}
	ip := net.ParseIP(host)
	if host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fault.WithHint(fault.New(fault.Invalid, "start nats: %s is not a loopback address", host),
			"the embedded server has no credentials; run a NATS server of its own for other hosts")
	}
	e.port, err = strconv.Atoi(port)
	if err != nil || e.port < 0 || e.port > 65535 {
		return fault.New(fault.Invalid, "start nats: port %q is none", port)
	}
	return nil
}

// Start starts a stopped server on its store. It does nothing when it runs.
func (e *Embedded) Start() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server != nil {
		return nil
	}
	lock, err := e.hold()
	if err != nil {
		return err
	}
	if err := e.start(); err != nil {
		_ = lock.Close()
		return err
	}
	e.lock = lock
	return nil
}

func (e *Embedded) start() error {
	host, _, _ := net.SplitHostPort(e.cfg.Listen) // checked before
	port := e.port
	if port == 0 {
		port = server.RANDOM_PORT
	} else if probe, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port))); err != nil {
		return fault.As(fault.Conflict, fmt.Errorf("start nats: %w", err)) // the server itself would only not get ready
	} else if err := probe.Close(); err != nil {
		return fmt.Errorf("start nats: %w", err)
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "proofrack", Host: host, Port: port, DontListen: e.cfg.Listen == "", NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: e.cfg.Dir, SyncAlways: e.cfg.Sync, JetStreamMaxStore: e.storeMax(),
	})
	if err != nil {
		return fmt.Errorf("start nats: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(readyWait) || !s.JetStreamEnabled() {
		s.Shutdown()
		s.WaitForShutdown()
		return fault.New(fault.Transient, "start nats: not ready on %s and store %s", e.cfg.Listen, e.cfg.Dir)
	}
	if addr, ok := s.Addr().(*net.TCPAddr); ok {
		e.port = addr.Port
	}
	e.server, e.ends, e.healed = s, make(chan struct{}), make(chan struct{})
	go e.heal(s, e.ends, e.healed)
	return nil
}

// storeMaxLeast is what the shipped server configuration gives. Limits of streams are set aside in full, some 14 GiB by
// default, so a bound by what is free would keep a rack that writes a few megabytes from starting on a small disk. When
// the disk does get full, heal sees to it.
const storeMaxLeast = 32 * bytesize.GiB

// storeMax is the bound that the server gets: its own limit keeps it from filling the disk, on which it gives up.
func (e *Embedded) storeMax() int64 {
	if e.cfg.StoreMax > 0 {
		return int64(e.cfg.StoreMax)
	}
	return max(int64(storeMaxLeast), int64(e.free()/4*3)) //nolint:gosec // no disk has 2^63 bytes
}

// free is how many bytes the store's disk has left, 0 when it does not tell.
func (e *Embedded) free() uint64 {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(e.cfg.Dir, &fs); err != nil {
		return 0
	}
	return fs.Bavail * uint64(fs.Bsize) //nolint:gosec // a block size is positive
}

// heal opens the store again after the disk was full (field report B59). The server keeps a stream that once failed to
// write from ever being written again, and gives publishers no answer, until its store is opened anew.
func (e *Embedded) heal(s *server.Server, ends, healed chan struct{}) {
	defer close(healed)
	tick := time.NewTicker(healInterval)
	defer tick.Stop()
	for {
		select {
		case <-ends:
			return
		case <-tick.C:
		}
		if storeError(s) == "" || !e.room() {
			continue
		}
		// A failure is met again at the next tick.
		_ = s.ShutdownJetStream()
		_ = s.EnableJetStream(&server.JetStreamConfig{StoreDir: e.cfg.Dir, MaxStore: e.storeMax()})
	}
}

// storeError says what is wrong with the store; "" when nothing is.
func storeError(s *server.Server) string {
	if !s.JetStreamEnabled() {
		return "the server has given up its store"
	}
	for _, e := range s.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if strings.Contains(e.Error, "write error") {
			return e.Error
		}
	}
	return ""
}

// room tells whether the disk takes a few blocks again.
func (e *Embedded) room() bool { return e.free() >= 1<<20 }

// Stop stops the server; its store stays and can be started again.
func (e *Embedded) Stop() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil {
		return
	}
	close(e.ends)
	<-e.healed
	e.server.Shutdown()
	e.server.WaitForShutdown()
	e.server = nil
	_ = e.lock.Close() // it was only a lock
}

// Close stops the server; it is Stop with the signature of io.Closer.
func (e *Embedded) Close() error {
	e.Stop()
	return nil
}

// URL is where the server listens; "" when it does not.
func (e *Embedded) URL() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.cfg.Listen == "" {
		return ""
	}
	host, _, _ := net.SplitHostPort(e.cfg.Listen) // checked at the start
	return "nats://" + net.JoinHostPort(host, strconv.Itoa(e.port))
}

// Dir is the folder of the store.
func (e *Embedded) Dir() string { return e.cfg.Dir }

// errStopped is what connections get while the server is stopped.
var errStopped = errors.New("embedded nats server is stopped")

// InProcessConn makes a connection within the process, to the server that runs now.
func (e *Embedded) InProcessConn() (net.Conn, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil {
		return nil, fault.As(fault.Transient, errStopped)
	}
	return e.server.InProcessConn()
}

// Health is nil when the server runs and can write its store; otherwise fault.Exhausted (the disk is or was full; it
// heals by itself when there is room) or fault.Transient (stopped).
func (e *Embedded) Health() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.server == nil || !e.server.Running() {
		return fault.As(fault.Transient, errStopped)
	}
	if text := storeError(e.server); text != "" {
		return fault.WithHint(fault.New(fault.Exhausted, "nats store %s cannot be written: %s", e.cfg.Dir, text),
			"make room on the disk; the server then goes on by itself")
	}
	return nil
}
