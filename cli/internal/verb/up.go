package verb

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/proofrack/proofrack/cli/internal/drill"
	"github.com/proofrack/proofrack/coordinator"
	"github.com/proofrack/proofrack/shared/attempt/host"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/inventory"
	"github.com/proofrack/proofrack/shared/metrics"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/support"
	"github.com/proofrack/proofrack/shared/telemetry"
	workergpu "github.com/proofrack/proofrack/worker-gpu"
	workersynth "github.com/proofrack/proofrack/worker-synth"
)

// upFlags are the flags of up.
type upFlags struct {
	data, params, listen, spill, claims, node, logLevel string
	web, webToken, metrics                              string
	devices                                             []string
	slots                                               int
	drain                                               time.Duration
}

// upCommand runs a whole rack in one process.
func (a *app) upCommand() *cobra.Command {
	var flags upFlags
	c := &cobra.Command{
		Use:   "up --data DIR --params DIR",
		Short: "run a whole rack in this process: queue, ledger, coordinator and workers",
		Long: "up runs all roles of the rack in one process, with a NATS server and a Redis of its own. It listens on\n" +
			"loopback only and asks for no credential; clients find the address in server.url of the data folder.\n" +
			"Accepted jobs and finished partitions are in that folder too and survive a crash. The first interrupt lets\n" +
			"running partitions finish, the second hands them back, the third ends it.",
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return a.up(c, &flags) },
	}
	f := c.Flags()
	f.StringVar(&flags.data, "data", "", "folder for queue, jobs and proofs")
	f.StringVar(&flags.params, "params", "", "folder with the proving parameters")
	f.StringVar(&flags.listen, "listen", "127.0.0.1:4222", "loopback address for clients; port 0 takes a free one")
	f.StringVar(&flags.web, "web", "127.0.0.1:0", "loopback address of the web page; port 0 takes a free one, \"\" is off")
	f.StringVar(&flags.webToken, "web-token", "", "file with the token that lets the web page cancel and replay")
	f.StringVar(&flags.claims, "claims", "", "folder where agents of this host claim memory beside each other (none)")
	f.StringVar(&flags.spill, "spill", "", "folder for segments, on a tmpfs (a folder of its own in /dev/shm)")
	f.StringVar(&flags.node, "node", "local", "name of this node")
	f.StringSliceVar(&flags.devices, "device", []string{"cpu"}, "devices that prove: cpu, or names or UUIDs of GPUs")
	f.IntVar(&flags.slots, "synth-slots", 0, "partitions that are synthesized at once; 0 is one for each four cores")
	f.StringVar(&flags.metrics, "metrics", "", "address:port of GET /metrics for Prometheus; none when empty")
	f.StringVar(&flags.logLevel, "log", "info", "debug, info, warn or error")
	f.DurationVar(&flags.drain, "drain-within", 15*time.Minute, "how long running partitions may take to finish")
	return c
}

// oneProcess is the rack that up runs.
type oneProcess struct {
	flags  *upFlags
	log    zerolog.Logger
	server *natsbus.Embedded
	redis  *miniredis.Miniredis
	build  string
	tracer *telemetry.Tracer
	page   chan net.Addr                // of the web page, once it is served
	meters map[string]*metrics.Registry // by role
}

func (a *app) up(c *cobra.Command, flags *upFlags) error {
	if err := required(c, "data", "params"); err != nil {
		return err
	}
	if err := flags.check(); err != nil {
		return err
	}
	if err := os.MkdirAll(flags.data, 0o700); err != nil {
		return fail(usage, "", "make data folder: %w", err)
	}
	logs := telemetry.LogConfig{Level: flags.logLevel, Format: telemetry.FormatConsole}
	if a.json {
		logs.Format = telemetry.FormatJSON
	}
	if err := logs.Validate(); err != nil {
		return misuse("--log: %w", err)
	}
	record := support.New("up", buildOf())
	log := telemetry.NewLogger(logs, io.MultiWriter(a.Err, record), time.Now)
	p := &oneProcess{flags: flags, log: log, build: buildOf(),
		page: make(chan net.Addr, 1)}
	p.tracer = openTracer(c.Context(), "proofrack-up", p.log)
	defer p.tracer.Close()
	p.meter()
	// The signals of the program are the group's: its own handler would end everything at the first.
	if _, err := inventory.NewHost().LowerProcs(); err != nil {
		p.log.Warn().Err(err).Msg("processors are not to be counted")
	}
	ctx, stop := service.Notify(support.With(context.WithoutCancel(c.Context()), record), p.log)
	defer stop()
	config := service.DefaultConfig()
	config.DrainWithin = flags.drain
	group := service.NewGroup(config, p.log, service.NewHealth())
	err := group.Run(ctx,
		service.Resource("nats", p.startNATS, p.stopNATS),
		service.Resource("ledger store", p.startRedis, p.stopRedis),
		service.Resource("spill folder", nothing, p.removeSpill), // stopped when the workers have ended
		p.serveMetrics(),
		p.role("coordinator", p.coordinator),
		p.role("worker-synth", p.synth),
		p.role("worker-gpu", p.gpu),
		service.Resource("announcement", func(context.Context) error { return p.announce(a.Err) }, p.conceal))
	switch fault.KindOf(err) {
	case fault.Conflict, fault.Invalid:
		return fail(usage, "", "%w", err)
	default:
		return err
	}
}

// urlFile is in the data folder while the rack is up, for scripts that let it choose its port.
const urlFile = "server.url"

func (p *oneProcess) announce(w io.Writer) error {
	if err := os.WriteFile(filepath.Join(p.flags.data, urlFile), []byte(p.server.URL()+"\n"), 0o600); err != nil {
		return fmt.Errorf("announce the rack: %w", err)
	}
	state := drill.UpState{PID: os.Getpid(), URL: p.server.URL(), Spill: p.flags.spill, Ledger: p.redis.Addr()}
	select {
	case a := <-p.page:
		state.Web = "http://" + a.String()
	default: // there is none
	}
	if err := drill.WriteUp(p.flags.data, &state); err != nil {
		return err
	}
	fmt.Fprintf(w, "rack is up: clients connect to %s\n", p.server.URL())
	if state.Web != "" {
		fmt.Fprintf(w, "web page: %s\n", state.Web)
	}
	return nil
}

func (p *oneProcess) conceal(context.Context) error {
	return errors.Join(
		os.Remove(filepath.Join(p.flags.data, urlFile)),
		os.Remove(filepath.Join(p.flags.data, drill.UpFile)),
	)
}

func (f *upFlags) check() error {
	if err := (&service.HTTPConfig{Listen: f.metrics}).Validate(); err != nil {
		return misuse("--metrics: %w", err)
	}
	for _, path := range []*string{&f.data, &f.params} {
		abs, err := filepath.Abs(*path)
		if err != nil {
			return misuse("folder %q: %w", *path, err)
		}
		*path = abs
	}
	if info, err := os.Stat(f.params); err != nil || !info.IsDir() {
		return fail(
			noParams,
			`"proofrack params generate" makes parameters for development`,
			"no folder of parameters at %s",
			f.params,
		)
	}
	if host, _, err := net.SplitHostPort(f.web); f.web != "" && (err != nil || !isLoopback(host)) {
		return misuse("--web: %q is no loopback address with a port", f.web)
	}
	if f.spill == "" {
		// One folder per data folder: two racks of one user must not share a book.
		sum := sha256.Sum256([]byte(f.data))
		f.spill = filepath.Join("/dev/shm", "proofrack-"+hex.EncodeToString(sum[:6]))
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// buildOf names this build by its commit.
func buildOf() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value[:min(12, len(s.Value))]
		}
	}
	return cmp.Or(info.Main.Version, "unknown")
}

func (p *oneProcess) startNATS(context.Context) error {
	var err error
	p.server, err = natsbus.StartEmbedded(natsbus.EmbeddedConfig{
		Dir: filepath.Join(p.flags.data, "nats"), Listen: p.flags.listen, Sync: true,
	})
	if errors.Is(err, syscall.EADDRINUSE) {
		return fault.WithHint(fault.As(fault.Conflict, err), "another rack runs here: choose another --listen")
	}
	return err
}

func (p *oneProcess) stopNATS(context.Context) error { return p.server.Close() }

// startRedis starts the embedded ledger store, which forgets everything at exit: nodes declare what they hold at every
// start.
func (p *oneProcess) startRedis(context.Context) error {
	p.redis = miniredis.NewMiniRedis()
	if err := p.redis.StartAddr(net.JoinHostPort("127.0.0.1", "0")); err != nil {
		return fmt.Errorf("start ledger store: %w", err)
	}
	return nil
}

func (p *oneProcess) stopRedis(context.Context) error {
	p.redis.Close()
	return nil
}

func nothing(context.Context) error { return nil }

// removeSpill removes the node's folder in memory when nothing in it is needed after a restart: no segment, no result
// that was not sent.
func (p *oneProcess) removeSpill(context.Context) error {
	for _, part := range []string{"seg", "outbox"} {
		if files, err := os.ReadDir(filepath.Join(p.flags.spill, part)); err == nil && len(files) > 0 {
			return nil
		}
	}
	if err := os.RemoveAll(p.flags.spill); err != nil {
		return fmt.Errorf("remove spill folder: %w", err)
	}
	return nil
}

// role is a role of the rack as a service of this process.
func (p *oneProcess) role(name string, run func(ctx context.Context) error) service.Service {
	return service.Service{Name: name, Run: func(ctx context.Context, c *service.Control) error {
		c.Ready()
		return run(service.With(ctx, c))
	}}
}

// dial connects a role within the process.
func (p *oneProcess) dial(name string) func(context.Context) (bus.Bus, error) {
	return func(ctx context.Context) (bus.Bus, error) {
		config := natsbus.DefaultConfig()
		config.Name = name
		b, err := natsbus.Dial(ctx, config, natsbus.Options{Embedded: p.server})
		if err != nil {
			return nil, err
		}
		return b, nil
	}
}

func (p *oneProcess) coordinator(ctx context.Context) error {
	config := coordinator.DefaultConfig()
	config.Params.Dir = p.flags.params
	config.Ledger.Address = p.redis.Addr()
	config.HTTP.Listen = ""
	config.Web.Listen, config.Web.TokenFile = p.flags.web, p.flags.webToken
	config.WebBound = func(a net.Addr) { p.page <- a }
	config.Connect = p.dial("coordinator")
	config.Build, config.Tracer = p.build, p.tracer
	config.Log = p.log.With().Str("role", "coordinator").Logger()
	config.Registry = p.meters["coordinator"]
	if err := config.Validate(); err != nil {
		return err
	}
	return coordinator.Run(ctx, config)
}

// host is what both workers of this node have in common.
func (p *oneProcess) host(role string) host.Config {
	config := host.DefaultConfig()
	config.Node = p.flags.node
	config.Spill.Path = p.flags.spill
	config.Memory.Claims = p.flags.claims
	if inMemory(filepath.Dir(p.flags.spill)) {
		config.Spill.DiskPath = filepath.Join(p.flags.data, "spill")
	}
	config.Build, config.Tracer = p.build, p.tracer
	config.Connect = p.dial(role)
	config.Log = p.log.With().Str("role", role).Logger()
	config.Registry = p.meters[role]
	return config
}

// inMemory tells whether a folder is on a tmpfs; a disk has no use for a second one beside it.
func inMemory(folder string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(folder, &fs) == nil && fs.Type == unix.TMPFS_MAGIC
}

func (p *oneProcess) synth(ctx context.Context) error {
	config := workersynth.DefaultConfig()
	config.Config = p.host("worker-synth")
	config.Synth.Slots = p.flags.slots
	config.HTTP.Listen = ""
	if err := config.Validate(); err != nil {
		return err
	}
	return workersynth.Run(ctx, config)
}

func (p *oneProcess) gpu(ctx context.Context) error {
	config := workergpu.DefaultConfig()
	config.Config = p.host("worker-gpu")
	config.Prove.Params = p.flags.params
	config.Prove.Devices = p.flags.devices
	config.HTTP.Listen = ""
	if err := config.Validate(); err != nil {
		return err
	}
	return workergpu.Run(ctx, config)
}
