package natsbus

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

// Config says where the servers are and who we are there.
type Config struct {
	URLs         []string `doc:"Addresses of the servers: nats://host:port, or tls://host:port to insist on TLS."`
	Name         string   `doc:"Name of this connection in the servers' reports."`
	CredsFile    string   `doc:"Credentials file (JWT and seed) of this program; empty for none."`
	NKeySeedFile string   `toml:"nkey_seed_file" doc:"File with the NKey seed of this program; empty for none."`
	CAFile       string   `toml:"ca_file" doc:"Authorities of the servers' certificates, PEM; empty for the system's."`
	CertFile     string   `doc:"Certificate that we show the servers, PEM; empty for none."`
	KeyFile      string   `doc:"Private key of cert_file, PEM."`
	InboxPrefix  string   `doc:"Where answers to us arrive. Empty: as the credentials file says, else _INBOX."`

	ConnectTimeout time.Duration `doc:"Longest time for making a connection."`
	ReconnectWait  time.Duration `doc:"First wait before connecting again, about; it doubles with each try."`
	ReconnectMax   time.Duration `doc:"Longest wait between tries to connect again."`
	PingInterval   time.Duration `doc:"How often a silent connection is tested; two tests without answer end it."`
	CallTimeout    time.Duration `doc:"Longest time for one call that has no bound of its own."`
	SetupWait      time.Duration `doc:"How long publishing waits for a stream that is not set up yet."`
	PullWait       time.Duration `doc:"How long one request for work stays with the server."`
	GuardInterval  time.Duration `doc:"How often it is checked that what was set up is still there."`

	PendingMax      int            `doc:"Plain messages that may wait for one slow handler; more are dropped and counted."`
	PendingBytesMax bytesize.Bytes `doc:"Bytes of plain messages that may wait for one slow handler."`
	ChunkBytes      bytesize.Bytes `doc:"Size of the pieces of objects; the servers' max_payload bounds it too."`
}

// DefaultConfig is for a server on this host.
func DefaultConfig() Config {
	return Config{
		URLs: []string{"nats://127.0.0.1:4222"}, Name: "proofrack",
		ConnectTimeout: 5 * time.Second, ReconnectWait: 100 * time.Millisecond, ReconnectMax: time.Second,
		PingInterval: 10 * time.Second, CallTimeout: 5 * time.Second, SetupWait: 2 * time.Second,
		PullWait: 5 * time.Second, GuardInterval: 30 * time.Second,
		PendingMax: 4096, PendingBytesMax: 16 * bytesize.MiB, ChunkBytes: bytesize.MiB,
	}
}

// Validate reports all problems.
func (c *Config) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, fault.New(fault.Invalid, "%s: %s", key, fmt.Sprintf(format, args...)))
	}
	if c.CredsFile != "" && c.NKeySeedFile != "" {
		bad("creds_file", "set it or nkey_seed_file, not both")
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		bad("cert_file", "it needs key_file, and the other way round")
	}
	for _, d := range []struct {
		key   string
		value time.Duration
		least time.Duration
	}{
		{"connect_timeout", c.ConnectTimeout, time.Millisecond}, {"reconnect_wait", c.ReconnectWait, time.Millisecond},
		{"reconnect_max", c.ReconnectMax, c.ReconnectWait}, {"ping_interval", c.PingInterval, time.Millisecond},
		{"call_timeout", c.CallTimeout, time.Millisecond}, {"setup_wait", c.SetupWait, 0},
		{"pull_wait", c.PullWait, 10 * time.Millisecond}, {"guard_interval", c.GuardInterval, time.Millisecond},
	} {
		if d.value < d.least {
			bad(d.key, "must be at least %s, not %s", d.least, d.value)
		}
	}
	if c.PendingMax < 1 {
		bad("pending_max", "must be at least 1")
	}
	if c.PendingBytesMax < 1 {
		bad("pending_bytes_max", "must be at least 1")
	}
	if c.ChunkBytes < 1<<10 || c.ChunkBytes > 8*bytesize.MiB {
		bad("chunk_bytes", "must be 1KiB to 8MiB")
	}
	return errors.Join(errs...)
}

// checkFiles gives one clear line for each file that cannot be read; the library's own errors come late and vague.
func (c *Config) checkFiles() error {
	var errs []error
	for _, f := range []struct{ key, path string }{
		{"creds_file", c.CredsFile}, {"nkey_seed_file", c.NKeySeedFile}, {"ca_file", c.CAFile},
		{"cert_file", c.CertFile}, {"key_file", c.KeyFile},
	} {
		if f.path == "" {
			continue
		}
		file, err := os.Open(f.path)
		if err != nil {
			errs = append(errs, fault.As(fault.Invalid, fmt.Errorf("%s: %w", f.key, err)))
			continue
		}
		_ = file.Close() // only read access was of interest
	}
	return errors.Join(errs...)
}
