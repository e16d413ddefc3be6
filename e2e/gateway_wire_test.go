package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// The protocol cuzk.v1 by hand: messages are made and read from field numbers, with nothing generated.

// field is one field of a message: a number (varint), or text, bytes or a message (length and content).
type field struct {
	number int
	value  any // int, string, []byte or []field
}

func handMade(fields ...field) []byte {
	var out []byte
	varint := func(v uint64) {
		for ; v >= 0x80; v >>= 7 {
			out = append(out, byte(v)|0x80)
		}
		out = append(out, byte(v))
	}
	for _, f := range fields {
		var content []byte
		switch v := f.value.(type) {
		case int:
			varint(uint64(f.number) << 3)
			varint(uint64(v))
			continue
		case string:
			content = []byte(v)
		case []byte:
			content = v
		case []field:
			content = handMade(v...)
		}
		varint(uint64(f.number)<<3 | 2)
		varint(uint64(len(content)))
		out = append(out, content...)
	}
	return out
}

// message is one that was read: the last value of each field.
type message struct {
	numbers map[int]uint64
	texts   map[int][]byte
}

var errForm = errors.New("message of a bad form")

func read(b []byte) (message, error) {
	m := message{map[int]uint64{}, map[int][]byte{}}
	varint := func() (v uint64, err error) {
		for shift := 0; shift < 64 && len(b) > 0; shift += 7 {
			last := b[0]
			b = b[1:]
			if v |= uint64(last&0x7f) << shift; last < 0x80 {
				return v, nil
			}
		}
		return 0, errForm
	}
	for len(b) > 0 {
		tag, err := varint()
		if err != nil {
			return m, err
		}
		value, err := varint()
		if err != nil {
			return m, err
		}
		switch {
		case tag&7 == 0:
			m.numbers[int(tag>>3)] = value
		case tag&7 == 2 && value <= uint64(len(b)):
			m.texts[int(tag>>3)] = b[:value]
			b = b[value:]
		default:
			return m, errForm
		}
	}
	return m, nil
}

// raw passes bytes as they are.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }
func (raw) Name() string                       { return "proto" }

// Numbers of the protocol.
const (
	kindPoRep, kindSnap, kindWindow, kindWinning = 1, 2, 3, 4

	statusCompleted, statusFailed, statusCancelled, statusTimeout = 1, 2, 3, 4
)

// curio is a client of the protocol.
type curio struct {
	t    *testing.T
	conn *grpc.ClientConn
}

func newCurio(t *testing.T, target string) *curio {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true), grpc.ForceCodec(raw{}), grpc.MaxCallSendMsgSize(256<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &curio{t, conn}
}

// call makes one call.
func (c *curio) call(method string, fields ...field) (message, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*patience)
	defer cancel()
	request, answer := handMade(fields...), []byte(nil)
	if err := c.conn.Invoke(ctx, "/cuzk.v1.ProvingEngine/"+method, &request, &answer); err != nil {
		return message{}, err
	}
	return read(answer)
}

// must is call for what is to succeed.
func (c *curio) must(method string, fields ...field) message {
	c.t.Helper()
	m, err := c.call(method, fields...)
	if err != nil {
		c.t.Fatalf("%s: %v", method, err)
	}
	return m
}

// proved reads the result in the answer of Prove.
func (c *curio) proved(m message) message {
	c.t.Helper()
	result, err := read(m.texts[1])
	if err != nil {
		c.t.Fatal(err)
	}
	return result
}

// otherProver is an upstream of the protocol that knows it by its bytes only.
type otherProver struct {
	target string

	mu  sync.Mutex
	got map[string][][]byte // by method
}

func startOtherProver(t *testing.T) *otherProver {
	t.Helper()
	path := filepath.Join(shortFolder(t), "up")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	u := &otherProver{target: "unix://" + path, got: map[string][][]byte{}}
	server := grpc.NewServer(grpc.ForceServerCodec(raw{}), grpc.UnknownServiceHandler(u.answer))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() { server.Stop(); <-done })
	return u
}

func (u *otherProver) answer(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	method = filepath.Base(method)
	var request []byte
	if err := stream.RecvMsg(&request); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	u.mu.Lock()
	u.got[method] = append(u.got[method], request)
	u.mu.Unlock()
	var answer []byte
	switch method {
	case "SubmitProof":
		answer = handMade(field{1, "up 1"}, field{2, 5})
	case "Prove":
		answer = handMade(field{1, []field{{1, "up 2"}, {2, statusCompleted}, {3, "their proof"}}})
	case "AwaitProof":
		answer = handMade(field{1, "up 1"}, field{2, statusCompleted}, field{3, "their proof"})
	case "CancelProof":
		answer = handMade(field{1, 1})
	}
	return stream.SendMsg(&answer)
}

// last is the last request of a method.
func (u *otherProver) last(method string) []byte {
	u.mu.Lock()
	defer u.mu.Unlock()
	all := u.got[method]
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}
