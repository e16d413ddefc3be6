package gateway

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/net/netutil"
	"google.golang.org/grpc"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/telemetry"
)

// MessageBytesMax bounds a message of the protocol.
const MessageBytesMax = 256 << 20

// smallBytesMax bounds the messages of calls that bring no input.
const smallBytesMax = 64 << 10

// Windows of HTTP/2. What waits for its turn fills the window of its stream and no more; the connection's has room for
// all of them, else they would hold up everybody else.
const (
	streamWindow = 64 << 10
	smallWindow  = 64 << 10 // of the connection, beside the streams'
)

// listen opens the socket or the port. A socket that nobody serves any more is replaced.
func (c *ServeConfig) listen(ctx context.Context) (net.Listener, error) {
	network, address := endpoint(c.Listen)
	var lc net.ListenConfig
	if network == "tcp" {
		l, err := lc.Listen(ctx, network, address)
		if err != nil {
			return nil, fault.As(fault.Invalid, fmt.Errorf("listen on %s: %w", address, err))
		}
		return netutil.LimitListener(l, c.ConnectsMax), nil
	}
	if err := removeDead(ctx, address); err != nil {
		return nil, err
	}
	l, err := lc.Listen(ctx, network, address)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.WithHint(fault.As(fault.Invalid, fmt.Errorf("listen on %s: %w", address, err)),
			"make the folder "+filepath.Dir(address))
	}
	if err != nil {
		return nil, fault.As(fault.Invalid, fmt.Errorf("listen on %s: %w", address, err))
	}
	mode, err := strconv.ParseUint(c.SocketMode, 8, 32)
	if err == nil {
		err = os.Chmod(address, fs.FileMode(mode))
	}
	if err != nil {
		return nil, errors.Join(fault.As(fault.Invalid, fmt.Errorf("set mode of socket: %w", err)), l.Close())
	}
	return netutil.LimitListener(l, c.ConnectsMax), nil
}

// removeDead removes a socket that a program left behind. Anything else under that name is left alone.
func removeDead(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fault.As(fault.Invalid, fmt.Errorf("look at socket: %w", err))
	case info.Mode().Type() != fs.ModeSocket:
		return fault.New(fault.Conflict, "listen on %s: it is there and is no socket", path)
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", path)
	switch {
	case err == nil:
		_ = conn.Close()
		return fault.New(fault.Conflict, "listen on %s: another program serves it", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fault.As(fault.Invalid, fmt.Errorf("remove dead socket: %w", err))
		}
		return nil
	}
	return fault.As(fault.Invalid, fmt.Errorf("look at socket: %w", err))
}

// door is the HTTP side: it decides how much of a request is read and when, before gRPC has it.
type door struct {
	config *ServeConfig
	lanes  *lanes
	traces *traces
	grpc   *grpc.Server
}

func newDoor(config *ServeConfig, e *engine) *door {
	server := grpc.NewServer(grpc.MaxRecvMsgSize(MessageBytesMax), grpc.MaxSendMsgSize(MessageBytesMax),
		grpc.UnaryInterceptor(answering))
	cuzkv1.RegisterProvingEngineServer(server, e)
	return &door{config: config, lanes: e.lanes, traces: e.traces, grpc: server}
}

// server is the HTTP server for unencrypted HTTP/2.
func (d *door) server() *http.Server {
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	return &http.Server{
		Handler: d, Protocols: &protocols, ReadHeaderTimeout: d.config.StallMax, MaxHeaderBytes: 64 << 10,
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: d.config.StreamsMax, MaxReceiveBufferPerStream: streamWindow,
			MaxReceiveBufferPerConnection: smallWindow + d.config.StreamsMax*streamWindow,
			SendPingTimeout:               d.config.StallMax, PingTimeout: pingMax,
		},
	}
}

// pingMax is how long a client may take to answer a ping of a connection that is silent.
const pingMax = 20 * time.Second

// ServeHTTP has gRPC answer a call, once it is its turn.
func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, call := d.traces.open(r)
	defer call.end(nil)
	r = r.WithContext(ctx)
	body := &body{
		r: r.Body, deadline: http.NewResponseController(w).SetReadDeadline, stallMax: d.config.StallMax,
	}
	wrapped := r.URL.Path == cuzkv1.ProvingEngine_Prove_FullMethodName
	if !wrapped && r.URL.Path != cuzkv1.ProvingEngine_SubmitProof_FullMethodName {
		body.left = prefixBytes + smallBytesMax
		d.serve(w, r, body)
		return
	}
	body.left = prefixBytes + peekBytesMax
	head, err := peek(body, wrapped)
	body.left = 0
	if err == nil && head.length <= MessageBytesMax { // what is larger is refused without being read
		body.left = prefixBytes + head.length - int64(len(head.bytes))
	}
	if body.left > 0 {
		waited := call.begin(spanWaitUnread, telemetry.Internal)
		t, err := d.lanes.of(head).take(r.Context())
		waited.end(nil)
		if err != nil {
			return // the client went away
		}
		h := &held{turn: t}
		defer func() { h.take().end() }()
		r = r.WithContext(context.WithValue(r.Context(), heldKey{}, h))
	}
	d.serve(w, r, &rejoined{io.MultiReader(bytes.NewReader(head.bytes), body), body})
}

func (d *door) serve(w http.ResponseWriter, r *http.Request, b io.ReadCloser) {
	r.Body = b
	d.grpc.ServeHTTP(w, r)
}

// body is a request's body, of which no more is read than is wanted: gRPC takes into memory all that it can get. A
// client that sends nothing for too long is cut off.
type body struct {
	r        io.ReadCloser
	left     int64
	deadline func(time.Time) error
	stallMax time.Duration
}

// Read reads what is wanted.
func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.EOF
	}
	if err := b.deadline(time.Now().Add(b.stallMax)); err != nil {
		return 0, fmt.Errorf("bound the wait for a client: %w", err)
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	if b.left <= 0 || err != nil {
		_ = b.deadline(time.Time{}) // the call itself may take as long as it likes
	}
	return n, err
}

// rejoined is a body whose beginning was read already.
type rejoined struct {
	io.Reader
	io.Closer
}

// Close closes the body.
func (b *body) Close() error { return b.r.Close() }
