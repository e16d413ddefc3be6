package coordinator

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/proofrack/proofrack/coordinator/internal/api"
	"github.com/proofrack/proofrack/coordinator/internal/assemble"
	"github.com/proofrack/proofrack/coordinator/internal/dispatch"
	"github.com/proofrack/proofrack/coordinator/internal/intake"
	"github.com/proofrack/proofrack/coordinator/internal/lead"
	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/coordinator/internal/web"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/flight"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/ledger"
	"github.com/proofrack/proofrack/shared/service"
	"github.com/proofrack/proofrack/shared/support"
	"github.com/proofrack/proofrack/shared/telemetry"
	"github.com/proofrack/proofrack/shared/wire"
)

// Run is a coordinator until ctx ends or the Control that it carries (package service) asks to stop. It waits for
// servers that are away, for as long as it takes.
func Run(ctx context.Context, config Config) error {
	if config.Connect == nil {
		config.Connect = connectNATS(&config)
	}
	if config.OpenLedger == nil {
		config.OpenLedger = openRedis(&config)
	}
	health := service.NewHealth()
	mux := http.NewServeMux()
	health.Mount(mux)
	recorder, err := flight.New(flight.Config{Process: "coordinator", Resident: flight.Self})
	if err != nil {
		return err
	}
	reports := func() []flight.Report { return []flight.Report{recorder.Report()} }
	flight.Mount(mux, func() flight.Status { return flight.Status{Reports: reports()} }, recorder.Points)
	c := &coordinator{config: config, health: health, instance: uuid.NewString()}
	c.log = config.Log.With().Str("instance", c.instance).Logger()
	registry := c.meters(reports)
	c.numbers = registry.Text
	registry.Mount(mux)
	if c.web, err = web.New(config.Web, c.log); err != nil {
		return err
	}
	group := service.NewGroup(config.Service, config.Log, health)
	return group.Run(ctx,
		service.HTTP(config.HTTP, mux, func(a net.Addr) { c.log.Info().Stringer("address", a).Msg("health is served") }),
		registry.Service(),
		c.page(),
		service.Loop("coordinator", c.run))
}

// page serves the web page.
func (c *coordinator) page() service.Service {
	s := service.HTTP(service.HTTPConfig{Listen: c.config.Web.Listen}, c.web.Handler(), func(a net.Addr) {
		c.log.Info().Stringer("address", a).Msg("the web page is served")
		if c.config.WebBound != nil {
			c.config.WebBound(a)
		}
	})
	s.Name = "web"
	return s
}

// waiting paces tries to reach a server: for ever.
func waiting() service.RetryConfig {
	r := service.DefaultRetryConfig()
	r.Within = 0
	return r
}

// open connects to the servers and sets up what is to be there.
func (c *coordinator) open(ctx context.Context) (err error) {
	c.health.Set("bus", errors.New("not connected to NATS yet"))
	c.health.Set("ledger", errors.New("not connected to Redis yet"))
	if c.hooks, err = hook.Parse(c.config.Test.Folder, c.config.Test.Hooks); err != nil {
		return err
	}
	keep := c.config.store()
	for _, misfit := range keep.Misfits(c.config.Intake.LiveJobsMax) {
		c.log.Warn().Str("settings", misfit).Msg("settings do not fit each other")
	}
	c.bus, err = service.Retry(ctx, waiting(), c.log, "connect to nats", c.config.Connect)
	if err != nil {
		return err
	}
	c.shown.bus.Store(&c.bus)
	_, err = service.Retry(ctx, waiting(), c.log, "set up nats", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, c.bus.Setup(ctx, c.config.Streams.Topology())
	})
	if err != nil {
		return err
	}
	c.web.Connect(c.bus)
	c.health.Set("bus", nil)
	c.health.Ready("nats", func(context.Context) error {
		if !c.bus.Connected() {
			return errors.New("not connected to NATS")
		}
		return nil
	})
	c.store, err = service.Retry(ctx, waiting(), c.log, "read jobs", func(ctx context.Context) (*store.Store, error) {
		return store.Open(ctx, c.bus, c.config.store(), c.log)
	})
	if err != nil {
		return err
	}
	c.ledger, err = service.Retry(ctx, waiting(), c.log, "open ledger", c.config.OpenLedger)
	if err != nil {
		return err
	}
	c.health.Set("ledger", nil)
	c.health.Ready("redis", func(ctx context.Context) error {
		_, err := c.ledger.Nodes(ctx)
		return err
	})
	return nil
}

// coordinator is a running one.
type coordinator struct {
	config   Config
	log      logger
	health   *service.Health
	instance string
	hooks    *hook.Points
	meter    *dispatch.Meter
	shown    shown
	numbers  func() string // its metrics, as text

	bus      bus.Bus
	ledger   ledger.Ledger
	store    *store.Store
	nodes    *rack.Registry
	queues   *queues
	verifier *assemble.Verifier
	web      *web.Server
	ability  *ability
	elector  *lead.Elector
}

func (c *coordinator) close() {
	if c.store != nil {
		c.store.Close()
	}
	if c.ledger != nil {
		if err := c.ledger.Close(); err != nil {
			c.log.Debug().Err(err).Msg("ledger not closed well")
		}
	}
	if c.bus != nil {
		c.bus.Close()
	}
}

func (c *coordinator) run(ctx context.Context) (err error) {
	defer c.close()
	if err := c.open(ctx); err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was stopped before it was open
		}
		return err
	}
	if err := c.prepare(ctx); err != nil {
		return err
	}
	stopBeats, err := c.bus.Subscribe(wire.AllBeats, c.takeBeat)
	if err != nil {
		return fmt.Errorf("subscribe to beats: %w", err)
	}
	defer stopBeats()
	stopTelling, err := c.bus.Subscribe(wire.AdminSubject(wire.AdminTell), func(m bus.Message) { c.tell(ctx, m) })
	if err != nil {
		return fmt.Errorf("subscribe to questions: %w", err)
	}
	defer stopTelling()
	serving := &api.Instance{
		Store: c.store, Nodes: c.nodes,
		Intake: intake.New(c.config.Intake, store.Slices{Store: c.store}, uploads{c.store},
			store.Records{Store: c.store, Tenants: len(c.config.Streams.Tenants), Hooks: c.hooks}, &gate{c: c}, time.Now),
		// Every tenant may have all its requests in hand, and so may one that is no more configured.
		RequestsMax: c.config.Intake.SubmitBurst * (len(c.config.Streams.Tenants) + 1),
		Hooks:       c.hooks,
		Tracer:      c.config.Tracer,
		Carrier:     telemetry.NewCarrier(c.log, brokenTraceEvery),
	}
	stopServing, err := c.bus.Serve(serving.Service())
	if err != nil {
		return fmt.Errorf("serve requests: %w", err)
	}
	defer stopServing()
	c.log.Info().Msg("coordinator works")
	var others sync.WaitGroup
	defer others.Wait()
	others.Go(func() { c.expireNodes(ctx) })
	others.Go(func() { c.queues.run(ctx) })
	others.Go(func() { c.ability.run(ctx, c.config.Times.LeaderLease/2) })
	if err := c.elector.Run(ctx, c.lead); ctx.Err() == nil {
		return err
	}
	return nil
}

func (c *coordinator) prepare(ctx context.Context) (err error) {
	if c.nodes, err = rack.New(c.config.rack()); err != nil {
		return err
	}
	c.queues = newQueues(c.bus, c.config.Times.Heartbeat, c.log)
	if c.verifier, err = assemble.New(c.config.assemble(), c.store); err != nil {
		return err
	}
	c.ability = newAbility(c)
	c.ability.look(ctx)
	c.health.Ready("parameters", c.ability.check)
	kv, err := c.bus.KV(ctx, wire.BucketLead)
	if err != nil {
		return fmt.Errorf("open bucket %s: %w", wire.BucketLead, err)
	}
	c.elector, err = lead.New(kv, lead.Config{
		Instance: c.instance, Lease: c.config.Times.LeaderLease, Unable: c.ability.unable,
	}, c.log)
	return err
}

// lead is one reign.
func (c *coordinator) lead(ctx context.Context, reign lead.Reign) error {
	tenants, err := c.config.Streams.tenants()
	if err != nil {
		return err
	}
	leader, err := dispatch.New(c.config.dispatch(), dispatch.Parts{
		Bus: c.bus, Store: c.store, Nodes: c.nodes, Ledger: c.ledger, Verifier: c.verifier, Hooks: c.hooks, Log: c.log,
		Tenants: tenants, Tracer: c.config.Tracer, Meter: c.meter,
	}, reign)
	if err != nil {
		return err
	}
	c.shown.leader.Store(leader)
	defer c.shown.leader.Store(nil)
	leading := &api.Leading{
		Store: c.store, Leader: leader, Instance: c.instance, Bus: c.bus,
		Tell: func() ([]byte, error) { return support.Of(ctx).Report(c.numbers()).Pack() },
	}
	stop, err := c.bus.Serve(leading.Service())
	if err != nil {
		return fmt.Errorf("serve the leader's requests: %w", err)
	}
	defer stop()
	return leader.Run(ctx)
}

// brokenTraceEvery bounds the lines about requests whose trace context is broken.
const brokenTraceEvery = time.Minute

// takeBeat takes a beat of a worker.
func (c *coordinator) takeBeat(m bus.Message) {
	var b wire.Beat
	if err := wire.DecodeBeat(m.Data, &b); err != nil {
		c.log.Warn().Err(err).Str("subject", m.Subject).Msg("beat not understood")
		return
	}
	if wire.Token(m.Subject, 2) != string(b.Node) {
		c.log.Warn().Str("subject", m.Subject).Str("c2.node.id", string(b.Node)).Msg("beat names another node")
		return
	}
	c.queues.want(&b, time.Now())
	c.nodes.Beat(&b, time.Now())
}

// expireNodes drops nodes that are silent.
func (c *coordinator) expireNodes(ctx context.Context) {
	ticker := time.NewTicker(c.config.Times.Tick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			for _, name := range c.nodes.Expire(now) {
				c.log.Warn().Str("c2.node.id", string(name)).Msg("node is gone: no beat for a lease")
			}
		}
	}
}

// errBusAway is why intake is closed while the bus is away.
var errBusAway = fault.New(fault.Transient, "not connected to NATS")
