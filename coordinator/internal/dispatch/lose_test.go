package dispatch_test

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/proofrack/proofrack/coordinator/internal/dispatch"
	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// given waits until the only partition of a new job is given to the node.
func (r *reign) given() job.Attempt {
	r.t.Helper()
	r.pass(10 * time.Second)
	id := r.submit(1)
	r.pass(2 * time.Second)
	j, _ := r.store.Get(id)
	if j.Record.Partitions[0].Stage != job.Reserved {
		r.t.Fatalf("the partition is %s", j.Record.Partitions[0].Stage)
	}
	return j.Record.Attempt(0)
}

func (r *reign) lostCount() int64 {
	r.t.Helper()
	counts, err := r.leader.Counts(r.t.Context())
	r.check(err)
	return counts.Lost
}

// The leader decides that an attempt is lost, and before it has written that the attempt has ended otherwise: nothing
// counts or says that it was lost or handed back.
func TestAnAttemptThatEndedMeanwhileIsNotCountedAsLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end  func(*job.Record, job.Attempt) error
		take func(*reign, job.Attempt) error
	}{
		"proved, then lost": {
			func(r *job.Record, a job.Attempt) error { return r.Accept(a, make([]byte, 192), time.Now()) },
			func(r *reign, a job.Attempt) error { return r.leader.Lose(r.t.Context(), a, "no progress") },
		},
		"failed, then lost": {
			func(r *job.Record, a job.Attempt) error {
				return r.Fail(a, &fault.Report{Kind: fault.Device, Message: "x"}, job.DefaultPolicy(), time.Now())
			},
			func(r *reign, a job.Attempt) error { return r.leader.Lose(r.t.Context(), a, "no progress") },
		},
		"cancelled, then lost": {
			func(r *job.Record, _ job.Attempt) error {
				return r.Cancel(&fault.Report{Kind: fault.Cancelled, Message: "x"}, time.Now())
			},
			func(r *reign, a job.Attempt) error { return r.leader.Lose(r.t.Context(), a, "no progress") },
		},
		"proved, then handed back": {
			func(r *job.Record, a job.Attempt) error { return r.Accept(a, make([]byte, 192), time.Now()) },
			func(r *reign, a job.Attempt) error { return r.leader.TakeBack(r.t.Context(), a, "nobody has it") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			leading(t, func(r *reign) {
				a := r.given()
				_, err := r.store.Update(r.t.Context(), a.Job, func(record *job.Record) error { return c.end(record, a) })
				r.check(err)
				r.check(c.take(r, a))
				r.pass(time.Second)
				if n := r.lostCount(); n != 0 {
					r.t.Errorf("%d attempts count as lost", n)
				}
				if text := r.logged.String(); strings.Contains(text, "was lost") || strings.Contains(text, "handed back") {
					r.t.Errorf("logged: %s", text)
				}
			})
		})
	}
}

// Its worker says that it is proved, gives its bytes back, and dies before the result is out: nothing is booked any
// more whose lease could end, and all the same the partition is given to another attempt.
func TestAProvedAttemptWhoseResultNeverComesIsLost(t *testing.T) {
	t.Parallel()
	leading(t, func(r *reign) {
		a := r.given()
		for _, report := range []*wire.Report{
			{Attempt: a, Node: "n1", Stage: job.Proved}, {Attempt: a, Node: "n1", Freed: true},
		} {
			data, err := wire.Encode(report)
			r.check(err)
			r.check(r.bus.Send(r.t.Context(), bus.Message{Subject: wire.ReportSubject("n1"), Data: data}))
			r.pass(time.Second)
		}
		fence := func() uint64 {
			j, _ := r.store.Get(a.Job)
			return uint64(j.Record.Partitions[0].Fence)
		}
		cfg := dispatch.DefaultConfig()
		r.pass(3 * cfg.Lease)
		if j, _ := r.store.Get(a.Job); j.Record.Partitions[0].Stage != job.Proved || fence() != uint64(a.Fence) {
			r.t.Fatalf("while its result may be on the way it is %s by fence %d", j.Record.Partitions[0].Stage, fence())
		}
		r.pass(3 * cfg.Lease)
		if fence() == uint64(a.Fence) {
			r.t.Error("nobody else got the partition")
		}
	})
}

// deafBus is a server whose answer to one change of a record gets lost, once that is asked for.
type deafBus struct {
	bus.Bus
	deaf *atomic.Bool
}

func (b deafBus) KV(ctx context.Context, bucket string) (bus.KV, error) {
	kv, err := b.Bus.KV(ctx, bucket)
	return deafKV{kv, b.deaf}, err
}

type deafKV struct {
	bus.KV
	deaf *atomic.Bool
}

func (k deafKV) Update(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	next, err := k.KV.Update(ctx, key, data, revision)
	if err == nil && bytes.Contains(data, []byte("no progress")) && k.deaf.Swap(false) {
		return 0, fault.New(fault.Transient, "the answer was lost")
	}
	return next, err
}

// The change is stored and its answer lost: the next try finds it done, and it counts once.
func TestALossWhoseAnswerWasLostCountsOnce(t *testing.T) {
	t.Parallel()
	deaf := &atomic.Bool{}
	leadingOn(t, func(b bus.Bus) bus.Bus { return deafBus{b, deaf} }, func(r *reign) {
		a := r.given()
		deaf.Store(true)
		for range 3 {
			r.check(r.leader.Lose(r.t.Context(), a, "no progress"))
			r.pass(time.Second)
		}
		if deaf.Load() {
			r.t.Fatal("no answer was lost")
		}
		if n := r.lostCount(); n != 1 {
			r.t.Errorf("%d attempts count as lost, want 1", n)
		}
		if n := strings.Count(r.logged.String(), "attempt was lost"); n != 1 {
			r.t.Errorf("logged %d times that the attempt was lost", n)
		}
	})
}
