package store_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/natsbus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// natsWorld is a store on a real NATS server.
type natsWorld struct {
	*world
	server *natsbus.Embedded
	store  *store.Store
	deaf   *deafBus
}

func newNATSWorld(t *testing.T) *natsWorld {
	t.Helper()
	w := &natsWorld{world: &world{t: t}}
	var err error
	w.server, err = natsbus.StartEmbedded(natsbus.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	w.check(err)
	t.Cleanup(func() { w.check(w.server.Close()) })
	c := natsbus.DefaultConfig()
	c.URLs, c.ReconnectWait, c.ReconnectMax = []string{w.server.URL()}, 10*time.Millisecond, 50*time.Millisecond
	b, err := natsbus.Dial(t.Context(), c, natsbus.Options{})
	w.check(err)
	t.Cleanup(b.Close)
	w.bus = b
	const size = 4 * bytesize.MiB
	w.check(b.Setup(t.Context(), bus.Topology{
		Buckets: []bus.Bucket{{Name: wire.BucketJobs, BytesMax: size}, {Name: wire.BucketNodes, BytesMax: size}},
		Objects: []bus.ObjectBucket{
			{Name: wire.ObjectsSlices, BytesMax: size}, {Name: wire.ObjectsProofs(job.MainTenant), BytesMax: size},
		},
	}))
	config := store.DefaultConfig()
	config.RollbackAfter = 50 * time.Millisecond
	w.deaf = &deafBus{Bus: b}
	w.store, err = store.Open(t.Context(), w.deaf, config, zerolog.Nop())
	w.check(err)
	t.Cleanup(w.store.Close)
	return w
}

// restart stops the server, does something to its files, and starts it again.
func (w *natsWorld) restart(between func(dir string)) {
	w.t.Helper()
	w.server.Stop()
	between(w.server.Dir())
	w.check(w.server.Start())
	w.until("the connection is back", w.bus.Connected)
}

// NATS is restored from a backup: revisions go back. Everything shows what the bucket has then, and goes on from there,
// also where the watch was behind: then it has nothing to tell afterwards, as it never told what is gone.
func TestARestoredBucketIsBelieved(t *testing.T) {
	t.Parallel()
	for name, isBehind := range map[string]bool{"watch is up to date": false, "watch is behind": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bucketIsRestored(t, isBehind)
		})
	}
}

func bucketIsRestored(t *testing.T, isBehind bool) {
	w := newNATSWorld(t)
	s, ctx := w.store, t.Context()
	create := func() job.ID {
		t.Helper()
		created, err := s.Create(ctx, record(t))
		w.check(err)
		return created.Job.Record.ID
	}
	changed, same, removed := create(), create(), create()
	backup := t.TempDir()
	w.restart(func(dir string) { w.check(os.CopyFS(backup, os.DirFS(dir))) })
	w.deaf.isDeaf.Store(isBehind)

	late := func(id job.ID, count int) {
		t.Helper()
		w.until("a change is written", func() bool {
			_, err := s.Update(ctx, id, func(r *job.Record) error { r.LateCount = count; return nil })
			if fault.KindOf(err) == fault.Transient { // the connection may turn once more after a restart
				return false
			}
			w.check(err)
			return true
		})
	}
	for i := range 20 {
		late(changed, i+1)
	}
	j, _ := s.Get(removed)
	w.check(s.Remove(ctx, j))
	added := create()
	w.check(s.SetIntake(ctx, store.Intake{Paused: true}))
	_, err := s.SetMark(ctx, "n1", func(m *store.NodeMark) { m.Cordoned = true })
	w.check(err)

	w.restart(func(dir string) {
		w.check(os.RemoveAll(dir))
		w.check(os.CopyFS(dir, os.DirFS(backup)))
	})
	w.until("the view is the bucket", func() bool {
		j, _ := s.Get(changed)
		_, isAdded := s.Get(added)
		_, isSame := s.Get(same)
		_, isRemoved := s.Get(removed)
		return j.Record.LateCount == 0 && !isAdded && isSame && isRemoved && !s.Intake().Paused && !s.Mark("n1").Cordoned
	})
	if _, lost := s.Lost(added); !lost {
		t.Error("a job that was accepted after the backup is not said to be lost")
	}
	late(changed, 7) // at a revision that is lower than what was known
	if j, _ := s.Get(changed); j.Record.LateCount != 7 {
		t.Errorf("after a change the view has count %d", j.Record.LateCount)
	}
}

// The leader may change a record before the watch has said that it went back.
func TestAChangeOfARestoredRecordIsSeenAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.open(func(c *store.Config) { c.RollbackAfter = time.Hour })
	created, err := s.Create(t.Context(), record(t))
	w.check(err)
	id := created.Job.Record.ID
	old, err := s.Fetch(t.Context(), id)
	w.check(err)
	for range 5 {
		_, err = s.Update(t.Context(), id, func(r *job.Record) error { r.LateCount++; return nil })
		w.check(err)
	}
	// The bucket is lost and written again as it was at first, at its first revisions.
	kv, err := w.bus.KV(t.Context(), wire.BucketJobs)
	w.check(err)
	present, err := kv.Get(t.Context(), wire.JobKey(id))
	w.check(err)
	s.Close()
	w.server.Wipe()
	w.check(w.bus.Setup(t.Context(), bus.Topology{Buckets: []bus.Bucket{
		{Name: wire.BucketJobs, BytesMax: bytesize.MiB}, {Name: wire.BucketNodes, BytesMax: bytesize.MiB},
	}}))
	kv, err = w.bus.KV(t.Context(), wire.BucketJobs)
	w.check(err)
	_, err = kv.Create(t.Context(), wire.JobKey(id), present.Value)
	w.check(err)
	next, err := s.Update(t.Context(), id, func(r *job.Record) error { r.LateCount = 100; return nil })
	w.check(err)
	if j, _ := s.Get(id); j.Revision != next.Revision || j.Record.LateCount != 100 || next.Revision > old.Revision+4 {
		t.Errorf("revision %d after a change that gave revision %d", j.Revision, next.Revision)
	}
}

// deafBus has watches that tell no entry while it is deaf, as those do that are behind.
type deafBus struct {
	bus.Bus
	isDeaf atomic.Bool
}

type deafKV struct {
	bus.KV
	bus *deafBus
}

func (b *deafBus) KV(ctx context.Context, bucket string) (bus.KV, error) {
	kv, err := b.Bus.KV(ctx, bucket)
	return &deafKV{kv, b}, err
}

func (k *deafKV) Watch(ctx context.Context, prefix string, see func(bus.Entry), ready func()) (func(), error) {
	return k.KV.Watch(ctx, prefix, func(e bus.Entry) {
		if !k.bus.isDeaf.Load() {
			see(e)
		}
	}, ready)
}
