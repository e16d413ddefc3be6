package natsbus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

// Options are what a program, not its settings, says about a connection.
type Options struct {
	Events bus.Events
	// Embedded, if set, is connected to within this process; Config.URLs is then ignored.
	Embedded *Embedded
}

// Bus is a connection to NATS.
type Bus struct {
	cfg    Config
	events bus.Events
	conn   *nats.Conn
	js     jetstream.JetStream

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
	dropped atomic.Uint64

	refusals atomic.Uint64
	kick     chan struct{} // wakes the guard

	mu       sync.Mutex
	up       bool
	turn     chan struct{} // closed, and made anew, at each change of up
	denied   map[string]time.Time
	wanted   []want // what Setup made
	guarding bool
	closers  map[int]func()
	nextID   int
}

// Connect makes a connection. An error is fault.Transient when no server is there (try again) and fault.Invalid when
// files, credentials or TLS are wrong: one line says which.
func Connect(ctx context.Context, cfg Config) (bus.Bus, error) {
	b, err := Dial(ctx, cfg, Options{})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Dial is Connect with options.
func Dial(ctx context.Context, cfg Config, o Options) (*Bus, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fault.As(fault.Invalid, fmt.Errorf("configure nats: %w", err))
	}
	if err := cfg.checkFiles(); err != nil {
		return nil, fault.As(fault.Invalid, fmt.Errorf("configure nats: %w", err))
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	b := &Bus{
		cfg: cfg, events: o.Events, turn: make(chan struct{}), kick: make(chan struct{}, 1),
		denied: map[string]time.Time{}, closers: map[int]func(){},
	}
	options, err := b.options(o)
	if err != nil {
		return nil, fault.As(fault.Invalid, fmt.Errorf("configure nats: %w", err))
	}
	b.ctx, b.cancel = context.WithCancel(context.Background())
	conn, err := nats.Connect(strings.Join(cfg.URLs, ","), options...)
	if err != nil {
		b.cancel()
		return nil, b.connectError(err)
	}
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(cfg.CallTimeout))
	if err != nil {
		b.cancel()
		conn.Close()
		return nil, fmt.Errorf("open jetstream: %w", err)
	}
	b.conn, b.js = conn, js
	b.turned(conn.IsConnected(), nil)
	return b, nil
}

func (b *Bus) options(o Options) ([]nats.Option, error) {
	c := &b.cfg
	options := []nats.Option{
		nats.Name(c.Name), nats.Timeout(c.ConnectTimeout), nats.MaxReconnects(-1), nats.IgnoreAuthErrorAbort(),
		nats.CustomReconnectDelay(b.delay), nats.PingInterval(c.PingInterval), nats.MaxPingsOutstanding(2),
		nats.ReconnectBufSize(-1), nats.NoCallbacksAfterClientClose(),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { b.turned(false, err) }),
		nats.ReconnectHandler(func(*nats.Conn) { b.turned(true, nil) }),
		nats.ReconnectErrHandler(func(_ *nats.Conn, err error) { b.trouble(b.connectError(err)) }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) { b.asyncError(sub, err) }),
	}
	if o.Embedded != nil {
		options = append(options, nats.InProcessServer(o.Embedded))
	} else if len(c.URLs) == 0 {
		return nil, errors.New("urls: no server is named")
	}
	prefix := c.InboxPrefix
	if c.CredsFile != "" {
		identity, err := ReadIdentity(c.CredsFile)
		if err != nil {
			return nil, fmt.Errorf("creds_file: %w", err)
		}
		if prefix == "" {
			prefix = identity.InboxPrefix
		}
		options = append(options, nats.UserCredentials(c.CredsFile))
	}
	if prefix != "" {
		options = append(options, nats.CustomInboxPrefix(prefix))
	}
	if c.NKeySeedFile != "" {
		option, err := nats.NkeyOptionFromSeed(c.NKeySeedFile)
		if err != nil {
			return nil, fmt.Errorf("nkey_seed_file %s: %w", c.NKeySeedFile, err)
		}
		options = append(options, option)
	}
	if c.CAFile != "" {
		options = append(options, nats.RootCAs(c.CAFile))
	}
	if c.CertFile != "" {
		options = append(options, nats.ClientCert(c.CertFile, c.KeyFile))
	}
	return options, nil
}

// delay is the wait before the n-th try (from 1) to connect again.
func (b *Bus) delay(n int) time.Duration {
	return jittered(b.cfg.ReconnectWait, b.cfg.ReconnectMax, n-1)
}

// jittered doubles first n times, up to most, and draws from half to one and a half of it.
func jittered(first, most time.Duration, n int) time.Duration {
	wait := most
	if n < 20 {
		wait = min(most, first<<max(0, n))
	}
	return wait/2 + time.Duration(rand.Int64N(int64(wait)+1)) //nolint:gosec // spreads load, keeps no secret
}

// turned notes that the connection came or went.
func (b *Bus) turned(up bool, err error) {
	b.mu.Lock()
	b.up = up
	close(b.turn)
	b.turn = make(chan struct{})
	b.mu.Unlock()
	b.wakeGuard()
	switch {
	case up && b.events.Connected != nil:
		b.events.Connected()
	case !up && b.events.Disconnected != nil:
		b.events.Disconnected(err)
	}
}

// state tells whether the connection is there, and gives a channel that is closed at the next change.
func (b *Bus) state() (bool, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.up, b.turn
}

// waitUp waits for the connection, until a context ends or the bus is closed.
func (b *Bus) waitUp(ctx context.Context) error {
	for {
		up, turn := b.state()
		if up {
			return nil
		}
		select {
		case <-turn:
		case <-b.ctx.Done():
			return errClosed
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return errAway
			}
			return ctx.Err()
		}
	}
}

var (
	errClosed = fault.New(fault.Cancelled, "connection to nats is closed")
	errAway   = fault.New(fault.Transient, "nats is away")
)

// asyncError sorts what the library tells in the background.
func (b *Bus) asyncError(sub *nats.Subscription, err error) {
	if subject, ok := deniedSubject(err); ok {
		b.mu.Lock()
		if len(b.denied) > 256 {
			clear(b.denied)
		}
		b.denied[subject] = time.Now()
		b.mu.Unlock()
	}
	if sub != nil {
		err = fmt.Errorf("subscription %s: %w", sub.Subject, err)
	}
	b.trouble(fault.As(kindOf(err), err))
}

// deniedSubject finds the subject in a server's note that we may not publish there.
func deniedSubject(err error) (string, bool) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return "", false
	}
	_, rest, ok := strings.Cut(err.Error(), `ublish to "`)
	if !ok {
		return "", false
	}
	subject, _, ok := strings.Cut(rest, `"`)
	return subject, ok
}

// wasDenied tells whether the server refused messages to a subject since a time.
func (b *Bus) wasDenied(subject string, since time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	at, ok := b.denied[subject]
	return ok && !at.Before(since)
}

func (b *Bus) trouble(err error) {
	if b.events.Trouble != nil {
		b.events.Trouble(err)
	}
}

// Connected tells whether the server is there now.
func (b *Bus) Connected() bool {
	up, _ := b.state()
	return up && b.ctx.Err() == nil
}

// Dropped counts plain messages dropped because handlers were slow.
func (b *Bus) Dropped() uint64 { return b.dropped.Load() }

// onClose registers what Close must end; the function it gives takes it off the list and tells whether it was on it.
func (b *Bus) onClose(end func()) (off func() bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	id := b.nextID
	b.nextID++
	b.closers[id] = end
	return func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		_, on := b.closers[id]
		delete(b.closers, id)
		return on
	}
}

// Close ends subscriptions, services and watches, then the connection.
func (b *Bus) Close() {
	b.mu.Lock()
	ends := b.closers
	b.closers = map[int]func(){}
	b.cancel() // under the lock: no task is started after it
	b.mu.Unlock()
	for _, end := range ends {
		end()
	}
	b.tasks.Wait()
	b.conn.Close()
}

// connectError says in one line why there is no connection.
func (b *Bus) connectError(err error) error {
	var (
		unknownCA x509.UnknownAuthorityError
		wrongHost x509.HostnameError
		badCert   *tls.CertificateVerificationError
		alert     tls.AlertError
		malformed *url.Error
	)
	kind, hint, text := fault.Invalid, "", err.Error()
	switch {
	case errors.As(err, &malformed):
		err = errors.New("an address is malformed") // the library's words hold all of it
		hint = "write nats://host:port in nats.urls; special characters of a password as %40 and the like"
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked),
		errors.Is(err, nats.ErrAccountAuthExpired), strings.Contains(strings.ToLower(text), "authorization violation"):
		hint = "set nats.creds_file or nats.nkey_seed_file to the credential made for this program"
		if b.cfg.CredsFile != "" || b.cfg.NKeySeedFile != "" {
			hint = "the server does not know the credential in " + b.cfg.CredsFile + b.cfg.NKeySeedFile +
				", or it has expired"
		}
	case errors.As(err, &unknownCA), errors.As(err, &wrongHost), errors.As(err, &badCert):
		hint = "set nats.ca_file to the authority that signed the server's certificate, and use a name that is in it"
	case strings.Contains(text, "parse root certificate"), strings.Contains(text, "error loading client certificate"),
		strings.Contains(text, "error parsing client certificate"):
		hint = "nats.ca_file, nats.cert_file and nats.key_file must be PEM files that fit together"
	case errors.As(err, &alert), strings.Contains(text, "tls: "),
		b.cfg.CertFile == "" && strings.Contains(text, "tls error"):
		hint = "the server refused our certificate: set nats.cert_file and nats.key_file"
	case errors.Is(err, nats.ErrSecureConnRequired), errors.Is(err, nats.ErrSecureConnWanted):
		hint = "the server and nats.urls do not agree whether TLS is used"
	case strings.Contains(text, "nkey"), strings.Contains(text, "no nonce"), errors.Is(err, nats.ErrNkeysNotSupported):
		hint = "the credential and what the server asks for do not fit"
	default:
		kind, hint = fault.Transient, "no server answers; is it running?"
	}
	where := strings.Join(b.cfg.URLs, ", ")
	return fault.WithHint(fault.As(kind, fmt.Errorf("connect to nats at %s: %w", redact(where), err)), hint)
}

// redact blanks passwords in addresses.
func redact(urls string) string {
	parts := strings.Split(urls, ", ")
	for i, u := range parts {
		scheme, rest, ok := strings.Cut(u, "://")
		if !ok {
			scheme, rest = "nats", u
		}
		if at := strings.LastIndex(rest, "@"); at >= 0 {
			parts[i] = scheme + "://xxxxx" + rest[at:]
		}
	}
	return strings.Join(parts, ", ")
}
