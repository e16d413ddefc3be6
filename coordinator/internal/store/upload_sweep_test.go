package store_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// sweptBus notes which buckets are swept of interrupted uploads, and how old these must be.
type sweptBus struct {
	bus.Bus

	mu  sync.Mutex
	age map[string]time.Duration
}

type sweptObjects struct {
	bus.Objects

	bus    *sweptBus
	bucket string
}

func (b *sweptBus) Objects(ctx context.Context, bucket string) (bus.Objects, error) {
	o, err := b.Bus.Objects(ctx, bucket)
	return &sweptObjects{Objects: o, bus: b, bucket: bucket}, err
}

func (o *sweptObjects) Sweep(ctx context.Context, before time.Time) (bytesize.Bytes, error) {
	o.bus.mu.Lock()
	o.bus.age[o.bucket] = epoch.Sub(before)
	o.bus.mu.Unlock()
	return o.Objects.Sweep(ctx, before)
}

// B67: the leader's sweep takes the pieces of interrupted uploads out of every bucket, long before whole uploads go.
func TestB67EveryBucketIsSweptOfInterruptedUploads(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := &sweptBus{Bus: w.bus, age: map[string]time.Duration{}}
	c := store.DefaultConfig()
	s, err := store.Open(t.Context(), b, c, zerolog.Nop())
	w.check(err)
	t.Cleanup(s.Close)
	_, err = s.Sweep(t.Context(), []job.Tenant{job.MainTenant}, epoch)
	w.check(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	want := map[string]time.Duration{
		wire.ObjectsSlices: c.OrphanAge, wire.ObjectsIn(job.MainTenant): c.OrphanAge,
		wire.ObjectsProofs(job.MainTenant): c.OrphanAge,
	}
	if diff := cmp.Diff(want, maps.Clone(b.age)); diff != "" {
		t.Error(diff)
	}
}
