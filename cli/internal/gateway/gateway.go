package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/proof/catalog"
	"github.com/proofrack/proofrack/shared/service"
)

// Run is a gateway until ctx ends or the Control that it carries (package service) asks to stop. It serves from the
// start: what a rack that is away cannot take is held.
func Run(ctx context.Context, config Config) error {
	tenant, err := config.tenant()
	if err != nil {
		return err
	}
	kind, err := catalog.FindKind(config.Test.Kind)
	if err != nil {
		return fault.As(fault.Invalid, err)
	}
	if config.Connect == nil {
		config.Connect = connectTo(config.NATS, "")
	}
	if config.ConnectOperator == nil && config.Gateway.OperatorCredsFile != "" {
		config.ConnectOperator = connectTo(config.NATS, config.Gateway.OperatorCredsFile)
	}
	g := &gateway{config: config, health: service.NewHealth(), rack: newRack(tenant)}
	leaving, leave := context.WithCancel(context.Background())
	defer leave()
	g.leave = leave
	m := newMeters(&config)
	g.engine = &engine{
		config: &g.config, rack: g.rack, lanes: newLanes(&config), meters: m, begun: time.Now(), leaving: leaving,
		submissions: newSubmissions(&g.config, g.rack, kind, m), traces: newTraces(&config),
	}
	if config.Forward.To != "" {
		if g.engine.upstream, err = openUpstream(&g.config.Forward, config.Log); err != nil {
			return err
		}
		defer func() { _ = g.engine.upstream.conn.Close() }()
		g.health.Ready("upstream", func(context.Context) error { return g.engine.upstream.healthy() })
	}
	g.health.Ready("rack", func(context.Context) error { return g.rack.connected() })
	g.sources(m)
	mux := http.NewServeMux()
	g.health.Mount(mux)
	m.registry.Mount(mux)
	group := service.NewGroup(config.Service, config.Log, g.health)
	return group.Run(ctx,
		service.HTTP(config.HTTP, mux, func(a net.Addr) {
			config.Log.Info().Stringer("address", a).Msg("health is served")
		}),
		m.registry.Service(),
		service.Loop("rack", g.connect),
		service.Service{Name: "gateway", Run: g.serve})
}

// gateway is a running one.
type gateway struct {
	config Config
	health *service.Health
	rack   *rack
	engine *engine
	leave  context.CancelFunc // ends waiting calls
}

// connect connects to the rack, for as long as it takes, and stays until ctx ends.
func (g *gateway) connect(ctx context.Context) error {
	retry := service.DefaultRetryConfig()
	retry.Within = 0
	b, err := service.Retry(ctx, retry, g.config.Log, "connect to nats", g.config.Connect)
	if err != nil {
		return ended(ctx, err)
	}
	defer b.Close()
	var operator bus.Bus
	switch {
	case g.config.ConnectOperator != nil:
		operator, err = service.Retry(ctx, retry, g.config.Log, "connect to nats as operator", g.config.ConnectOperator)
		if err != nil {
			return ended(ctx, err)
		}
		defer operator.Close()
	case g.config.operates():
		operator = b
	}
	end, err := g.rack.open(b, operator)
	if err != nil {
		return err
	}
	defer end()
	g.config.Log.Info().Str("tenant", string(g.rack.tenant)).Bool("operator", operator != nil).Msg("rack is connected")
	<-ctx.Done()
	return nil
}

// ended is nil when an error is only that ctx has ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// serve answers clients until the program is to stop.
func (g *gateway) serve(ctx context.Context, c *service.Control) error {
	listener, err := g.config.Gateway.listen(ctx)
	if err != nil {
		return err
	}
	door := newDoor(&g.config.Gateway, g.engine)
	server := door.server()
	var watching sync.WaitGroup
	defer watching.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g.announce(listener.Addr())
	if u := g.engine.upstream; u != nil {
		watching.Go(func() { u.watch(ctx) })
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	c.Ready()
	select {
	case err := <-served:
		return fmt.Errorf("serve %s: %w", g.config.Gateway.Listen, err)
	case <-c.Stopping():
	}
	g.config.Log.Info().Msg("no new clients; calls end")
	watching.Go(func() {
		select {
		case <-c.HandingBack():
		case <-ctx.Done():
		}
		g.leave()
		g.engine.submissions.cancel()
	})
	err = server.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, server.Close())
	}
	cancel()
	g.engine.submissions.end()
	door.grpc.Stop()
	<-served
	return err
}

// announce says where it listens, and loudly what a client would lose.
func (g *gateway) announce(at net.Addr) {
	log := &g.config.Log
	log.Info().Stringer("address", at).Str("tenant", string(g.rack.tenant)).Msg("gateway serves cuzk.v1.ProvingEngine")
	if g.engine.upstream == nil {
		log.Warn().Msg("NOTHING IS FORWARDED (forward.to is empty): a client that sends all its proofs here LOSES ITS " +
			"BLOCKS (WinningPoSt), is FAULTED AND PENALISED (WindowPoSt) and cannot finish SnapDeals updates: they get " +
			"UNIMPLEMENTED. Only PoRep is proved")
		return
	}
	log.Info().Str("upstream", g.config.Forward.To).Msg("everything but PoRep is forwarded")
}
