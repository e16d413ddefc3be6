package coordinator

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/sizes"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/ledger/redisledger"
)

type logger = zerolog.Logger

// uploads are what clients put into the object store.
type uploads struct{ store *store.Store }

func (u uploads) Open(ctx context.Context, tenant job.Tenant, name string) (io.ReadCloser, error) {
	return u.store.OpenUpload(ctx, tenant, name)
}

// gate says whether jobs are taken now.
type gate struct {
	c *coordinator

	mu     sync.Mutex
	sizes  []byte    // what leaders learned of sizes, as it is stored
	readAt time.Time // when that was looked at
}

// Open is nil when they are, of a tenant that has buckets for its inputs and proofs.
func (g *gate) Open(tenant job.Tenant) error {
	if !g.c.bus.Connected() {
		return errBusAway
	}
	if !slices.Contains(g.c.config.Streams.Tenants, string(tenant)) {
		return fault.WithHint(fault.New(fault.NotFound, "the rack has no tenant %s", tenant),
			"an operator adds it to streams.tenants of every coordinator")
	}
	if i := g.c.store.Intake(); i.Paused {
		reason := "intake is paused"
		if i.Reason != "" {
			reason += ": " + i.Reason
		}
		return fault.WithHint(fault.New(fault.Transient, "%s", reason), "submit again when it was resumed")
	}
	return g.c.store.Room()
}

// Fits tells whether some node could ever hold a partition of the circuit.
func (g *gate) Fits(circuitID string) error {
	core, err := g.core()
	if err != nil {
		return err
	}
	return core.Fits(circuitID)
}

// FitsQuota tells whether a tenant's quota could ever hold a partition of the circuit.
func (g *gate) FitsQuota(tenant job.Tenant, circuitID string) error {
	core, err := g.core()
	if err != nil {
		return err
	}
	return core.FitsQuota(tenant, circuitID)
}

// core is a scheduler that knows the nodes. Every instance does, so it asks one of its own.
func (g *gate) core() (*scheduler.Core, error) {
	core, err := scheduler.New(g.c.config.dispatch().Scheduler)
	if err != nil {
		return nil, err
	}
	table, err := sizes.Decode(g.c.config.sizes(), g.learned(), nil)
	if err == nil { // unreadable is what nobody has learned: leaders say so, and learn it again
		core.Apply(time.Now(), scheduler.Remembered{Sizes: table})
	}
	for _, n := range g.c.nodes.Nodes() {
		core.Apply(time.Now(), scheduler.NodeSeen{Node: n.View(g.c.store.Mark(n.Node))})
	}
	return core, nil
}

// learned is what leaders have learned of sizes, looked at as often as they store it. While it cannot be read it is
// what was known before: that is no reason to refuse a job.
func (g *gate) learned() []byte {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.readAt.IsZero() && time.Since(g.readAt) < g.c.config.Memory.StoreEvery {
		return g.sizes
	}
	stored, err := g.c.store.Learned(context.Background())
	if err != nil {
		g.c.log.Debug().Err(err).Msg("what was learned of sizes is not read")
		return g.sizes
	}
	g.sizes, g.readAt = stored.Sizes, time.Now()
	return g.sizes
}

// Verifiable tells whether a job of the circuit can ever end: without the verifying key, devices would prove what
// nobody can accept.
func (g *gate) Verifiable(ctx context.Context, circuitID string) error {
	return g.c.verifier.Ready(ctx, circuitID)
}

// connectNATS connects to the configured servers.
func connectNATS(config *Config) func(context.Context) (bus.Bus, error) {
	log := config.Log
	return func(ctx context.Context) (bus.Bus, error) {
		b, err := natsbus.Dial(ctx, config.NATS, natsbus.Options{Events: bus.Events{
			Connected:    func() { log.Info().Msg("connected to NATS") },
			Disconnected: func(err error) { log.Warn().Err(err).Msg("connection to NATS is lost") },
			Dropped: func(subject string, count uint64) {
				log.Warn().Str("subject", subject).Uint64("count", count).Msg("messages were dropped")
			},
			Trouble: func(err error) { log.Warn().Err(err).Msg("trouble with NATS") },
		}})
		if err != nil {
			return nil, err
		}
		return b, nil
	}
}

// openRedis opens the configured ledger.
func openRedis(config *Config) func(context.Context) (ledger.Ledger, error) {
	return func(ctx context.Context) (ledger.Ledger, error) {
		r, err := config.redis()
		if err != nil {
			return nil, err
		}
		l, err := redisledger.Open(r)
		if err != nil {
			return nil, err
		}
		checked := &checkedLedger{Ledger: l, log: config.Log}
		// A server that is away is waited for later, by the leader; one that cannot be used is refused now (B77).
		if err := checked.check(ctx); fault.KindOf(err) == fault.Invalid {
			return nil, errors.Join(err, l.Close())
		}
		return checked, nil
	}
}

// checkedLedger begins no reign on a store whose settings were not found good.
type checkedLedger struct {
	*redisledger.Ledger
	log  logger
	good atomic.Bool
}

func (l *checkedLedger) check(ctx context.Context) error {
	report, err := l.Check(ctx)
	if err != nil {
		return fmt.Errorf("check redis: %w", err)
	}
	if !l.good.Swap(true) {
		for _, warning := range report.Warnings {
			l.log.Warn().Str("warning", warning).Msg("setting of redis is risky")
		}
	}
	return nil
}

// Begin implements ledger.Ledger.
func (l *checkedLedger) Begin(ctx context.Context, term uint64, epoch string) (ledger.Call, error) {
	if !l.good.Load() {
		if err := l.check(ctx); err != nil {
			return ledger.Call{}, err
		}
	}
	return l.Ledger.Begin(ctx, term, epoch)
}

func (c *Config) redis() (redisledger.Config, error) {
	l := &c.Ledger
	r := redisledger.DefaultConfig()
	r.Address, r.Username, r.Prefix, r.Timeout = l.Address, l.Username, l.Prefix, l.Timeout
	r.Connections, r.AllowEviction = l.Connections, l.AllowEviction
	r.Ledger.Lease = c.Times.Lease
	if l.PasswordFile != "" {
		text, err := os.ReadFile(l.PasswordFile)
		if err != nil {
			return r, fault.As(fault.Invalid, fmt.Errorf("ledger.password_file: %w", err))
		}
		r.Password = strings.TrimSpace(string(text))
	}
	if l.CAFile == "" {
		return r, nil
	}
	pem, err := os.ReadFile(l.CAFile)
	if err != nil {
		return r, fault.As(fault.Invalid, fmt.Errorf("ledger.ca_file: %w", err))
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return r, fault.New(fault.Invalid, "ledger.ca_file: no certificate in %s", l.CAFile)
	}
	r.TLS = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if l.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(l.CertFile, l.KeyFile)
		if err != nil {
			return r, fault.As(fault.Invalid, fmt.Errorf("ledger.cert_file: %w", err))
		}
		r.TLS.Certificates = []tls.Certificate{pair}
	}
	return r, nil
}
