package natsbus_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/fault"
)

// clusterPatience is for what a cluster of three does in seconds when it has the machine for itself.
const clusterPatience = 2 * time.Minute

// cluster is three servers that know each other.
type cluster struct {
	t       testing.TB
	options []*server.Options
	servers []*server.Server
}

func startCluster(t testing.TB) *cluster {
	t.Helper()
	c := &cluster{t: t}
	var routes []*url.URL
	for i := range 3 {
		l := must[net.Listener](t)(net.Listen("tcp", "127.0.0.1:0"))
		port := l.Addr().(*net.TCPAddr).Port
		noError(t, l.Close())
		routes = append(routes, must[*url.URL](t)(url.Parse(fmt.Sprintf("nats-route://127.0.0.1:%d", port))))
		c.options = append(c.options, &server.Options{
			ServerName: fmt.Sprintf("s%d", i+1), Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
			JetStream: true, StoreDir: t.TempDir(), Cluster: server.ClusterOpts{Name: "c", Host: "127.0.0.1", Port: port},
		})
	}
	for i := range c.options {
		c.options[i].Routes = routes
		c.servers = append(c.servers, nil)
		c.start(i)
	}
	t.Cleanup(func() {
		for i := range c.servers {
			c.stop(i)
		}
	})
	for deadline := time.Now().Add(clusterPatience); c.leader() == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the cluster finds no leader")
		}
	}
	return c
}

// start starts one, also again on its store and its ports.
func (c *cluster) start(i int) {
	c.t.Helper()
	options := *c.options[i]
	c.servers[i] = must[*server.Server](c.t)(server.NewServer(&options))
	c.servers[i].Start()
	if !c.servers[i].ReadyForConnections(clusterPatience) {
		c.t.Fatalf("server %d is not ready", i+1)
	}
	if addr, ok := c.servers[i].Addr().(*net.TCPAddr); ok {
		c.options[i].Port = addr.Port
	}
}

func (c *cluster) stop(i int) {
	c.servers[i].Shutdown()
	c.servers[i].WaitForShutdown()
}

// leader is the one that leads the cluster itself, nil for none.
func (c *cluster) leader() *server.Server {
	for _, s := range c.servers {
		if s.JetStreamIsLeader() && s.JetStreamIsCurrent() {
			return s
		}
	}
	return nil
}

func (c *cluster) urls() (urls []string) {
	for _, o := range c.options {
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", o.Port))
	}
	return urls
}

// dial connects to all of them.
func (c *cluster) dial() *natsbus.Bus {
	c.t.Helper()
	cfg := quick()
	cfg.URLs, cfg.SetupWait = c.urls(), clusterPatience
	b := must[*natsbus.Bus](c.t)(natsbus.Dial(c.t.Context(), cfg, natsbus.Options{}))
	c.t.Cleanup(b.Close)
	return b
}

// setUp makes the topology on all three, as soon as they are all there.
func (c *cluster) setUp(ctx context.Context, b *natsbus.Bus) {
	c.t.Helper()
	t := topology
	t.Replicas = 3
	for {
		err := b.Setup(ctx, t)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			c.t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// unseat makes the leaders of streams give up, one after the other, until ctx ends; it counts.
func unseat(ctx context.Context, conn *nats.Conn, streams ...string) (count int) {
	for ctx.Err() == nil {
		for _, s := range streams {
			// Refused while there is none.
			if _, err := conn.RequestWithContext(ctx, "$JS.API.STREAM.LEADER.STEPDOWN."+s, nil); err == nil {
				count++
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(200 * time.Millisecond):
		}
	}
	return count
}

// While the leaders of all streams change again and again, whatever may be asked again is answered within the caller's
// patience, and nothing that was stored is missing in any answer.
func TestClusterAnswersThroughElections(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	b := c.dial()
	ctx, cancel := context.WithTimeout(t.Context(), clusterPatience)
	defer cancel()
	c.setUp(ctx, b)
	conn := must[*nats.Conn](t)(nats.Connect(strings.Join(c.urls(), ",")))
	defer conn.Close()
	var wg sync.WaitGroup
	turning, stop := context.WithCancel(ctx)
	turns := 0
	wg.Go(func() { turns = unseat(turning, conn, "Q", "KV_b", "OBJ_o") })
	o := must[bus.Objects](t)(b.Objects(ctx, "o"))
	kv := must[bus.KV](t)(b.KV(ctx, "b"))
	q := must[bus.Queue](t)(b.Queue(ctx, consumer))
	var names, keys []string
	for i := range 5 {
		name := fmt.Sprintf("%02d", i)
		data := bytes.Repeat([]byte(name), 1000*(i+1))
		must[bus.ObjectInfo](t)(o.Put(ctx, name, bytes.NewReader(data), nil))
		r, _, err := o.Get(ctx, name, 1<<20)
		noError(t, err)
		if got := must[[]byte](t)(io.ReadAll(r)); !bytes.Equal(got, data) {
			t.Errorf("object %s has %d bytes, not %d", name, len(got), len(data))
		}
		names = append(names, name)
		var listed []string
		for _, info := range must[[]bus.ObjectInfo](t)(o.List(ctx)) {
			listed = append(listed, info.Name)
		}
		if diff := cmp.Diff(names, listed); diff != "" {
			t.Errorf("objects: %s", diff)
		}
		if _, err := o.Sweep(ctx, time.Now().Add(time.Hour)); err != nil { // of live objects none
			t.Error(err)
		}
		if _, err := kv.Create(ctx, name, nil); err != nil { // unanswered it may be stored or not
			must[bus.Entry](t)(kv.Get(ctx, name))
		}
		must[bus.Entry](t)(kv.Get(ctx, name))
		keys = append(keys, name)
		if diff := cmp.Diff(keys, must[[]string](t)(kv.Keys(ctx, ""))); diff != "" {
			t.Errorf("keys: %s", diff)
		}
		must[bool](t)(b.Publish(ctx, bus.Message{Subject: "q.a", ID: name, Data: []byte(name)}))
		d := must[bus.Delivery](t)(q.Fetch(ctx))
		noError(t, d.Ack(ctx))
	}
	stop()
	wg.Wait()
	t.Logf("leaders gave up %d times", turns)
	if turns == 0 {
		t.Error("no leader gave up")
	}
}

// A server that was away comes back and is behind: what is listed and watched is whole all the same, and no live piece
// counts as nobody's.
func TestServerThatIsBehindHidesNothing(t *testing.T) {
	t.Parallel()
	c := startCluster(t)
	b := c.dial()
	ctx, cancel := context.WithTimeout(t.Context(), clusterPatience)
	defer cancel()
	c.setUp(ctx, b)
	o := must[bus.Objects](t)(b.Objects(ctx, "o"))
	kv := must[bus.KV](t)(b.KV(ctx, "b"))
	c.stop(2)
	data := make([]byte, 256<<10)
	const count = 60
	for i := range count {
		for { // its leader may have been the one that is stopped
			if _, err := o.Put(ctx, fmt.Sprintf("%03d", i), bytes.NewReader(data), nil); err == nil {
				break
			} else if ctx.Err() != nil {
				t.Fatal(err)
			}
		}
		for {
			_, err := kv.Create(ctx, fmt.Sprintf("k%03d", i), data[:1<<10])
			if err == nil || fault.KindOf(err) == fault.Conflict {
				break
			} else if ctx.Err() != nil {
				t.Fatal(err)
			}
		}
	}
	c.start(2)
	for range 10 {
		if list := must[[]bus.ObjectInfo](t)(o.List(ctx)); len(list) != count {
			t.Errorf("%d objects are listed of %d", len(list), count)
		}
		if keys := must[[]string](t)(kv.Keys(ctx, "")); len(keys) != count {
			t.Errorf("%d keys are listed of %d", len(keys), count)
		}
		if _, err := o.Sweep(ctx, time.Now().Add(time.Hour)); err != nil {
			t.Error(err)
		}
		seen, ready := 0, make(chan struct{})
		stop := must[func()](t)(kv.Watch(ctx, "", func(bus.Entry) { seen++ }, func() { close(ready) }))
		select {
		case <-ready:
		case <-ctx.Done():
			t.Fatal("a watch does not get ready")
		}
		stop()
		if seen != count {
			t.Errorf("a watch was ready after %d keys of %d", seen, count)
		}
	}
	if usage := must[bus.ObjectUsage](t)(o.Usage(ctx)); usage.Live != count*256<<10 || usage.Partial != 0 {
		t.Errorf("usage %+v", usage)
	}
	for i := range count {
		must[bus.ObjectInfo](t)(o.Info(ctx, fmt.Sprintf("%03d", i)))
	}
}

// Listing and sweeping ask for no consumer, which any server may hold, also one that is behind.
func TestObjectsNeedNoConsumer(t *testing.T) {
	t.Parallel()
	public, file := seed(t)
	url := guarded(t, &server.Options{Nkeys: []*server.NkeyUser{{Nkey: public, Permissions: &server.Permissions{
		Publish: &server.SubjectPermission{Deny: []string{"$JS.API.CONSUMER.>"}},
	}}}})
	cfg := quick()
	cfg.URLs, cfg.NKeySeedFile = []string{url}, file
	b := must[*natsbus.Bus](t)(natsbus.Dial(t.Context(), cfg, natsbus.Options{}))
	defer b.Close()
	ctx := t.Context()
	noError(t, b.Setup(ctx, topology))
	o := must[bus.Objects](t)(b.Objects(ctx, "o"))
	const count = 40
	for i := range count {
		must[bus.ObjectInfo](t)(o.Put(ctx, fmt.Sprint(i), strings.NewReader("content"), nil))
	}
	noError(t, o.Delete(ctx, "7"))
	if list := must[[]bus.ObjectInfo](t)(o.List(ctx)); len(list) != count-1 {
		t.Errorf("%d objects are listed, not %d", len(list), count-1)
	}
	if usage := must[bus.ObjectUsage](t)(o.Usage(ctx)); usage.Live != (count-1)*7 {
		t.Errorf("usage %+v", usage)
	}
	if _, err := o.Sweep(ctx, time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
	conn := must[*nats.Conn](t)(nats.Connect(url, must[nats.Option](t)(nats.NkeyOptionFromSeed(file))))
	defer conn.Close()
	js := must[jetstream.JetStream](t)(jetstream.New(conn))
	stream := must[jetstream.Stream](t)(js.Stream(ctx, "OBJ_o"))
	if messages := stream.CachedInfo().State.Msgs; messages != 2*(count-1) {
		t.Errorf("%d messages are left of %d objects", messages, count-1)
	}
}
