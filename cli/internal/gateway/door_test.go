package gateway

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/proofrack/proofrack/cli/internal/gateway/cuzkv1"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/service"
)

// framed is a message as gRPC sends it.
func framed(compressed byte, message []byte) []byte {
	out := binary.BigEndian.AppendUint32([]byte{compressed}, uint32(len(message)))
	return append(out, message...)
}

func TestPeekFindsTheKind(t *testing.T) {
	t.Parallel()
	long := bytes.Repeat([]byte{7}, 100_000)
	for name, c := range map[string]struct {
		message    []byte
		compressed byte
		wrapped    bool
		kind       cuzkv1.ProofKind
		clear      bool
	}{
		"as written":       {handMade(field{1, "porep-1000-1"}, field{2, 1}, field{10, long}), 0, false, 1, true},
		"wrapped":          {handMade(field{1, []field{{1, "w"}, {2, 4}, {11, long}}}), 0, true, 4, true},
		"short":            {handMade(field{2, 3}), 0, false, 3, true},
		"without a name":   {handMade(field{2, 2}, field{10, long}), 0, false, 2, true},
		"behind others":    {handMade(field{5, 2}, field{3, 2048}, field{2, 2}), 0, false, 2, true},
		"behind its input": {handMade(field{10, long}, field{2, 2}), 0, false, 0, false},
		"none":             {handMade(field{1, "x"}, field{10, long}), 0, false, 0, false},
		"empty":            {nil, 0, false, 0, false},
		"empty and wrapped": {
			handMade(field{1, []byte{}}), 0, true, 0, false},
		"compressed":          {handMade(field{2, 2}), 1, false, 0, false},
		"of a kind to come":   {handMade(field{2, 9}), 0, false, 9, true},
		"of a kind too large": {handMade(field{2, uint64(1 << 40)}), 0, false, 0, false},
		"of a bad form":       {[]byte{0xff, 0xff, 0xff}, 0, false, 0, false},
	} {
		text := framed(c.compressed, c.message)
		rest := bytes.NewReader(text)
		h, err := peek(rest, c.wrapped)
		if err != nil || h.kind != c.kind || h.clear != c.clear || h.length != int64(len(c.message)) {
			t.Errorf("%s: %+v, %v", name, h.kind, err)
		}
		left, err := io.ReadAll(rest)
		if err != nil || !bytes.Equal(append(h.bytes, left...), text) {
			t.Errorf("%s: bytes are lost", name)
		}
	}
	for _, cut := range []int{0, 3, 5, 20} {
		if _, err := peek(bytes.NewReader(framed(0, long)[:cut]), false); !errors.Is(err, errNoMessage) {
			t.Errorf("%d bytes: %v", cut, err)
		}
	}
}

func FuzzPeek(f *testing.F) {
	for _, g := range goldens() {
		f.Add(framed(0, g.bytes), true)
		f.Add(framed(0, g.bytes), false)
	}
	f.Fuzz(func(t *testing.T, text []byte, wrapped bool) {
		h, err := peek(bytes.NewReader(text), wrapped)
		if !bytes.HasPrefix(text, h.bytes) || len(h.bytes) > prefixBytes+peekBytesMax {
			t.Fatalf("%d bytes that are not the text's", len(h.bytes))
		}
		if err != nil || int64(len(h.bytes)) != prefixBytes+h.length {
			return
		}
		// What is looked at whole is understood as the generated code does, but for fields given twice.
		var r cuzkv1.SubmitProofRequest
		if h.clear && !wrapped && bytes.Count(h.bytes, []byte{fieldProofKind << 3}) == 1 &&
			proto.Unmarshal(h.bytes[prefixBytes:], &r) == nil && r.ProofKind != h.kind {
			t.Fatalf("kind %d, generated code says %d", h.kind, r.ProofKind)
		}
	})
}

// A body of 60 MB, as a 32 GiB sector's, arrives whole.
func TestLargeBodyArrives(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	r := request(t, "large", "2KiB-v1_1")
	want := bytes.TrimSuffix(r.VanillaProof, []byte("}"))
	r.VanillaProof = append(append(want, bytes.Repeat([]byte(" "), 60<<20)...), '}')
	s, err := g.client.SubmitProof(g.ctx(), r)
	check(t, err)
	small, err := g.client.SubmitProof(g.ctx(), request(t, "large", "2KiB-v1_1"))
	check(t, err)
	if s.JobId != small.JobId {
		t.Error("white space makes another job")
	}
}

// What is over the protocol's limit is refused without being read; so is what brings no input but is large.
func TestTooLargeIsRefusedUnread(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	stream, err := g.conn.NewStream(g.ctx(), &grpc.StreamDesc{}, cuzkv1.ProvingEngine_SubmitProof_FullMethodName,
		grpc.ForceCodec(rawCodec{}), grpc.MaxCallSendMsgSize(1<<30))
	check(t, err)
	large := make([]byte, MessageBytesMax+1)
	_ = stream.SendMsg(&large) // ends when the server has answered
	var out []byte
	if err := stream.RecvMsg(&out); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("%v", err)
	}
	small := handMade(field{1, bytes.Repeat([]byte("x"), smallBytesMax)})
	err = g.conn.Invoke(g.ctx(), cuzkv1.ProvingEngine_AwaitProof_FullMethodName, &small, &out,
		grpc.ForceCodec(rawCodec{}))
	if err == nil {
		t.Error("a large name of a job was read")
	}
}

// Of ten large requests no more than two are read at once; the others wait at their client, and all are served.
func TestRequestsWaitUnreadForTheirTurn(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *Config) { c.Gateway.BodiesMax = 2 })
	hold := make(chan struct{})
	g.rack.refuse = func(int) error { <-hold; return nil }
	const count = 10
	var sent []<-chan answer[*cuzkv1.SubmitProofResponse]
	for i := range count {
		r := request(t, string(rune('a'+i)), "2KiB-v1_1")
		r.VanillaProof = append(r.VanillaProof, bytes.Repeat([]byte(" "), 1<<20)...)
		sent = append(sent, beside(func() (*cuzkv1.SubmitProofResponse, error) {
			return g.client.SubmitProof(g.ctx(), r)
		}))
	}
	for {
		s, err := g.client.GetStatus(g.ctx(), &cuzkv1.GetStatusRequest{})
		check(t, err)
		m, err := g.client.GetMetrics(g.ctx(), &cuzkv1.GetMetricsRequest{})
		check(t, err)
		if s.Queues[0].Pending == count && strings.Contains(m.PrometheusText, `c2_gateway_submitting{role="gateway"} 2`) {
			if !strings.Contains(m.PrometheusText, `unread{kind="POREP_SEAL_COMMIT",role="gateway"} 8`) {
				t.Error(m.PrometheusText)
			}
			break
		}
	}
	close(hold)
	for _, s := range sent {
		if a := <-s; a.err != nil {
			t.Error(a.err)
		}
	}
	if len(g.rack.order) != count {
		t.Errorf("%d jobs", len(g.rack.order))
	}
}

// stuck begins a PoRep request by hand and sends no more of it than its beginning. The channel closes when the server
// ends it.
func stuck(t *testing.T, target string) (net.Conn, <-chan struct{}) {
	t.Helper()
	network, address := endpoint(target)
	conn, err := net.Dial(network, address)
	check(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = io.WriteString(conn, http2.ClientPreface)
	check(t, err)
	framer := http2.NewFramer(conn, conn)
	check(t, framer.WriteSettings())
	var headers bytes.Buffer
	encoder := hpack.NewEncoder(&headers)
	for _, h := range [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", cuzkv1.ProvingEngine_SubmitProof_FullMethodName},
		{":authority", "x"}, {"content-type", "application/grpc"}, {"te", "trailers"},
	} {
		check(t, encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]}))
	}
	check(t, framer.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: headers.Bytes(), EndHeaders: true,
	}))
	begin := framed(0, handMade(field{1, "stuck"}, field{2, 1}, field{10, make([]byte, 10_000)}))[:8000]
	check(t, framer.WriteData(1, false, begin))
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		for {
			f, err := framer.ReadFrame()
			if err != nil || f.Header().StreamID == 1 && f.Header().Type != http2.FrameWindowUpdate {
				return
			}
		}
	}()
	return conn, cut
}

// A client that stops in the middle of its input does not keep its turn.
func TestStuckClientLosesItsTurn(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *Config) { c.Gateway.BodiesMax, c.Gateway.StallMax = 1, 4*time.Second })
	if _, err := g.client.GetMetrics(g.ctx(), &cuzkv1.GetMetricsRequest{}); err != nil {
		t.Fatal(err)
	}
	_, cut := stuck(t, g.config.Gateway.Listen)
	<-cut
	if _, err := g.client.SubmitProof(g.ctx(), request(t, "a", "2KiB-v1_1")); err != nil {
		t.Error(err)
	}
}

func TestGoneClientLosesItsTurn(t *testing.T) {
	t.Parallel()
	g := start(t, func(c *Config) { c.Gateway.BodiesMax = 1 })
	if _, err := g.client.GetMetrics(g.ctx(), &cuzkv1.GetMetricsRequest{}); err != nil {
		t.Fatal(err)
	}
	conn, _ := stuck(t, g.config.Gateway.Listen)
	for {
		s, err := g.client.GetStatus(g.ctx(), &cuzkv1.GetStatusRequest{})
		check(t, err)
		if s.Queues[0].Pending == 1 {
			break
		}
	}
	check(t, conn.Close())
	if _, err := g.client.SubmitProof(g.ctx(), request(t, "a", "2KiB-v1_1")); err != nil {
		t.Error(err)
	}
}

func TestSocketOfADeadGatewayIsReplacedAndNothingElse(t *testing.T) {
	t.Parallel()
	folder := socketFolder(t)
	config := DefaultConfig().Gateway
	path := filepath.Join(folder, "s")
	config.Listen = "unix://" + path
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	check(t, err)
	dead.SetUnlinkOnClose(false)
	check(t, dead.Close())
	l, err := config.listen(t.Context())
	check(t, err)
	info, err := os.Stat(path)
	check(t, err)
	if info.Mode().Perm() != 0o660 {
		t.Errorf("mode %s", info.Mode())
	}
	if _, err := config.listen(t.Context()); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a socket that is served: %v", err)
	}
	check(t, l.Close())
	check(t, os.WriteFile(path, []byte("mine"), 0o600))
	if _, err := config.listen(t.Context()); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a file: %v", err)
	}
	config.Listen = "unix://" + filepath.Join(folder, "none", "s")
	if _, err := config.listen(t.Context()); fault.KindOf(err) != fault.Invalid ||
		fault.ReportOf("", err).Hint == "" {
		t.Errorf("no folder: %v", err)
	}
}

func TestLoopbackPortServes(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(t, err)
	address := l.Addr().String()
	check(t, l.Close())
	g := start(t, func(c *Config) { c.Gateway.Listen = address })
	proved := g.prove(g.ctx(), request(t, "a", "2KiB-v1_1"))
	g.rack.end(g.rack.accepted(1), job.Done, nil)
	if a := <-proved; a.err != nil {
		t.Error(a.err)
	}
}

// Asked to stop, a gateway takes no new clients and lets calls end.
func TestStoppingLetsCallsEnd(t *testing.T) {
	t.Parallel()
	g := start(t, nil)
	proved := g.prove(g.ctx(), request(t, "a", "2KiB-v1_1"))
	id := g.rack.accepted(1)
	g.control.Stop(service.Drain, "test")
	for !strings.Contains(g.log.String(), "no new clients") {
		time.Sleep(time.Millisecond)
	}
	g.rack.end(id, job.Done, nil)
	if a := <-proved; a.err != nil || a.value.Result.Status != cuzkv1.AwaitProofResponse_COMPLETED {
		t.Errorf("%v", a)
	}
	g.stop(service.Drain)
	_, path := endpoint(g.config.Gateway.Listen)
	if _, err := os.Lstat(path); !os.IsNotExist(err) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Config){
		"listen":       func(c *Config) { c.Gateway.Listen = "0.0.0.0:9820" },
		"whole path":   func(c *Config) { c.Gateway.Listen = "unix://s" },
		"100 bytes":    func(c *Config) { c.Gateway.Listen = "unix:///" + strings.Repeat("x", 100) },
		"loopback":     func(c *Config) { c.Gateway.Listen = "localhost:9820" },
		"socket_mode":  func(c *Config) { c.Gateway.SocketMode = "rw" },
		"file mode":    func(c *Config) { c.Gateway.SocketMode = "0060" },
		"tenant":       func(c *Config) { c.Gateway.Tenant = "A b" },
		"bodies_max":   func(c *Config) { c.Gateway.BodiesMax = 0 },
		"streams_max":  func(c *Config) { c.Gateway.StreamsMax = 1 << 20 },
		"connects_max": func(c *Config) { c.Gateway.ConnectsMax = -1 },
		"stall_max":    func(c *Config) { c.Gateway.StallMax = 0 },
		"hold_max":     func(c *Config) { c.Gateway.HoldMax = 0 },
		"answer_max":   func(c *Config) { c.Gateway.AnswerMax = 0 },
		"load_max":     func(c *Config) { c.Gateway.LoadMax = 0 },
		"to:":          func(c *Config) { c.Forward.To = "somewhere" },
		"to: \"unix":   func(c *Config) { c.Forward.To = "unix://x" },
		"must be 1":    func(c *Config) { c.Forward.BodiesMax = 0 },
		"check_every":  func(c *Config) { c.Forward.CheckEvery = 0 },
		"check_max":    func(c *Config) { c.Forward.CheckMax = 0 },
		"connect_wait": func(c *Config) { c.Forward.ConnectWait = 0 },
		"round":        func(c *Config) { c.Forward.To = c.Gateway.Listen },
		"kind":         func(c *Config) { c.Test.Kind = "post" },
	} {
		c := DefaultConfig()
		change(&c)
		err := errors.Join(c.Gateway.Validate(), c.Forward.Validate(), c.Test.Validate(), c.Validate())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

func TestErrorsHaveCodes(t *testing.T) {
	t.Parallel()
	for _, kind := range fault.Kinds() {
		want := map[fault.Kind]codes.Code{
			fault.Invalid: codes.InvalidArgument, fault.Conflict: codes.FailedPrecondition, fault.NotFound: codes.NotFound,
			fault.Exhausted: codes.ResourceExhausted, fault.Transient: codes.Unavailable, fault.Lost: codes.Internal,
			fault.Corrupt: codes.DataLoss, fault.Device: codes.Internal, fault.Internal: codes.Internal,
			fault.Cancelled: codes.Canceled,
		}[kind]
		err := rpcError(fault.WithHint(fault.New(kind, "text"), "do so"))
		if status.Code(err) != want || status.Convert(err).Message() != "text; do so" {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if err := rpcError(context.DeadlineExceeded); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("%v", err)
	}
	if rpcError(nil) != nil || status.Code(rpcError(errLeaving())) != codes.Unavailable {
		t.Error("errors of the protocol are changed")
	}
}
