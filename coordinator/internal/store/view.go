package store

import (
	"slices"
	"sync"
	"time"

	"github.com/proofrack/proofrack/shared/job"
)

// Job is a record as it was at one revision. The record is shared: who wants to change it uses Store.Update.
type Job struct {
	Record   *job.Record
	Revision uint64

	bytes int // as it is stored
}

// goneMax bounds the memory of jobs whose record went away.
const goneMax = 1024

// view is all records in memory. All methods may be called from several goroutines.
type view struct {
	mu      sync.RWMutex
	jobs    map[job.ID]Job
	order   []job.ID // sorted, which is by time of submission
	live    map[job.ID]struct{}
	retired map[job.ID]uint64    // deleted by us, up to this revision: no loss
	lost    map[job.ID]time.Time // records that somebody else deleted
	feeds   map[*Feed]struct{}
	counts  map[job.State]int
	changed chan struct{} // closed and replaced at each change
}

func newView() *view {
	return &view{
		jobs: map[job.ID]Job{}, live: map[job.ID]struct{}{}, retired: map[job.ID]uint64{}, lost: map[job.ID]time.Time{},
		feeds: map[*Feed]struct{}{}, counts: map[job.State]int{}, changed: make(chan struct{}),
	}
}

// put takes a record unless a later one is there; older tells that one is.
func (v *view) put(j Job) (older bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	id := j.Record.ID
	old, had := v.jobs[id]
	if had && old.Revision >= j.Revision {
		return old.Revision > j.Revision
	}
	if gone, ok := v.retired[id]; ok && gone >= j.Revision {
		return true
	}
	if had {
		v.counts[old.Record.State]--
	} else {
		at, _ := slices.BinarySearch(v.order, id)
		v.order = slices.Insert(v.order, at, id)
	}
	v.jobs[id] = j
	v.counts[j.Record.State]++
	if j.Record.State.Ended() {
		delete(v.live, id)
	} else {
		v.live[id] = struct{}{}
	}
	delete(v.lost, id)
	v.tell(id)
	return false
}

// drop forgets a record that was deleted at a revision. retired tells that this is this program's doing, which fails
// for a later record. What the store itself says is gone is gone, at whatever revision: a store that lost its disk
// begins again at the first one, and its last answers may not have come back to us by the watch.
func (v *view) drop(id job.ID, revision uint64, retired bool, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if retired {
		bound(v.retired)
		v.retired[id] = max(v.retired[id], revision)
	}
	old, had := v.jobs[id]
	if !had || retired && old.Revision > revision {
		return // what we were to delete was changed meanwhile
	}
	v.remove(old, now)
}

// remove takes a record away; the lock is held.
func (v *view) remove(old Job, now time.Time) {
	id := old.Record.ID
	delete(v.jobs, id)
	delete(v.live, id)
	v.counts[old.Record.State]--
	if at, found := slices.BinarySearch(v.order, id); found {
		v.order = slices.Delete(v.order, at, at+1)
	}
	// A deletion that was announced as ours, or of a job that had ended, is retention; anything else is a loss.
	if _, ours := v.retired[id]; !ours && !old.Record.State.Ended() {
		bound(v.lost)
		v.lost[id] = now
	}
	v.tell(id)
}

// bound drops any entry of a full map.
func bound[V any](m map[job.ID]V) {
	for id := range m {
		if len(m) < goneMax {
			return
		}
		delete(m, id)
	}
}

func (v *view) tell(id job.ID) {
	for f := range v.feeds {
		f.add(id)
	}
	close(v.changed)
	v.changed = make(chan struct{})
}

func (v *view) get(id job.ID) (Job, bool) {
	v.mu.RLock()
	defer v.mu.RUnlock()
	j, ok := v.jobs[id]
	return j, ok
}

// Feed tells which jobs changed. Changes are merged per job, so it is bounded by the number of jobs; its reader takes
// the present record and never misses the last change.
type Feed struct {
	view  *view
	ready chan struct{}

	mu    sync.Mutex
	dirty map[job.ID]struct{}
}

// Follow begins a feed; at first every job is in it. It must be closed.
func (s *Store) Follow() *Feed {
	f := &Feed{view: s.view, ready: make(chan struct{}, 1), dirty: map[job.ID]struct{}{}}
	v := s.view
	v.mu.Lock()
	defer v.mu.Unlock()
	v.feeds[f] = struct{}{}
	for _, id := range v.order {
		f.add(id)
	}
	return f
}

// Ready gives a value when there is something to take.
func (f *Feed) Ready() <-chan struct{} { return f.ready }

// Take gives the jobs that changed since the last call, oldest submission first.
func (f *Feed) Take() []job.ID {
	f.mu.Lock()
	ids := make([]job.ID, 0, len(f.dirty))
	for id := range f.dirty {
		ids = append(ids, id)
	}
	clear(f.dirty)
	f.mu.Unlock()
	slices.Sort(ids)
	return ids
}

// Close ends the feed.
func (f *Feed) Close() {
	f.view.mu.Lock()
	defer f.view.mu.Unlock()
	delete(f.view.feeds, f)
}

func (f *Feed) add(id job.ID) {
	f.mu.Lock()
	f.dirty[id] = struct{}{}
	f.mu.Unlock()
	select {
	case f.ready <- struct{}{}:
	default:
	}
}

// Query selects jobs; zero fields select all.
type Query struct {
	Tenant job.Tenant
	State  job.State
	Before job.ID // older than this one
	Limit  int    // 0 is no limit
}

// List gives jobs, newest first, and whether there are more.
func (s *Store) List(q Query) (jobs []Job, more bool) {
	v := s.view
	v.mu.RLock()
	defer v.mu.RUnlock()
	end := len(v.order)
	if q.Before != "" {
		end, _ = slices.BinarySearch(v.order, q.Before)
	}
	for i := end - 1; i >= 0; i-- {
		j := v.jobs[v.order[i]]
		if q.Tenant != "" && j.Record.Tenant != q.Tenant || q.State != "" && j.Record.State != q.State {
			continue
		}
		if q.Limit > 0 && len(jobs) == q.Limit {
			return jobs, true
		}
		jobs = append(jobs, j)
	}
	return jobs, false
}

// Live gives the jobs that have not ended, oldest first.
func (s *Store) Live() []Job {
	v := s.view
	v.mu.RLock()
	defer v.mu.RUnlock()
	ids := make([]job.ID, 0, len(v.live))
	for id := range v.live {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	jobs := make([]Job, len(ids))
	for i, id := range ids {
		jobs[i] = v.jobs[id]
	}
	return jobs
}

// Counts gives the number of jobs in each state.
func (s *Store) Counts() map[job.State]int {
	s.view.mu.RLock()
	defer s.view.mu.RUnlock()
	out := make(map[job.State]int, len(s.view.counts))
	for state, n := range s.view.counts {
		out[state] = n
	}
	return out
}

// Lost tells whether a job's record went away while it was wanted, and when that was seen.
func (s *Store) Lost(id job.ID) (time.Time, bool) {
	s.view.mu.RLock()
	defer s.view.mu.RUnlock()
	at, ok := s.view.lost[id]
	return at, ok
}
