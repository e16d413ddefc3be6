package natsbus_test

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/fault"
)

// relays starts a server with one bus, and a plain client that has it answer elsewhere.
func relays(t *testing.T) (*natsbus.Bus, *nats.Conn, jetstream.JetStream, chan error) {
	t.Helper()
	server, err := natsbus.StartEmbedded(natsbus.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	troubles := make(chan error, 100)
	b, err := natsbus.Dial(t.Context(), natsbus.DefaultConfig(), natsbus.Options{
		Embedded: server, Events: bus.Events{Trouble: func(err error) { troubles <- err }},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	err = b.Setup(t.Context(), bus.Topology{
		Streams: []bus.Stream{
			{Name: "Q", Subjects: []string{"q.*"}, Retention: bus.WorkQueue, BytesMax: 1 << 20},
			{Name: "L", Subjects: []string{"l.*"}, Retention: bus.Limits, BytesMax: 1 << 20},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	return b, conn, js, troubles
}

func wait[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
		panic("not reached")
	}
}

// TestRelayedMessagesAreRefused has a server without accounts deliver what somebody stored, in all ways that leave a
// mark, to a subscription, a service and a queue.
func TestRelayedMessagesAreRefused(t *testing.T) {
	t.Parallel()
	b, conn, js, troubles := relays(t)
	heard, asked := make(chan string, 10), make(chan string, 10)
	if _, err := b.Subscribe("plain", func(m bus.Message) { heard <- string(m.Data) }); err != nil {
		t.Fatal(err)
	}
	_, err := b.Serve(bus.Service{Name: "s", Version: "1.0.0", Endpoints: []bus.Endpoint{{
		Name: "e", Subject: "ask", Handle: func(_ context.Context, m bus.Message) (bus.Message, error) {
			asked <- string(m.Data)
			return bus.Message{Data: []byte("answer")}, nil
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	q, err := b.Queue(t.Context(), bus.Consumer{Stream: "Q", Name: "w", Subject: "q.a"})
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = conn.Request("l.x", []byte("crafted"), patience)
	check(err)
	for _, to := range []string{"plain", "ask", "q.a"} {
		check(conn.PublishRequest("$JS.API.DIRECT.GET.L.l.x", to, nil)) // marked by the header
	}
	for to, group := range map[string]string{"plain": "", "ask": "q"} { // marked by the reply
		_, err := js.CreatePushConsumer(t.Context(), "L", jetstream.ConsumerConfig{
			DeliverSubject: to, DeliverGroup: group, AckPolicy: jetstream.AckExplicitPolicy,
		})
		check(err)
	}
	check(conn.PublishRequest("ask", "q.a", []byte("relay your answer"))) // would be stored as work
	check(conn.PublishRequest("ask", "l.x", []byte("relay your answer")))
	check(conn.Flush())
	for deadline := time.Now().Add(patience); b.Refused() < 6 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	check(conn.Publish("plain", []byte("honest")))
	if got := wait(t, "plain message", heard); got != "honest" {
		t.Errorf("heard %q", got)
	}
	if _, err := conn.Request("ask", []byte("honest"), patience); err != nil {
		t.Error(err)
	}
	if got := wait(t, "request", asked); got != "honest" {
		t.Errorf("asked %q", got)
	}
	_, err = conn.Request("q.a", []byte("honest"), patience)
	check(err)
	d, err := q.Fetch(t.Context())
	check(err)
	if got := string(d.Message().Data); got != "honest" {
		t.Errorf("fetched %q", got)
	}
	if n := b.Refused(); n != 7 {
		t.Errorf("%d messages are refused, want 7", n)
	}
	if n := len(troubles); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// TestDeletedQueueIsToldToWhoMayNotMakeIt: who binds hears of it, and goes on once it is made again.
func TestDeletedQueueIsToldToWhoMayNotMakeIt(t *testing.T) {
	t.Parallel()
	b, _, js, _ := relays(t)
	c := bus.Consumer{Stream: "Q", Name: "w", Subject: "q.a"}
	if _, err := b.Queue(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	mine := c
	mine.Existing = true
	q, err := b.Queue(t.Context(), mine)
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan error, 1)
	go func() {
		_, err := q.Fetch(t.Context())
		told <- err
	}()
	if err := js.DeleteConsumer(t.Context(), "Q", "w"); err != nil {
		t.Fatal(err)
	}
	if err := wait(t, "end of fetch", told); fault.KindOf(err) != fault.NotFound {
		t.Errorf("fetch: %v", err)
	}
	if _, err := b.Queue(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Publish(t.Context(), bus.Message{Subject: "q.a"}); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Fetch(t.Context()); err != nil {
		t.Error(err)
	}
}
