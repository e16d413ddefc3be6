package store

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// What the view has of a key is later than what the watch tells when this program wrote it a moment ago. It also is
// when NATS was restored from a backup: revisions went back then, and the view would keep records that are nowhere any
// more. Time tells which: the watch is soon where this program's own write is, and a restored bucket never is. So what
// is told late is looked up after [Config.RollbackAfter], and what the bucket has then replaces what the view has. A
// mistake mends itself: the next thing that the watch tells is later.
//
// Nothing late is told where the watch fell behind before NATS was restored: it never told what this program wrote, and
// the bucket has again what it told last. So whenever it has read everything anew, what is known and not what it told
// is looked up as well.

// doubts are the keys of one bucket of which something older was told than is known.
type doubts struct {
	kv bus.KV
	// known is the revision that is known of a key, or was when it was removed, 0 for none; has is the one that is there.
	// restore puts an older entry in its place, or the same.
	known   func(key string) uint64
	has     func(key string) uint64
	restore func(e bus.Entry, known uint64)
	// lose takes away a key that the bucket has not.
	lose func(key string, known uint64)

	mu   sync.Mutex
	told map[string]uint64 // the revisions of the keys that are there, as the watch tells
	keys map[string]doubt
	woke chan struct{}
}

type doubt struct {
	known   uint64
	since   time.Time
	missing bool // the bucket had it not when it was looked up, which a server says too that is behind
}

func newDoubts(
	kv bus.KV, known, has func(string) uint64, restore func(bus.Entry, uint64), lose func(string, uint64),
) *doubts {
	return &doubts{
		kv: kv, known: known, has: has, restore: restore, lose: lose,
		told: map[string]uint64{}, keys: map[string]doubt{}, woke: make(chan struct{}, 1),
	}
}

// tell notes what the watch tells.
func (d *doubts) tell(e bus.Entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.Deleted {
		delete(d.told, e.Key)
		return
	}
	d.told[e.Key] = e.Revision
}

// compare doubts what is known where the watch, which has just read everything, told something else. keys are the ones
// of which something is known.
func (d *doubts) compare(keys []string, now time.Time) {
	d.mu.Lock()
	var differ []string
	for key, revision := range d.told {
		if d.has(key) != revision {
			differ = append(differ, key)
		}
	}
	for _, key := range keys {
		if _, told := d.told[key]; !told {
			differ = append(differ, key)
		}
	}
	d.mu.Unlock()
	for _, key := range differ {
		d.add(key, now)
	}
}

// add notes that of a key something older was told.
func (d *doubts) add(key string, now time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := d.known(key)
	if one, had := d.keys[key]; had && one.known == known {
		return
	}
	d.keys[key] = doubt{known: known, since: now}
	select {
	case d.woke <- struct{}{}:
	default:
	}
}

// run looks after doubts until ctx ends.
func (d *doubts) run(ctx context.Context, after, call time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-d.woke:
		}
		for d.count() > 0 {
			select {
			case <-ctx.Done():
				return
			case now := <-time.After(after):
				d.look(ctx, now.Add(-after), call)
			}
		}
	}
}

func (d *doubts) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.keys)
}

// look asks the bucket about doubts that are older than a moment.
func (d *doubts) look(ctx context.Context, before time.Time, call time.Duration) {
	d.mu.Lock()
	due := map[string]doubt{}
	for key, one := range d.keys {
		if !one.since.After(before) {
			due[key] = one
		}
	}
	d.mu.Unlock()
	for key, one := range due {
		next, settled := d.settle(ctx, key, one, call)
		d.mu.Lock()
		switch {
		case d.keys[key] != one:
		case settled:
			delete(d.keys, key)
		default:
			d.keys[key] = next
		}
		d.mu.Unlock()
	}
}

// settle tells whether a doubt is over, or what it is until the next look. What changed meanwhile is none: what the
// watch told last is looked at again.
func (d *doubts) settle(ctx context.Context, key string, one doubt, call time.Duration) (next doubt, settled bool) {
	if d.known(key) != one.known {
		return one, true
	}
	ctx, cancel := context.WithTimeout(ctx, call)
	defer cancel()
	e, err := d.kv.Get(ctx, key)
	switch {
	case fault.KindOf(err) == fault.NotFound && !one.missing:
		one.missing = true
		return one, false
	case fault.KindOf(err) == fault.NotFound:
		d.lose(key, one.known)
	case err != nil:
		return one, false
	case e.Revision <= one.known: // the same one comes back after we removed it
		d.restore(e, one.known)
	}
	return one, true
}

// knownOf is the revision that the view has of a record, or had when the record was removed.
func (s *Store) knownOf(key string) uint64 {
	return s.view.known(job.ID(strings.TrimPrefix(key, wire.JobKeyPrefix)))
}

// restoreRecord takes a record of a restored bucket.
func (s *Store) restoreRecord(e bus.Entry, known uint64) {
	id := job.ID(strings.TrimPrefix(e.Key, wire.JobKeyPrefix))
	r, err := decode(id, e.Value)
	if err != nil {
		s.log.Error().Err(err).Str("c2.job.id", string(id)).Msg("job record is unreadable")
		return
	}
	if s.view.restore(Job{Record: r, Revision: e.Revision, bytes: len(e.Value)}, known) {
		s.log.Warn().Str("c2.job.id", string(id)).Uint64("revision", e.Revision).Uint64("known", known).
			Msg("job record went back: NATS was restored")
	}
}

// hasOf is the revision of a record in view, 0 for none.
func (s *Store) hasOf(key string) uint64 {
	j, _ := s.view.get(job.ID(strings.TrimPrefix(key, wire.JobKeyPrefix)))
	return j.Revision
}

// loseRecord drops a record that is known by a revision and that a restored bucket has not.
func (s *Store) loseRecord(key string, known uint64) {
	id := job.ID(strings.TrimPrefix(key, wire.JobKeyPrefix))
	if s.view.lose(id, known, time.Now()) {
		s.log.Warn().Str("c2.job.id", string(id)).Uint64("known", known).Msg("job record is gone: NATS was restored")
	}
}

// lose drops a record if it is still known by a revision.
func (v *view) lose(id job.ID, known uint64, now time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	j, had := v.jobs[id]
	if !had || j.Revision != known {
		return false
	}
	v.remove(j, now)
	return true
}

// keys are the keys of the records in view.
func (v *view) keys() []string {
	v.mu.RLock()
	defer v.mu.RUnlock()
	keys := make([]string, len(v.order))
	for i, id := range v.order {
		keys[i] = wire.JobKey(id)
	}
	return keys
}

// known is the latest revision of a job that the view has, or has removed.
func (v *view) known(id job.ID) uint64 {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return max(v.jobs[id].Revision, v.retired[id])
}

// restore puts an older record in the place of the one that is known by a revision, if it still is.
func (v *view) restore(j Job, known uint64) bool {
	id := j.Record.ID
	v.mu.Lock()
	if have := v.jobs[id].Revision; max(have, v.retired[id]) != known || have == j.Revision {
		v.mu.Unlock()
		return false
	}
	delete(v.retired, id)
	if old, had := v.jobs[id]; had {
		old.Revision = 0
		v.jobs[id] = old
	}
	v.mu.Unlock()
	v.put(j)
	return true
}
