package api

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/proofrack/proofrack/coordinator/internal/rack"
	"github.com/proofrack/proofrack/coordinator/internal/store"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/bus/membus"
	"github.com/proofrack/proofrack/shared/bytesize"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// behind is a bus whose watches tell what was there when they began, and then nothing.
type behind struct{ bus.Bus }

func (b behind) KV(ctx context.Context, bucket string) (bus.KV, error) {
	kv, err := b.Bus.KV(ctx, bucket)
	return behindKV{kv}, err
}

type behindKV struct{ bus.KV }

func (k behindKV) Watch(ctx context.Context, prefix string, see func(bus.Entry), ready func()) (func(), error) {
	isReady := false
	return k.KV.Watch(ctx, prefix, func(e bus.Entry) {
		if !isReady {
			see(e)
		}
	}, func() { isReady = true; ready() })
}

// twoInstances are one whose view is up to date and one that is behind, on the same bucket.
func twoInstances(t *testing.T) (ahead, late *store.Store) {
	t.Helper()
	server := membus.New(membus.Config{})
	open := func(wrap func(bus.Bus) bus.Bus) *store.Store {
		b := server.Connect(bus.Events{})
		t.Cleanup(b.Close)
		size := 8 * bytesize.MiB
		err := b.Setup(t.Context(), bus.Topology{Buckets: []bus.Bucket{
			{Name: wire.BucketJobs, BytesMax: size}, {Name: wire.BucketNodes, BytesMax: size},
		}})
		if err != nil {
			t.Fatal(err)
		}
		s, err := store.Open(t.Context(), wrap(b), store.DefaultConfig(), zerolog.Nop())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
	return open(func(b bus.Bus) bus.Bus { return b }), open(func(b bus.Bus) bus.Bus { return behind{b} })
}

func accepted(t *testing.T, s *store.Store) *job.Record {
	t.Helper()
	id, err := job.NewID()
	if err != nil {
		t.Fatal(err)
	}
	created, err := s.Create(t.Context(), &job.Record{
		ID: id, Tenant: job.MainTenant, InputHash: "aa", Circuit: "toy", State: job.Active,
		SubmittedAt: time.Now().UTC(), Partitions: []job.Partition{{Stage: job.Waiting}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return created.Job.Record
}

// One coordinator accepts a job, another one is asked about it before its view has it: an accepted job is never
// unknown (invariant 3).
func TestAJobThatAnotherInstanceAcceptedIsKnownAtOnce(t *testing.T) {
	t.Parallel()
	ahead, late := twoInstances(t)
	nodes, err := rack.New(rack.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	r := accepted(t, ahead)
	i := &Instance{Store: late, Nodes: nodes}
	reply, err := i.status(t.Context(), wire.ClientSubject(wire.VerbStatus, job.MainTenant), &wire.JobRequest{Job: r.ID})
	if err != nil || reply.Record == nil || reply.Record.ID != r.ID {
		t.Fatalf("status of an accepted job: %+v, %v", reply, err)
	}
	other, err := i.status(t.Context(), wire.ClientSubject(wire.VerbStatus, "other"), &wire.JobRequest{Job: r.ID})
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("another tenant sees it: %+v, %v", other, err)
	}
	unknown, err := job.NewID()
	if err != nil {
		t.Fatal(err)
	}
	_, err = i.status(t.Context(), wire.ClientSubject(wire.VerbStatus, job.MainTenant), &wire.JobRequest{Job: unknown})
	if fault.KindOf(err) != fault.NotFound {
		t.Errorf("status of a job that never was: %v", err)
	}
}
