package natsbus

import (
	"context"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
)

// What a server tells of a stream counts only if it leads it: a server lists the others as replicas.
func TestOnlyTheLeaderIsBelieved(t *testing.T) {
	t.Parallel()
	others := func(names ...string) (all []*jetstream.PeerInfo) {
		for _, n := range names {
			all = append(all, &jetstream.PeerInfo{Name: n})
		}
		return all
	}
	for name, c := range map[string]struct {
		info     *jetstream.ClusterInfo
		believed bool
	}{
		"no cluster":       {nil, true},
		"one replica":      {&jetstream.ClusterInfo{Leader: "a"}, true},
		"the leader":       {&jetstream.ClusterInfo{Leader: "a", Replicas: others("b", "c")}, true},
		"another one":      {&jetstream.ClusterInfo{Leader: "a", Replicas: others("a", "c")}, false},
		"one without":      {&jetstream.ClusterInfo{Replicas: others("a", "b", "c")}, false},
		"one new, without": {&jetstream.ClusterInfo{}, false},
	} {
		err := ofLeader(c.info)
		if believed := err == nil; believed != c.believed || !believed && fault.KindOf(err) != fault.Transient {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// alone is a bucket of a server of its own, with keys that stay and one that was deleted.
func alone(t *testing.T) *kv {
	t.Helper()
	e, err := StartEmbedded(EmbeddedConfig{Dir: t.TempDir(), StoreMax: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Stop)
	b, err := Dial(t.Context(), DefaultConfig(), Options{Embedded: e})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	ctx := t.Context()
	if err := b.Setup(ctx, bus.Topology{Buckets: []bus.Bucket{{Name: "b", BytesMax: 1 << 20}}}); err != nil {
		t.Fatal(err)
	}
	opened, err := b.KV(ctx, "b")
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"a.1", "b.1", "b.gone"} {
		if _, err := opened.Create(ctx, key, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := opened.Delete(ctx, "b.gone", 0); err != nil {
		t.Fatal(err)
	}
	return opened.(*kv)
}

// A reading of a server that lacks a key that the leader has is none: keys are not told to be gone, and the present
// values are not said to be complete.
func TestReadingOfAServerThatIsBehindIsRefused(t *testing.T) {
	t.Parallel()
	k := alone(t)
	for name, c := range map[string]struct {
		missing string
		whole   bool
	}{
		"the leader has more":     {k.subject("b.")[:len(k.subject("b."))-1] + "1", false},
		"deleted since":           {k.subject("b.")[:len(k.subject("b."))-1] + "gone", true},
		"removed with its mark":   {k.subject("b.")[:len(k.subject("b."))-1] + "never", true},
		"all that the leader has": {"", true},
	} {
		s, err := k.b.openScan(t.Context(), kvStream(k.bucket), k.subject("a."), false)
		if err != nil {
			t.Fatal(err)
		}
		if c.missing != "" {
			s.missing[c.missing] = 1
		}
		told := ""
		// Keys that another reading had; watched until something is told.
		ctx, cancel := context.WithCancel(t.Context())
		w := &watch{
			kv: k, known: map[string]uint64{"a.before": 1},
			see:   func(e bus.Entry) { told += " " + e.Key },
			ready: func() { told += " ready"; cancel() },
		}
		complete, err := w.pass(ctx, s)
		s.close()
		cancel()
		want := " a.1 a.before ready"
		if !c.whole {
			want = " a.1"
		}
		if complete != c.whole || told != want {
			t.Errorf("%s: told%s, %v", name, told, err)
		}
		if !c.whole && fault.KindOf(err) != fault.Transient {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A stream of a cluster is not there when several answers say so; without a cluster the first one counts.
func TestStreamOfAClusterIsLookedForAgain(t *testing.T) {
	t.Parallel()
	for cluster, want := range map[string]int{"": 1, "c": absentLooks} {
		s, err := server.NewServer(&server.Options{
			Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
			Cluster: server.ClusterOpts{Name: cluster, Host: "127.0.0.1", Port: clusterPort(cluster)},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.Start()
		if !s.ReadyForConnections(time.Minute) {
			t.Fatal("server is not ready")
		}
		cfg := DefaultConfig()
		cfg.URLs = []string{s.ClientURL()}
		b, err := Dial(t.Context(), cfg, Options{})
		if err != nil {
			t.Fatal(err)
		}
		looks := 0
		err = b.found(t.Context(), func(context.Context) error { looks++; return jetstream.ErrStreamNotFound })
		if looks != want || fault.KindOf(b.wrap(err, "open")) != fault.NotFound {
			t.Errorf("in cluster %q: %d looks, %v", cluster, looks, err)
		}
		b.Close()
		s.Shutdown()
		s.WaitForShutdown()
	}
}

// clusterPort gives a server one for its cluster, if it has any.
func clusterPort(cluster string) int {
	if cluster == "" {
		return 0
	}
	return server.RANDOM_PORT
}
