package gateway

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/client"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// askPause is between tries to be heard by the rack.
const askPause = 500 * time.Millisecond

// rack is the connection to one. Before it is made, calls wait.
type rack struct {
	tenant job.Tenant
	made   chan struct{} // closed when it is made

	// Valid once made is closed.
	bus      bus.Bus
	client   *client.Client
	operator bus.Bus // nil when the gateway has no right to operate

	completed, failed atomic.Uint64 // jobs of the tenant that ended while this gateway was connected
}

func newRack(tenant job.Tenant) *rack { return &rack{tenant: tenant, made: make(chan struct{})} }

// open makes what the connection is used for.
func (r *rack) open(b, operator bus.Bus) (end func(), err error) {
	var stops []func()
	stop := func() {
		for _, s := range stops {
			s()
		}
	}
	for what, counter := range map[string]*atomic.Uint64{"done": &r.completed, "failed": &r.failed} {
		s, err := b.Subscribe(wire.EventSubject(r.tenant, "*", what), func(bus.Message) { counter.Add(1) })
		if err != nil {
			stop()
			return nil, fmt.Errorf("watch jobs: %w", err)
		}
		stops = append(stops, s)
	}
	r.bus, r.operator, r.client = b, operator, client.New(b, r.tenant)
	close(r.made)
	return stop, nil
}

// wait gives the client once there is a connection.
func (r *rack) wait(ctx context.Context) (*client.Client, error) {
	if c, err := r.now(); err == nil {
		return c, nil
	}
	select {
	case <-r.made:
		return r.client, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("connect to the rack: %w", context.Cause(ctx))
	}
}

// now gives the client if there is a connection.
func (r *rack) now() (*client.Client, error) {
	select {
	case <-r.made:
		return r.client, nil
	default:
		return nil, fault.New(fault.Transient, "not connected to the rack yet")
	}
}

// connected tells whether the server is there now.
func (r *rack) connected() error {
	if _, err := r.now(); err != nil {
		return err
	}
	if !r.bus.Connected() {
		return fault.New(fault.Transient, "not connected to NATS")
	}
	return nil
}

// asOperator gives the bus for an operator's requests.
func (r *rack) asOperator() (bus.Bus, error) {
	if _, err := r.now(); err != nil {
		return nil, rpcError(err)
	}
	if r.operator == nil {
		return nil, status.Error(codes.PermissionDenied,
			"this is an operator's: the gateway has a tenant's credential only (gateway.operator_creds_file)")
	}
	return r.operator, nil
}

// connectTo is how a gateway connects by its settings, as somebody.
func connectTo(config natsbus.Config, creds string) func(context.Context) (bus.Bus, error) {
	if creds != "" {
		config.CredsFile, config.NKeySeedFile, config.InboxPrefix = creds, "", ""
	}
	return func(ctx context.Context) (bus.Bus, error) { return natsbus.Connect(ctx, config) }
}
