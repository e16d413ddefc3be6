package coordinator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator/internal/assemble"
	"github.com/proofrack/proofrack/coordinator/internal/dispatch"
	"github.com/proofrack/proofrack/coordinator/internal/intake"
	"github.com/proofrack/proofrack/coordinator/internal/lead"
	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/scheduler"
	"github.com/proofrack/proofrack/coordinator/internal/sizes"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/coordinator/internal/web"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/circuit"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/metrics"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// Config is everything that a coordinator can be told.
type Config struct {
	Params   ParamsConfig          `doc:"Where verifying keys are."`
	Times    TimesConfig           `doc:"Heartbeats, leases and intervals; workers must have the same heartbeat."`
	Attempts AttemptsConfig        `doc:"How often partitions are tried."`
	Schedule ScheduleConfig        `doc:"How much work is kept ahead, and for how long things may wait."`
	Memory   MemoryConfig          `doc:"What is made of the measured memory of attempts."`
	Intake   intake.Config         `doc:"What clients may ask for."`
	Keep     KeepConfig            `doc:"How long things are kept."`
	Streams  StreamsConfig         `doc:"What is set up on the NATS servers."`
	Ledger   LedgerConfig          `doc:"The Redis server that keeps the ledger."`
	NATS     natsbus.Config        `doc:"The NATS servers and who we are there."`
	Service  service.Config        `doc:"How the program starts and ends."`
	HTTP     service.HTTPConfig    `doc:"Health checks."`
	Web      web.Config            `doc:"The page for operators; see docs/web.md."`
	Metrics  metrics.Config        `doc:"Numbers for Prometheus; see docs/metrics.md."`
	Logs     telemetry.LogConfig   `doc:"What is logged, and how."`
	Traces   telemetry.TraceConfig `doc:"Where traces are sent; see docs/traces.md."`
	Test     TestConfig            `doc:"Faults on order, for tests only."`

	// Build names the program's build.
	Build string         `toml:"-"`
	Log   zerolog.Logger `toml:"-"`
	// Tracer makes spans; nil makes none.
	Tracer *telemetry.Tracer `toml:"-"`
	// Registry has the metrics; Run makes one when it is nil.
	Registry *metrics.Registry `toml:"-"`
	// Find gives the circuit of a name; the catalog's when it is nil.
	Find func(id string) (circuit.Circuit, error) `toml:"-"`
	// WebBound is told the address of the web page; nil tells nobody.
	WebBound func(net.Addr) `toml:"-"`
	// Connect gives the bus, OpenLedger the ledger; NATS and Redis when they are nil.
	Connect    func(context.Context) (bus.Bus, error)       `toml:"-"`
	OpenLedger func(context.Context) (ledger.Ledger, error) `toml:"-"`
}

// ParamsConfig says where verifying keys are.
type ParamsConfig struct {
	Dir         string `doc:"Folder with the .vk files of the circuits (and the parameters.json beside them)."`
	DigestCache string `doc:"File that remembers digests of large files; empty for one in the user's cache folder."`
}

// TimesConfig has the rack's clockwork.
type TimesConfig struct {
	Heartbeat   time.Duration `doc:"How often workers beat."`
	Lease       time.Duration `doc:"How long an attempt may go without progress, and a worker without a beat."`
	LeaderLease time.Duration `doc:"How long a leading coordinator may go without renewing its lead."`
	Tick        time.Duration `doc:"How often deadlines, leases and retries are looked at."`
	Sweep       time.Duration `doc:"How often what has no owner is looked for."`
	ResultWait  time.Duration `doc:"How long a result may be in a coordinator's hands before another one gets it."`
	Call        time.Duration `doc:"Longest time for one call to NATS or Redis."`
}

// AttemptsConfig bounds attempts.
type AttemptsConfig struct {
	FailedMax     int           `doc:"Failed attempts that end a partition, and with it its job."`
	LostMax       int           `doc:"Attempts lost with their worker that end a partition."`
	BackoffMin    time.Duration `doc:"Pause after the first failure; it doubles with each."`
	BackoffMax    time.Duration `doc:"Longest pause after a failure."`
	HandBackPause time.Duration `doc:"Pause of a partition that a node handed back."`
}

// ScheduleConfig tunes the scheduler.
type ScheduleConfig struct {
	WorkAhead           time.Duration             `doc:"Booked work that each device has ahead at least."`
	SealedAhead         time.Duration             `doc:"How much of that should be sealed."`
	DevicePartitionsMax int                       `doc:"Most partitions booked on a device before the proof."`
	SynthSlotsMax       int                       `doc:"Most synthesis slots used of a node; 0 for all."`
	SynthQueueMax       int                       `doc:"Partitions that may wait for each synthesis slot."`
	Ageing              time.Duration             `doc:"How long one is passed over before memory is kept for it."`
	Patience            time.Duration             `doc:"By how much a near deadline goes before older jobs."`
	QuotaPartitions     map[string]int            `doc:"Most partitions in flight, by tenant; none when not named."`
	QuotaBytes          map[string]bytesize.Bytes `doc:"Most bytes of RAM they have booked, by tenant."`
	Guess               map[string]time.Duration  `doc:"Time of a device, by circuit, before it is measured."`
	GuessDefault        time.Duration             `doc:"The same for circuits that are not named."`
	LoadRate            bytesize.Bytes            `doc:"Bytes of parameters that a node loads in a second."`
	EvictIdle           time.Duration             `doc:"Most that unused ones are kept from others: as long as a load."`
	QuarantineAfter     int                       `doc:"Faults in a row that take a device out."`
	HaltWindow          time.Duration             `doc:"Time within which faults of most devices stop all."`
	QuarantineMin       time.Duration             `doc:"Pause of a device taken out until it proves a known answer."`
	QuarantineMax       time.Duration             `doc:"Longest such pause."`
}

// MemoryConfig tunes what is learned of attempts' memory.
type MemoryConfig struct {
	Margin     float64        `doc:"Share of a measured peak that is booked on top of it: 0.1 is a tenth."`
	DriftMax   float64        `doc:"Share by which peaks may be off from computed sizes before that is told."`
	Slack      bytesize.Bytes `doc:"Measured RAM beyond the computed that changes nothing; process sizes are inexact."`
	StoreEvery time.Duration  `doc:"How often what was learned is stored."`
}

// KeepConfig says how long things are kept.
type KeepConfig struct {
	Retention      time.Duration `doc:"How long ended jobs and their proofs are kept."`
	RetentionCount int           `doc:"Most ended jobs that are kept of each tenant."`
	AuditRetention time.Duration `doc:"How long audit records are kept."`
	AuditCount     int           `doc:"Most audit records that are kept, of all tenants."`
	OrphanAge      time.Duration `doc:"Age at which an object of no job is removed."`
	InputRetention time.Duration `doc:"How long inputs that clients uploaded are kept."`
	KeyGrace       time.Duration `doc:"How long a key may be without its job; then a crash left it."`
}

// LedgerConfig says where Redis is.
type LedgerConfig struct {
	Address       string        `doc:"host:port of Redis, or the path of its Unix socket."`
	Username      string        `doc:"ACL user; empty for none."`
	PasswordFile  string        `doc:"File with the user's password; empty for none."`
	CAFile        string        `toml:"ca_file" doc:"Certificates of the server, PEM; TLS when set."`
	CertFile      string        `doc:"Certificate that we show the server, PEM; empty for none."`
	KeyFile       string        `doc:"Private key of cert_file, PEM."`
	Prefix        string        `doc:"What all keys begin with."`
	Timeout       time.Duration `doc:"Longest time for one call."`
	Connections   int           `doc:"Most connections."`
	AllowEviction bool          `doc:"Accept a server that may throw keys away; nodes then declare again whenever it did."`
}

// TestConfig orders faults.
type TestConfig struct {
	Folder string   `doc:"Folder for marks of test hooks."`
	Hooks  []string `doc:"Test hooks: kill@point#n, pause@point#n, mark@point#n."`
}

// DefaultConfig is design section 4's start values, for servers on this host.
func DefaultConfig() Config {
	d, s := dispatch.DefaultConfig(), store.DefaultConfig()
	return Config{
		Params: ParamsConfig{Dir: "/var/lib/proofrack/params"},
		Times: TimesConfig{
			Heartbeat: d.Heartbeat, Lease: d.Lease, LeaderLease: lead.LeaseDefault, Tick: d.Tick, Sweep: d.Sweep,
			ResultWait: d.ResultAckWait, Call: d.CallTimeout,
		},
		Attempts: AttemptsConfig{
			FailedMax: d.Policy.FailedMax, LostMax: d.Policy.LostMax, BackoffMin: d.Policy.BackoffMin,
			BackoffMax: d.Policy.BackoffMax, HandBackPause: d.HandBackPause,
		},
		Schedule: ScheduleConfig{
			QuarantineMin: d.QuarantineMin, QuarantineMax: d.QuarantineMax,
			WorkAhead: d.Scheduler.WorkAhead, SealedAhead: d.Scheduler.SealedAhead,
			DevicePartitionsMax: d.Scheduler.DevicePartitionsMax, SynthSlotsMax: d.Scheduler.SynthSlotsMax,
			SynthQueueMax: d.Scheduler.SynthQueueMax, Ageing: d.Scheduler.Ageing, Patience: d.Scheduler.Patience,
			GuessDefault: d.Scheduler.GuessDefault,
			LoadRate:     d.Scheduler.LoadRate, EvictIdle: d.Scheduler.EvictIdle,
			QuarantineAfter: d.Scheduler.QuarantineAfter,
			HaltWindow:      d.Scheduler.HaltWindow,
		},
		Memory: MemoryConfig{
			Margin: d.Scheduler.PeakMargin, DriftMax: d.Scheduler.DriftMax, Slack: d.Scheduler.PeakSlack,
			StoreEvery: d.LearnedEvery,
		},
		Intake: intake.DefaultConfig(),
		Keep: KeepConfig{
			Retention: s.Retention, RetentionCount: s.RetentionCount, AuditRetention: s.AuditRetention,
			AuditCount: s.AuditCount, OrphanAge: s.OrphanAge, InputRetention: s.InputRetention, KeyGrace: s.KeyGrace,
		},
		Streams: DefaultStreams(),
		Ledger: LedgerConfig{
			Address: "127.0.0.1:6379", Prefix: "c2:ledger", Timeout: time.Second, Connections: 16,
		},
		NATS: natsbus.DefaultConfig(), Service: service.DefaultConfig(), HTTP: service.DefaultHTTPConfig(),
		Web:     web.DefaultConfig(),
		Logs:    telemetry.DefaultLogConfig(),
		Traces:  telemetry.DefaultTraceConfig(),
		Metrics: metrics.DefaultConfig(),
	}
}

// Validate reports all problems of this part: what the sections ask of each other too.
func (c *Config) Validate() error {
	d, s := c.dispatch(), c.store()
	l := lead.Config{Instance: "x", Lease: c.Times.LeaderLease}
	r := c.rack()
	var errs []error
	for _, err := range []error{d.Validate(), s.Validate(), l.Validate(), r.Validate()} {
		if err != nil {
			errs = append(errs, fault.As(fault.Invalid, err))
		}
	}
	if c.Params.Dir == "" {
		errs = append(errs, fault.New(fault.Invalid, "params.dir: must be given"))
	}
	if (c.Ledger.CertFile == "") != (c.Ledger.KeyFile == "") {
		errs = append(errs, fault.New(fault.Invalid, "ledger.cert_file: it needs key_file, and the other way round"))
	}
	return errors.Join(errs...)
}

func (c *Config) dispatch() dispatch.Config {
	d := dispatch.DefaultConfig()
	t, a, p := &c.Times, &c.Attempts, &c.Schedule
	d.Heartbeat, d.Lease, d.Tick, d.Sweep, d.ResultAckWait, d.CallTimeout =
		t.Heartbeat, t.Lease, t.Tick, t.Sweep, t.ResultWait, t.Call
	d.Policy = job.Policy{
		FailedMax: a.FailedMax, LostMax: a.LostMax, BackoffMin: a.BackoffMin, BackoffMax: a.BackoffMax,
	}
	d.HandBackPause = a.HandBackPause
	d.QuarantineMin, d.QuarantineMax = p.QuarantineMin, p.QuarantineMax
	s := &d.Scheduler
	s.WorkAhead, s.SealedAhead, s.DevicePartitionsMax = p.WorkAhead, p.SealedAhead, p.DevicePartitionsMax
	s.SynthSlotsMax, s.SynthQueueMax, s.Ageing = p.SynthSlotsMax, p.SynthQueueMax, p.Ageing
	s.Patience, s.Quotas = p.Patience, p.quotas()
	s.Guess, s.GuessDefault, s.LoadRate, s.EvictIdle = p.Guess, p.GuessDefault, p.LoadRate, p.EvictIdle
	s.QuarantineAfter, s.HaltWindow = p.QuarantineAfter, p.HaltWindow
	m := &c.Memory
	s.PeakMargin, s.DriftMax, s.PeakSlack, d.LearnedEvery = m.Margin, m.DriftMax, m.Slack, m.StoreEvery
	return d
}

// sizes tunes what is learned of attempts' memory.
func (c *Config) sizes() sizes.Config {
	return sizes.Config{Margin: c.Memory.Margin, DriftMax: c.Memory.DriftMax, Slack: c.Memory.Slack}
}

// quotas puts the bounds of each tenant together.
func (c *ScheduleConfig) quotas() map[job.Tenant]scheduler.Quota {
	all := map[job.Tenant]scheduler.Quota{}
	for name, most := range c.QuotaPartitions {
		all[job.Tenant(name)] = scheduler.Quota{Partitions: most}
	}
	for name, most := range c.QuotaBytes {
		q := all[job.Tenant(name)]
		q.Bytes = most
		all[job.Tenant(name)] = q
	}
	return all
}

func (c *Config) store() store.Config {
	k := &c.Keep
	return store.Config{
		KeyGrace: k.KeyGrace, Retention: k.Retention, RetentionCount: k.RetentionCount,
		AuditRetention: k.AuditRetention, AuditCount: k.AuditCount, OrphanAge: k.OrphanAge,
		InputRetention: k.InputRetention, CallTimeout: c.Times.Call, RollbackAfter: store.RollbackAfterDefault,
		BytesMax: int64(c.Streams.JobBytes), SliceBytesMax: int64(c.Streams.SliceBytes),
		ProofBytesMax: int64(c.Streams.ProofBytes),
	}
}

func (c *Config) rack() rack.Config {
	return rack.Config{Heartbeat: c.Times.Heartbeat, Lease: c.Times.Lease}
}

func (c *Config) assemble() assemble.Config {
	find := c.Find
	if find == nil {
		find = catalog.Find
	}
	return assemble.Config{
		ParamsDir: c.Params.Dir, DigestCache: c.Params.DigestCache, Find: find, InputsKept: assemble.InputsKeptDefault,
	}
}

// tenants are the names of the tenants.
func (c *StreamsConfig) tenants() ([]job.Tenant, error) {
	var out []job.Tenant
	for _, name := range c.Tenants {
		t, err := job.ParseTenant(name)
		if err != nil {
			return nil, fmt.Errorf("tenants: %w", err)
		}
		out = append(out, t)
	}
	return out, nil
}
