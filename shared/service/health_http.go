package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
)

// HTTPConfig says where a process answers over HTTP: on loopback, or on a network of the rack's own.
type HTTPConfig struct {
	Listen string `doc:"Address:port of /livez and /readyz; port 0 is a free one, \"\" is off. No access control!"`
}

// DefaultHTTPConfig listens on a free port of loopback.
func DefaultHTTPConfig() HTTPConfig { return HTTPConfig{Listen: "127.0.0.1:0"} }

// Validate demands host:port with an address, not a name that could mean another host tomorrow.
func (c *HTTPConfig) Validate() error {
	if c.Listen == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fault.New(fault.Invalid, "listen: %q is not address:port", c.Listen)
	}
	if host != "" && host != "localhost" && net.ParseIP(host) == nil {
		return fault.New(fault.Invalid, "listen: %q is not an address", host)
	}
	return nil
}

// Mount adds GET /livez and GET /readyz: 200 when all holds, else 503, with the checks and their reasons as JSON.
func (h *Health) Mount(mux *http.ServeMux) {
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, r *http.Request) { respond(w, h.Liveness(r.Context())) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) { respond(w, h.Readiness(r.Context())) })
}

func respond(w http.ResponseWriter, state State) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if !state.OK {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	json.NewEncoder(w).Encode(state) //nolint:errcheck // the client went away
}

// Bounds of one connection.
const (
	httpHeaderBytesMax = 16 << 10
	httpReadWithin     = 5 * time.Second
	httpWriteWithin    = 30 * time.Second
	httpIdleWithin     = time.Minute
)

// HTTP is a service that serves a handler; with an empty address it does nothing. It tells the address it got.
func HTTP(config HTTPConfig, handler http.Handler, bound func(net.Addr)) Service {
	return Service{Name: "http", Run: func(ctx context.Context, c *Control) error {
		if config.Listen == "" {
			c.Ready()
			<-c.Stopping()
			return nil
		}
		var lc net.ListenConfig
		listener, err := lc.Listen(ctx, "tcp", config.Listen)
		if err != nil {
			return fault.As(fault.Invalid, fmt.Errorf("listen on %s: %w", config.Listen, err))
		}
		server := &http.Server{
			Handler: handler, ReadHeaderTimeout: httpReadWithin, ReadTimeout: httpReadWithin, WriteTimeout: httpWriteWithin,
			IdleTimeout: httpIdleWithin, MaxHeaderBytes: httpHeaderBytesMax,
			BaseContext: func(net.Listener) context.Context { return ctx },
		}
		if bound != nil {
			bound(listener.Addr())
		}
		served := make(chan error, 1)
		go func() { served <- server.Serve(listener) }()
		c.Ready()
		select {
		case err := <-served:
			return fmt.Errorf("serve http on %s: %w", config.Listen, err)
		case <-c.Stopping():
		}
		grace, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		err = server.Shutdown(grace)
		if errors.Is(err, context.DeadlineExceeded) {
			err = server.Close() // a client holds its connection
		}
		<-served
		return err
	}}
}
