package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// ErrUnchanged is returned by a change that finds nothing to do: Update gives the present record without an error.
var ErrUnchanged = errors.New("nothing to change")

// conflictsMax bounds how often an update starts again because somebody else was faster.
const conflictsMax = 8

// Store keeps the jobs. All methods may be called from several goroutines.
type Store struct {
	cfg  Config
	bus  bus.Bus
	kv   bus.KV
	log  zerolog.Logger
	view *view
	// stops end the watches of buckets.
	stops []func()
	// jobDoubts and flagDoubts are about what is told late.
	jobDoubts, flagDoubts *doubts
	// updating keeps two changes of one record from getting into each other's way: who changes it has put its token in.
	// Waiting ends with the caller's context, which a mutex would not see.
	updating [64]chan struct{}

	flags flags
	// Keys without a record at the last sweep, by their revision.
	sweepMu   sync.Mutex
	looseKeys map[string]uint64
	// auditFloor is the oldest audit record that the last sweep left, when it removed some for want of room.
	auditFloor string
	toldAt     map[string]time.Time // by what was removed too early
}

// Open follows the bucket of jobs and returns when all records are in memory. The buckets must have been set up.
func Open(ctx context.Context, b bus.Bus, cfg Config, log zerolog.Logger) (*Store, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure store: %w", err)
	}
	kv, err := b.KV(ctx, wire.BucketJobs)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", wire.BucketJobs, err)
	}
	nodes, err := b.KV(ctx, wire.BucketNodes)
	if err != nil {
		return nil, fmt.Errorf("open bucket %s: %w", wire.BucketNodes, err)
	}
	s := &Store{
		cfg: cfg, bus: b, kv: kv, log: log, view: newView(), looseKeys: map[string]uint64{},
		toldAt: map[string]time.Time{},
	}
	s.flags.kv = nodes
	s.jobDoubts = newDoubts(kv, s.knownOf, s.hasOf, s.restoreRecord, s.loseRecord)
	s.flagDoubts = newDoubts(nodes, s.flags.known, s.flags.known, s.restoreFlag, s.loseFlag)
	for i := range s.updating {
		s.updating[i] = make(chan struct{}, 1)
	}
	for _, f := range []struct {
		bucket, prefix string
		kv             bus.KV
		see            func(bus.Entry)
		doubts         *doubts
		keys           func() []string
	}{
		{wire.BucketJobs, wire.JobKeyPrefix, kv, s.see, s.jobDoubts, s.view.keys},
		{wire.BucketNodes, "", nodes, s.seeFlag, s.flagDoubts, s.flags.keys},
	} {
		see := func(e bus.Entry) {
			f.doubts.tell(e)
			f.see(e)
		}
		whole := func() { f.doubts.compare(f.keys(), time.Now()) }
		if err := s.follow(ctx, f.kv, f.prefix, see, whole); err != nil {
			s.Close()
			return nil, fmt.Errorf("follow bucket %s: %w", f.bucket, err)
		}
	}
	for _, d := range []*doubts{s.jobDoubts, s.flagDoubts} {
		s.stops = append(s.stops, started(ctx, func(ctx context.Context) { d.run(ctx, cfg.RollbackAfter, cfg.CallTimeout) }))
	}
	return s, nil
}

// started runs something until stop is called, which waits for its end.
func started(ctx context.Context, run func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() { defer close(ended); run(ctx) }()
	return func() { cancel(); <-ended }
}

// follow watches a bucket until Close; it returns when the present values were seen, or ctx ends. whole is called then,
// and each time when they were seen anew.
func (s *Store) follow(ctx context.Context, kv bus.KV, prefix string, see func(bus.Entry), whole func()) error {
	caughtUp := make(chan struct{})
	once := sync.OnceFunc(func() { close(caughtUp) })
	stop, err := kv.Watch(context.WithoutCancel(ctx), prefix, see, func() {
		whole()
		once()
	})
	if err != nil {
		return err
	}
	s.stops = append(s.stops, stop)
	select {
	case <-caughtUp:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close stops following.
func (s *Store) Close() {
	for _, stop := range s.stops {
		stop()
	}
}

// see takes one entry of the bucket.
func (s *Store) see(e bus.Entry) {
	id := job.ID(strings.TrimPrefix(e.Key, wire.JobKeyPrefix))
	if e.Deleted {
		s.view.drop(id, e.Revision, false, time.Now())
		return
	}
	r, err := decode(id, e.Value)
	if err != nil {
		s.log.Error().Err(err).Str("c2.job.id", string(id)).Msg("job record is unreadable")
		return
	}
	if s.view.put(Job{Record: r, Revision: e.Revision, bytes: len(e.Value)}) {
		s.jobDoubts.add(e.Key, time.Now())
	}
}

// Get gives a job as it was last seen.
func (s *Store) Get(id job.ID) (Job, bool) { return s.view.get(id) }

// Fetch reads a job from the bucket. A missing one is fault.NotFound.
func (s *Store) Fetch(ctx context.Context, id job.ID) (Job, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	e, err := s.kv.Get(ctx, wire.JobKey(id))
	if err != nil {
		return Job{}, fmt.Errorf("read record of job %s: %w", id, err)
	}
	r, err := decode(id, e.Value)
	if err != nil {
		return Job{}, err
	}
	j := Job{Record: r, Revision: e.Revision, bytes: len(e.Value)}
	if s.view.put(j) {
		s.jobDoubts.add(e.Key, time.Now())
	}
	return j, nil
}

// Update changes a record by compare-and-swap. The change gets a copy; it may be called again with a later record when
// somebody else was faster, so it must decide from what it gets. Its error is returned as it is, with the record that
// it was about. Only the leader may call it.
func (s *Store) Update(ctx context.Context, id job.ID, change func(*job.Record) error) (Job, error) {
	turn := s.updating[slot(id)]
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return Job{}, fault.As(fault.Transient, fmt.Errorf("change record of job %s: %w", id, context.Cause(ctx)))
	}
	current, ok := s.view.get(id)
	for range conflictsMax {
		if !ok {
			var err error
			if current, err = s.Fetch(ctx, id); err != nil {
				return Job{}, err
			}
		}
		r := clone(current.Record)
		switch err := change(r); {
		case errors.Is(err, ErrUnchanged):
			return current, nil
		case err != nil:
			return current, err
		}
		data, err := encode(r)
		if err != nil {
			return current, err
		}
		known := s.view.known(id)
		revision, err := s.swap(ctx, wire.JobKey(id), data, current.Revision)
		if err == nil {
			next := Job{Record: r, Revision: revision, bytes: len(data)}
			if known > current.Revision { // and yet current was the last one: the bucket was restored
				s.view.restore(next, known)
			}
			s.view.put(next)
			return next, nil
		}
		if fault.KindOf(err) != fault.Conflict {
			return current, fmt.Errorf("write record of job %s: %w", id, err)
		}
		ok = false
	}
	return Job{}, fault.New(fault.Transient, "write record of job %s: changed by others %d times", id, conflictsMax)
}

// slot spreads jobs over the locks; the end of an id is random.
func slot(id job.ID) int {
	if len(id) < 2 {
		return 0
	}
	return (int(id[len(id)-1]) + 31*int(id[len(id)-2])) % 64
}

func (s *Store) swap(ctx context.Context, key string, data []byte, revision uint64) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	return s.kv.Update(ctx, key, data, revision)
}

// Remove deletes a record, its key entry and its objects, in this order: what a crash leaves is swept as without owner.
// It is for retention, and for a record that lost its key to another job.
func (s *Store) Remove(ctx context.Context, j Job) error {
	r := j.Record
	s.view.drop(r.ID, j.Revision, true, time.Now())
	if err := s.delete(ctx, wire.JobKey(r.ID), j.Revision); err != nil {
		return fmt.Errorf("remove record of job %s: %w", r.ID, err)
	}
	if err := s.removeKey(ctx, r); err != nil {
		return err
	}
	if err := s.DropInput(ctx, r.ID, len(r.Partitions)); err != nil {
		return err
	}
	return s.dropObject(ctx, wire.ObjectsProofs(r.Tenant), string(r.ID))
}

// removeKey removes a job's key entry, if it is still its own.
func (s *Store) removeKey(ctx context.Context, r *job.Record) error {
	if r.Key == "" {
		return nil
	}
	e, entry, err := s.keyEntry(ctx, wire.IdempotencyKey(r.Tenant, r.Key))
	switch {
	case fault.KindOf(err) == fault.NotFound, err == nil && entry.Job != r.ID:
		return nil
	case err != nil:
		return err
	}
	if err := s.delete(ctx, e.Key, e.Revision); err != nil && fault.KindOf(err) != fault.Conflict {
		return fmt.Errorf("remove key of job %s: %w", r.ID, err)
	}
	return nil
}

func (s *Store) delete(ctx context.Context, key string, revision uint64) error {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	if err := s.kv.Delete(ctx, key, revision); err != nil && fault.KindOf(err) != fault.NotFound {
		return err
	}
	return nil
}
