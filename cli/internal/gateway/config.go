package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/metrics"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// Config is everything that a gateway can be told.
type Config struct {
	Gateway ServeConfig           `doc:"Where clients connect, and how much is held for them."`
	Forward ForwardConfig         `doc:"Who proves what the rack does not."`
	NATS    natsbus.Config        `doc:"The NATS servers and who we are there: a tenant."`
	Service service.Config        `doc:"How the program starts and ends."`
	HTTP    service.HTTPConfig    `doc:"Health checks."`
	Metrics metrics.Config        `doc:"Numbers for Prometheus; see docs/metrics.md."`
	Logs    telemetry.LogConfig   `doc:"What is logged, and how."`
	Traces  telemetry.TraceConfig `doc:"Where spans are sent; see docs/traces.md."`
	Test    TestConfig            `doc:"For tests only."`

	// Build names the program's build.
	Build string         `toml:"-"`
	Log   zerolog.Logger `toml:"-"`
	// Tracer takes spans; nil for none.
	Tracer *telemetry.Tracer `toml:"-"`
	// Connect gives the bus of the tenant, ConnectOperator that of the operator; NATS when they are nil.
	Connect         func(context.Context) (bus.Bus, error) `toml:"-"`
	ConnectOperator func(context.Context) (bus.Bus, error) `toml:"-"`
}

// ServeConfig is about clients.
type ServeConfig struct {
	Listen      string        `doc:"unix:///path of a socket, or address:port of loopback; nothing is encrypted."`
	SocketMode  string        `doc:"Who may connect to the socket, as an octal file mode; its folder's mode counts too."`
	Tenant      string        `doc:"Tenant whose jobs these are; empty for the credential's, else main."`
	BodiesMax   int           `doc:"Inputs of PoRep held in memory at once; more wait at their clients, unread."`
	StreamsMax  int           `doc:"Most calls at once on one connection; a client waits with more."`
	ConnectsMax int           `doc:"Most connections at once; more wait to be accepted."`
	StallMax    time.Duration `doc:"How long a client may send nothing in the middle of a request."`
	HoldMax     time.Duration `doc:"How long a submit is held that the rack cannot take; then it is refused."`
	AnswerMax   time.Duration `doc:"Longest wait for the rack to answer a question about its state."`
	LoadMax     time.Duration `doc:"Longest wait for parameters to be loaded or given back."`

	OperatorCredsFile string `doc:"An operator's credential, for PreloadSRS, EvictSRS and devices; empty for none."`
}

// ForwardConfig is about the upstream.
type ForwardConfig struct {
	To          string        `doc:"Upstream for all but PoRep: unix:///path or host:port; empty refuses those."`
	BodiesMax   int           `doc:"Requests of each kind that are passed on at once; answers are not counted."`
	CheckEvery  time.Duration `doc:"How often it is asked whether it lives."`
	CheckMax    time.Duration `doc:"How long it may take to answer that."`
	ConnectWait time.Duration `doc:"How long a request waits for an upstream that is away before it fails."`
}

// TestConfig is for tests only.
type TestConfig struct {
	Kind string `doc:"Kind of proof that PoRep requests are taken for; empty for PoRep."`
}

// DefaultConfig is a socket on this host in front of a rack on this host.
func DefaultConfig() Config {
	stop := service.DefaultConfig()
	stop.DrainWithin = time.Minute
	nats := natsbus.DefaultConfig()
	nats.Name = "proofrack-gateway"
	return Config{
		Gateway: ServeConfig{
			Listen: "unix:///run/proofrack/gateway.sock", SocketMode: "0660", BodiesMax: 2, StreamsMax: 256,
			ConnectsMax: 64, StallMax: time.Minute, HoldMax: time.Hour, AnswerMax: 5 * time.Second,
			LoadMax: 30 * time.Minute,
		},
		Forward: ForwardConfig{
			BodiesMax: 8, CheckEvery: 10 * time.Second, CheckMax: 3 * time.Second, ConnectWait: 10 * time.Second,
		},
		NATS: nats, Service: stop, HTTP: service.DefaultHTTPConfig(),
		Metrics: metrics.DefaultConfig(), Logs: telemetry.DefaultLogConfig(),
		Traces: telemetry.DefaultTraceConfig(),
	}
}

// Validate reports all problems of clients' side.
func (c *ServeConfig) Validate() error {
	var errs []error
	bad := func(key, format string, args ...any) {
		errs = append(errs, fault.New(fault.Invalid, "%s: %s", key, fmt.Sprintf(format, args...)))
	}
	if network, address := endpoint(c.Listen); network == "tcp" && !isLoopback(address) {
		bad("listen", "%q is neither unix:///path nor address:port of loopback, such as 127.0.0.1:9820", c.Listen)
	} else if network == "unix" && (!strings.HasPrefix(address, "/") || len(address) > socketBytesMax) {
		bad("listen", "%q: write unix:// and the whole path, of at most %d bytes", c.Listen, socketBytesMax)
	}
	if mode, err := strconv.ParseUint(c.SocketMode, 8, 32); err != nil || mode > 0o777 || mode&0o600 != 0o600 {
		bad("socket_mode", "%q is no file mode such as 0660", c.SocketMode)
	}
	if c.Tenant != "" {
		if _, err := job.ParseTenant(c.Tenant); err != nil {
			bad("tenant", "%s", err)
		}
	}
	for key, n := range map[string]int{
		"bodies_max": c.BodiesMax, "streams_max": c.StreamsMax, "connects_max": c.ConnectsMax,
	} {
		if n < 1 || n > countMax {
			bad(key, "must be 1 to %d, is %d", countMax, n)
		}
	}
	for key, d := range map[string]time.Duration{
		"stall_max": c.StallMax, "hold_max": c.HoldMax, "answer_max": c.AnswerMax, "load_max": c.LoadMax,
	} {
		if d <= 0 {
			bad(key, "must be positive, is %s", d)
		}
	}
	return errors.Join(errs...)
}

// Validate reports all problems of the upstream's side.
func (c *ForwardConfig) Validate() error {
	var errs []error
	if c.To != "" {
		if network, address := endpoint(c.To); network == "unix" && !strings.HasPrefix(address, "/") {
			errs = append(errs, fault.New(fault.Invalid, "to: %q: write unix:// and the whole path", c.To))
		} else if _, port, err := net.SplitHostPort(address); network == "tcp" && (err != nil || port == "") {
			errs = append(errs, fault.New(fault.Invalid, "to: %q is neither unix:///path nor host:port", c.To))
		}
	}
	if c.BodiesMax < 1 || c.BodiesMax > countMax {
		errs = append(errs, fault.New(fault.Invalid, "bodies_max: must be 1 to %d, is %d", countMax, c.BodiesMax))
	}
	for key, d := range map[string]time.Duration{
		"check_every": c.CheckEvery, "check_max": c.CheckMax, "connect_wait": c.ConnectWait,
	} {
		if d <= 0 {
			errs = append(errs, fault.New(fault.Invalid, "%s: must be positive, is %s", key, d))
		}
	}
	return errors.Join(errs...)
}

// Validate demands a kind that this build knows.
func (c *TestConfig) Validate() error {
	_, err := catalog.FindKind(c.Kind)
	return fault.As(fault.Invalid, err)
}

// Validate reports what the sections ask of each other.
func (c *Config) Validate() error {
	if c.Forward.To != "" && c.Forward.To == c.Gateway.Listen {
		return fault.New(fault.Invalid, "forward.to: is gateway.listen; requests would go round for ever")
	}
	return nil
}

// Bounds of settings.
const (
	socketBytesMax = 100 // a socket's name has 108 bytes in the kernel
	countMax       = 4096
)

// endpoint splits an address as users write it.
func endpoint(text string) (network, address string) {
	if path, ok := strings.CutPrefix(text, "unix://"); ok {
		return "unix", path
	}
	return "tcp", text
}

// isLoopback tells whether an address:port can be reached from this host only. Names are not believed.
func isLoopback(address string) bool {
	a, err := netip.ParseAddrPort(address)
	return err == nil && a.Addr().Unmap().IsLoopback()
}

// tenant is whose jobs they are: the credential says so, else the settings.
func (c *Config) tenant() (job.Tenant, error) {
	named := c.Gateway.Tenant
	if c.NATS.CredsFile == "" {
		if named == "" {
			return job.MainTenant, nil
		}
		return job.ParseTenant(named)
	}
	identity, err := natsbus.ReadIdentity(c.NATS.CredsFile)
	switch {
	case err != nil:
		return "", err
	case identity.Kind != "" && identity.Kind != "tenant":
		return "", fault.New(fault.Invalid, "nats.creds_file: a gateway needs a tenant's credential; %s is of %s %s",
			c.NATS.CredsFile, identity.Kind, identity.Name)
	case identity.Kind == "tenant" && named != "" && named != identity.Name:
		return "", fault.New(fault.Invalid, "gateway.tenant: is %s; credential %s is of tenant %s",
			named, c.NATS.CredsFile, identity.Name)
	case identity.Kind == "tenant":
		return job.ParseTenant(identity.Name)
	case named == "":
		return job.MainTenant, nil
	}
	return job.ParseTenant(named)
}

// operates tells whether the gateway may ask for what is an operator's. A rack without credentials lets everybody.
func (c *Config) operates() bool {
	return c.Gateway.OperatorCredsFile != "" || c.ConnectOperator != nil ||
		c.NATS.CredsFile == "" && c.NATS.NKeySeedFile == "" && c.NATS.CertFile == ""
}
