package store_test

import (
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// staleBus answers the next reads of records and objects as a server does that stood still while they were written, and
// still takes itself for the leader.
type staleBus struct {
	bus.Bus
	reads atomic.Int64 // that are answered so
}

type staleKV struct {
	bus.KV
	bus *staleBus
}

type staleObjects struct {
	bus.Objects
	bus *staleBus
}

func (b *staleBus) stale() error {
	if b.reads.Add(-1) >= 0 {
		return fault.New(fault.NotFound, "not written yet")
	}
	return nil
}

func (b *staleBus) KV(ctx context.Context, bucket string) (bus.KV, error) {
	kv, err := b.Bus.KV(ctx, bucket)
	return &staleKV{kv, b}, err
}

func (b *staleBus) Objects(ctx context.Context, bucket string) (bus.Objects, error) {
	o, err := b.Bus.Objects(ctx, bucket)
	return &staleObjects{o, b}, err
}

func (k *staleKV) Get(ctx context.Context, key string) (bus.Entry, error) {
	if strings.HasPrefix(key, wire.JobKeyPrefix) {
		if err := k.bus.stale(); err != nil {
			return bus.Entry{}, err
		}
	}
	return k.KV.Get(ctx, key)
}

func (o *staleObjects) Get(ctx context.Context, name string, bytesMax int64) (io.ReadCloser, bus.ObjectInfo, error) {
	if err := o.bus.stale(); err != nil {
		return nil, bus.ObjectInfo{}, err
	}
	return o.Objects.Get(ctx, name, bytesMax)
}

// stale opens a store on such a bus.
func (w *world) stale(edit func(*store.Config)) (*store.Store, *staleBus) {
	w.t.Helper()
	c := store.DefaultConfig()
	edit(&c)
	b := &staleBus{Bus: w.bus}
	s, err := store.Open(w.t.Context(), b, c, zerolog.Nop())
	w.check(err)
	w.t.Cleanup(s.Close)
	return s, b
}

// Invariant 7: that a server does not know a job yet whose key was confirmed does not give the key to another one.
func TestAKeyIsNotTakenOverForAServerThatIsBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first, err := w.open().Create(t.Context(), record(t, keyed("k", "aa")))
	w.check(err)
	s, b := w.stale(func(c *store.Config) { c.RollbackAfter = time.Minute })
	b.reads.Store(3)
	again, err := s.Create(t.Context(), record(t, keyed("k", "aa")))
	if err != nil || !again.Existing || again.Job.Record.ID != first.Job.Record.ID {
		t.Errorf("the key of job %s gives %+v, %v", first.Job.Record.ID, again, err)
	}

	// A job that is gone gives its key free after a while.
	w.check(w.removeRecord(first.Job.Record.ID))
	gone, _ := w.stale(func(c *store.Config) { c.RollbackAfter = 10 * time.Millisecond })
	second, err := gone.Create(t.Context(), record(t, keyed("k", "bb")))
	if err != nil || second.Existing {
		t.Errorf("the key of a job that is gone gives %+v, %v", second, err)
	}
}

func (w *world) removeRecord(id job.ID) error {
	kv, err := w.bus.KV(w.t.Context(), wire.BucketJobs)
	if err != nil {
		return err
	}
	return kv.Delete(w.t.Context(), wire.JobKey(id), 0)
}

// Invariant 3: no job fails for want of a slice that a server does not know yet.
func TestASliceIsGoneOnlyAtASecondLook(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, b := w.stale(func(c *store.Config) { c.RollbackAfter = 10 * time.Millisecond })
	r := record(t)
	var err error
	r.Partitions[0].Slice, err = s.PutInput(t.Context(), wire.SliceName(r.ID, 0), []byte("slice"))
	w.check(err)
	b.reads.Store(1)
	if there, err := s.HasSlice(t.Context(), r, 0); err != nil || !there {
		t.Errorf("a slice that is there: %v, %v", there, err)
	}
	w.check(s.DeleteInput(t.Context(), wire.SliceName(r.ID, 0)))
	if there, err := s.HasSlice(t.Context(), r, 0); err != nil || there {
		t.Errorf("a slice that is gone: %v, %v", there, err)
	}
}
