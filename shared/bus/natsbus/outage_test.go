package natsbus_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
)

const patience = time.Minute

var topology = bus.Topology{
	Streams: []bus.Stream{{Name: "Q", Subjects: []string{"q.*"}, Retention: bus.WorkQueue, BytesMax: bytesize.MiB}},
	Buckets: []bus.Bucket{{Name: "b", BytesMax: bytesize.MiB}},
	Objects: []bus.ObjectBucket{{Name: "o", BytesMax: 64 * bytesize.MiB}},
}

var consumer = bus.Consumer{Stream: "Q", Name: "w", Subject: "q.a", AckWait: 2 * time.Second}

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func await[T any](t testing.TB, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s did not come", what)
	}
	panic("not reached")
}

// raw gives the library's own view of an embedded server.
func raw(t testing.TB, e *natsbus.Embedded) jetstream.JetStream {
	t.Helper()
	conn := must[*nats.Conn](t)(nats.Connect("", nats.InProcessServer(e)))
	t.Cleanup(conn.Close)
	return must[jetstream.JetStream](t)(jetstream.New(conn))
}

// notes collects what a watch tells.
type notes struct {
	told  chan string
	ready chan struct{}
}

func watch(t testing.TB, kv bus.KV) *notes {
	t.Helper()
	n := &notes{make(chan string, 256), make(chan struct{}, 8)}
	must[func()](t)(kv.Watch(t.Context(), "", func(e bus.Entry) {
		n.told <- fmt.Sprintf("%s=%s %v", e.Key, e.Value, e.Deleted)
	}, func() { n.ready <- struct{}{} }))
	await(t, "ready", n.ready)
	return n
}

func (n *notes) want(t testing.TB, want string) {
	t.Helper()
	if got := await(t, want, n.told); got != want {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestRestartOnTheSameStore stops the server under a client that fetches, watches, listens and serves, and starts it
// again on the same store: all go on, nothing stored is lost, and who held a message can still settle it.
func TestRestartOnTheSameStore(t *testing.T) {
	t.Parallel()
	server := embedded(t, nil)
	var mu sync.Mutex
	var changes []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, s)
	}
	b := dial(t, server, quick(), bus.Events{
		Connected: func() { note("up") }, Disconnected: func(error) { note("down") },
	})
	ctx := t.Context()
	noError(t, b.Setup(ctx, topology))
	kv := must[bus.KV](t)(b.KV(ctx, "b"))
	must[uint64](t)(kv.Create(ctx, "k", []byte("1")))
	seen := watch(t, kv)
	seen.want(t, "k=1 false")
	q := must[bus.Queue](t)(b.Queue(ctx, consumer))
	for i := range 3 {
		must[bool](t)(b.Publish(ctx, bus.Message{Subject: "q.a", ID: fmt.Sprint(i), Data: []byte(fmt.Sprint(i))}))
	}
	held := must[bus.Delivery](t)(q.Fetch(ctx))
	done := must[bus.Delivery](t)(q.Fetch(ctx))
	noError(t, done.Ack(ctx))
	heard := make(chan struct{}, 16)
	must[func()](t)(b.Subscribe("plain", func(bus.Message) { heard <- struct{}{} }))
	must[func()](t)(b.Serve(bus.Service{Name: "s", Version: "1.0.0", Endpoints: []bus.Endpoint{{
		Name: "e", Subject: "ask",
		Handle: func(context.Context, bus.Message) (bus.Message, error) { return bus.Message{Data: []byte("yes")}, nil },
	}}}))
	objects := must[bus.Objects](t)(b.Objects(ctx, "o"))
	must[bus.ObjectInfo](t)(objects.Put(ctx, "x", strings.NewReader("content"), nil))

	publishOverRestart(t, server, b)
	await(t, "ready when all was read anew", seen.ready)
	noError(t, held.Ack(ctx))
	// Ids of what is still stored are known over a restart (those of what was removed are not).
	duplicate := must[bool](t)(b.Publish(ctx, bus.Message{Subject: "q.a", ID: "2"}))
	if !duplicate {
		t.Error("message ids are forgotten")
	}
	got := map[string]int{}
	for range 2 {
		d := must[bus.Delivery](t)(q.Fetch(ctx))
		got[string(d.Message().Data)] = d.Count()
		noError(t, d.Ack(ctx))
	}
	if got["2"] != 1 || got["late"] != 1 {
		t.Errorf("after the restart: %v", got)
	}
	if n := must[bus.QueueState](t)(q.State(ctx)); n.Held+n.Waiting != 0 {
		t.Errorf("left over: %+v", n)
	}
	e := must[bus.Entry](t)(kv.Get(ctx, "k"))
	must[uint64](t)(kv.Update(ctx, "k", []byte("2"), e.Revision))
	seen.want(t, "k=2 false")
	noError(t, b.Send(ctx, bus.Message{Subject: "plain"}))
	await(t, "plain message", heard)
	if a := must[bus.Message](t)(b.Request(ctx, bus.Message{Subject: "ask"})); string(a.Data) != "yes" {
		t.Errorf("answer %q", a.Data)
	}
	must[bus.ObjectInfo](t)(objects.Info(ctx, "x"))
	mu.Lock()
	defer mu.Unlock()
	if s := strings.Join(changes, " "); s != "up down up" {
		t.Errorf("changes: %s", s)
	}
}

// publishOverRestart restarts the server; while it is away plain sends and bounded publishes fail, a patient one waits.
func publishOverRestart(t *testing.T, server *natsbus.Embedded, b *natsbus.Bus) {
	t.Helper()
	ctx := t.Context()
	server.Stop()
	for b.Connected() {
		time.Sleep(time.Millisecond)
	}
	if err := b.Send(ctx, bus.Message{Subject: "plain"}); fault.KindOf(err) != fault.Transient {
		t.Errorf("sent into the void: %v", err)
	}
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	_, err := b.Publish(short, bus.Message{Subject: "q.a", ID: "no"})
	cancel()
	if fault.KindOf(err) != fault.Transient {
		t.Errorf("published into the void: %v", err)
	}
	published := make(chan error, 1)
	go func() {
		_, err := b.Publish(ctx, bus.Message{Subject: "q.a", ID: "late", Data: []byte("late")})
		published <- err
	}()
	noError(t, server.Start())
	noError(t, await(t, "publish over the outage", published))
}

// TestB62WhatWasDeletedComesBack deletes the consumer, then the stream and the buckets, under a waiting worker.
func TestB62WhatWasDeletedComesBack(t *testing.T) {
	t.Parallel()
	server := embedded(t, nil)
	js := raw(t, server)
	cfg := quick()
	cfg.CallTimeout, cfg.SetupWait = patience, patience // until it is there again
	b := dial(t, server, cfg, bus.Events{})
	ctx := t.Context()
	noError(t, b.Setup(ctx, topology))
	kv := must[bus.KV](t)(b.KV(ctx, "b"))
	must[uint64](t)(kv.Create(ctx, "k", []byte("1")))
	seen := watch(t, kv)
	seen.want(t, "k=1 false")
	q := must[bus.Queue](t)(b.Queue(ctx, consumer))
	fetched := make(chan string, 8)
	go func() {
		for {
			d, err := q.Fetch(ctx)
			if err != nil {
				return
			}
			if err := d.Ack(ctx); err != nil {
				t.Error(err)
			}
			fetched <- string(d.Message().Data)
		}
	}()
	publish := func(id string) {
		t.Helper()
		must[bool](t)(b.Publish(ctx, bus.Message{Subject: "q.a", ID: id, Data: []byte(id)}))
		if got := await(t, id, fetched); got != id {
			t.Errorf("fetched %s, want %s", got, id)
		}
	}
	publish("before")
	noError(t, js.DeleteConsumer(ctx, "Q", "w"))
	publish("consumer deleted")
	noError(t, js.DeleteStream(ctx, "Q"))
	publish("stream deleted")
	noError(t, js.DeleteStream(ctx, "KV_b"))
	seen.want(t, "k= true")
	for {
		if _, err := kv.Create(ctx, "new", []byte("2")); err == nil {
			break
		} else if fault.KindOf(err) != fault.Transient {
			t.Fatal(err)
		}
	}
	seen.want(t, "new=2 false")
}

// TestWatchTellsWhatItMissed changes a bucket while the watcher's server is another one on the same store: one key is
// deleted, one changed, one new, one the same.
func TestWatchTellsWhatItMissed(t *testing.T) {
	t.Parallel()
	server := embedded(t, nil)
	b := dial(t, server, quick(), bus.Events{})
	ctx := t.Context()
	noError(t, b.Setup(ctx, topology))
	kv := must[bus.KV](t)(b.KV(ctx, "b"))
	for _, key := range []string{"a", "b", "c"} {
		must[uint64](t)(kv.Create(ctx, key, []byte("1")))
	}
	seen := watch(t, kv)
	for _, key := range []string{"a", "b", "c"} {
		seen.want(t, key+"=1 false")
	}
	// The watcher is kept away: its connection finds no server, while another process works on the store.
	server.Stop()
	dir := server.Dir()
	noError(t, server.Close())
	other := must[*natsbus.Embedded](t)(natsbus.StartEmbedded(natsbus.EmbeddedConfig{Dir: dir}))
	js := raw(t, other)
	bucket := must[jetstream.KeyValue](t)(js.KeyValue(ctx, "b"))
	noError(t, bucket.Purge(ctx, "a"))
	noError(t, js.DeleteStream(ctx, "OBJ_o"))
	must[uint64](t)(bucket.Put(ctx, "b", []byte("2")))
	must[uint64](t)(bucket.Put(ctx, "d", []byte("2")))
	noError(t, other.Close())
	noError(t, server.Start())
	got := map[string]bool{}
	for range 3 {
		got[await(t, "difference", seen.told)] = true
	}
	for _, want := range []string{"a= true", "b=2 false", "d=2 false"} {
		if !got[want] {
			t.Errorf("%s is missing in %v", want, got)
		}
	}
	select {
	case s := <-seen.told:
		t.Errorf("told %s, too", s)
	case <-time.After(100 * time.Millisecond):
	}
}

// TestB61SetupSaysWhatTheServerAllows: a server of 64 MiB and streams that want more; then such that fit, twice.
func TestB61SetupSaysWhatTheServerAllows(t *testing.T) {
	t.Parallel()
	server := embedded(t, func(c *natsbus.EmbeddedConfig) { c.StoreMax = 64 * bytesize.MiB })
	b := dial(t, server, quick(), bus.Events{})
	large := topology
	large.Streams = append([]bus.Stream{{
		Name: "BIG", Subjects: []string{"big"}, Retention: bus.WorkQueue, BytesMax: 512 * bytesize.MiB,
	}}, topology.Streams...)
	err := b.Setup(t.Context(), large)
	if fault.KindOf(err) != fault.Exhausted {
		t.Fatal(err)
	}
	for _, want := range []string{"stream BIG", "512", "set aside"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	fits := topology
	fits.Objects = []bus.ObjectBucket{{Name: "o", BytesMax: 48 * bytesize.MiB}}
	for range 2 {
		again := dial(t, server, quick(), bus.Events{})
		if err := again.Setup(t.Context(), fits); err != nil {
			t.Fatal(err)
		}
	}
}

// TestB59StoreFull fills a store on an 8 MiB disk of its own: publishing is refused with the reason, what was accepted
// stays, a result that came before can be acknowledged, and when there is room again it goes on by itself.
func TestB59StoreFull(t *testing.T) {
	t.Parallel()
	dir := tmpfs(t, "8m")
	server := embedded(t, func(c *natsbus.EmbeddedConfig) { c.Dir, c.StoreMax, c.Sync = dir, 0, false })
	cfg := quick()
	cfg.CallTimeout = 2 * time.Second
	b := dial(t, server, cfg, bus.Events{})
	ctx := t.Context()
	noError(t, b.Setup(ctx, bus.Topology{Streams: []bus.Stream{
		{Name: "Q", Subjects: []string{"q.*"}, Retention: bus.WorkQueue},
	}}))
	ballast := filepath.Join(dir, "ballast")
	noError(t, os.WriteFile(ballast, make([]byte, 4<<20), 0o600))
	var accepted int
	var err error
	for err == nil && accepted < 1000 {
		_, err = b.Publish(ctx, bus.Message{Subject: "q.a", ID: fmt.Sprint(accepted), Data: make([]byte, 64<<10)})
		if err == nil {
			accepted++
		}
	}
	t.Logf("%d messages of 64 KiB, then: %v", accepted, err)
	if kind := fault.KindOf(err); kind != fault.Exhausted && kind != fault.Transient {
		t.Fatalf("fault %q: %v", kind, err)
	}
	if err := server.Health(); fault.KindOf(err) != fault.Exhausted {
		t.Errorf("health with a full disk: %v", err)
	}
	noError(t, os.Remove(ballast))
	retry, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if _, err = b.Publish(retry, bus.Message{Subject: "q.a", ID: "after", Data: []byte("after")}); err == nil {
			break
		}
		if retry.Err() != nil {
			t.Fatalf("does not recover: %v", err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	q := must[bus.Queue](t)(b.Queue(ctx, consumer))
	ids := map[string]bool{}
	for !ids["after"] {
		d, err := q.Fetch(retry)
		if err != nil {
			t.Fatalf("%d messages, then %v", len(ids), err)
		}
		ids[d.Message().ID] = true
		noError(t, d.Ack(ctx))
	}
	for i := range accepted {
		if !ids[fmt.Sprint(i)] {
			t.Errorf("message %d was accepted and is gone", i)
		}
	}
}

// TestB59StoreLimit is the same by the server's own limit, as shipped configurations have it.
func TestB59StoreLimit(t *testing.T) {
	t.Parallel()
	server := embedded(t, func(c *natsbus.EmbeddedConfig) { c.StoreMax = 8 * bytesize.MiB })
	b := dial(t, server, quick(), bus.Events{})
	ctx := t.Context()
	noError(t, b.Setup(ctx, bus.Topology{Streams: []bus.Stream{
		{Name: "Q", Subjects: []string{"q.*"}, Retention: bus.WorkQueue},
	}}))
	var accepted int
	var err error
	for err == nil && accepted < 1000 {
		if _, err = b.Publish(ctx, bus.Message{Subject: "q.a", Data: make([]byte, 256<<10)}); err == nil {
			accepted++
		}
	}
	if fault.KindOf(err) != fault.Exhausted || fault.ReportOf("", err).Hint == "" {
		t.Fatalf("after %d messages: %v", accepted, err)
	}
	q := must[bus.Queue](t)(b.Queue(ctx, consumer))
	if state := must[bus.QueueState](t)(q.State(ctx)); state.Waiting != uint64(accepted) {
		t.Errorf("%d accepted, %d stored", accepted, state.Waiting)
	}
	for range accepted {
		noError(t, must[bus.Delivery](t)(q.Fetch(ctx)).Ack(ctx))
	}
	must[bool](t)(b.Publish(ctx, bus.Message{Subject: "q.a", Data: make([]byte, 256<<10)}))
}

func TestNoServerIsTransient(t *testing.T) {
	t.Parallel()
	cfg := quick()
	cfg.URLs = []string{"nats://me:secret@127.0.0.1:1"}
	_, err := natsbus.Connect(t.Context(), cfg)
	if fault.KindOf(err) != fault.Transient || strings.Contains(err.Error(), "secret") ||
		!strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := natsbus.Connect(ctx, cfg); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
