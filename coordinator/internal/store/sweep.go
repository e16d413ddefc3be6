package store

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// Swept counts what a sweep removed.
type Swept struct {
	Jobs, Keys, Objects, Inputs, Audits int
}

// Total is the number of things removed.
func (w Swept) Total() int { return w.Jobs + w.Keys + w.Objects + w.Inputs + w.Audits }

// sweepMax bounds what one sweep removes of each kind; the next one goes on.
const sweepMax = 1000

// Sweep removes what is past its retention and what has no owner (invariant 9): ended jobs by age and number, key
// entries and objects without a record, clients' uploads by age, audit records by age and number. Only the leader may
// call it. It goes on after an error and gives all of them.
func (s *Store) Sweep(ctx context.Context, tenants []job.Tenant, now time.Time) (Swept, error) {
	s.sweepMu.Lock()
	defer s.sweepMu.Unlock()
	var w Swept
	var errs []error
	note := func(n int, err error) int {
		errs = append(errs, err)
		return n
	}
	w.Jobs = note(s.sweepJobs(ctx, now))
	w.Keys = note(s.sweepKeys(ctx))
	w.Objects = note(s.sweepSlices(ctx, now))
	for _, t := range s.tenants(tenants) {
		w.Objects += note(s.sweepProofs(ctx, t, now))
		w.Inputs += note(s.sweepUploads(ctx, t, now))
	}
	w.Audits = note(s.sweepAudits(ctx, now))
	return w, errors.Join(errs...)
}

// tenants are the given ones and those that have jobs.
func (s *Store) tenants(known []job.Tenant) []job.Tenant {
	seen := map[job.Tenant]bool{}
	var all []job.Tenant
	add := func(t job.Tenant) {
		if !seen[t] {
			seen[t] = true
			all = append(all, t)
		}
	}
	for _, t := range known {
		add(t)
	}
	jobs, _ := s.List(Query{})
	for _, j := range jobs {
		add(j.Record.Tenant)
	}
	return all
}

// sweepJobs keeps each tenant's latest ended jobs: no tenant's results go because another one has many.
func (s *Store) sweepJobs(ctx context.Context, now time.Time) (n int, err error) {
	jobs, _ := s.List(Query{})
	due, early, unproved := s.dueJobs(jobs, now)
	defer func() {
		s.tooEarly(early, "ended jobs and their proofs", "job_bytes")
		s.tooEarly(unproved, "ended jobs and their proofs, of a tenant with many or large ones", "proof_bytes")
	}()
	for _, j := range due {
		if n == sweepMax {
			return n, nil
		}
		if err := s.Remove(ctx, j); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// dueJobs are the ended ones of jobs, which are the newest first, that are not kept any longer, the oldest first; early
// is how many of them only go for want of room for records, unproved for want of room for proofs.
func (s *Store) dueJobs(jobs []Job, now time.Time) (due []Job, early, unproved int) {
	kept := map[job.Tenant][]Job{}
	proofs := map[job.Tenant]int64{} // bytes
	var bytes []int64                // of what is kept, by tenant
	for _, j := range jobs {
		r := j.Record
		if r.Result != nil {
			proofs[r.Tenant] += r.Result.Bytes + objectBytes
		}
		switch {
		case !r.State.Ended():
		case len(kept[r.Tenant]) >= s.cfg.RetentionCount, r.EndedAt == nil, now.Sub(*r.EndedAt) >= s.cfg.Retention:
			due = append(due, j)
		case s.cfg.ProofBytesMax > 0 && r.Result != nil && proofs[r.Tenant] > s.cfg.ProofBytesMax/proofShare:
			due = append(due, j)
			unproved++
		default:
			kept[r.Tenant] = append(kept[r.Tenant], j)
		}
	}
	for _, mine := range kept {
		sum := int64(0)
		for _, j := range mine {
			sum += need(j)
		}
		bytes = append(bytes, sum)
	}
	share := fairShare(s.recordRoom(), bytes)
	for _, mine := range kept {
		left := share
		for _, j := range mine {
			if left -= need(j); left < 0 {
				due = append(due, j)
				early++
			}
		}
	}
	slices.SortFunc(due, func(a, b Job) int { return strings.Compare(string(a.Record.ID), string(b.Record.ID)) })
	return due, early, unproved
}

// fairShare is the most that each of some wants may get so that all together get no more than the room.
func fairShare(room int64, wants []int64) int64 {
	slices.Sort(wants)
	for i, want := range wants {
		share := room / int64(len(wants)-i)
		if want > share {
			return max(0, share)
		}
		room -= want
	}
	return math.MaxInt64
}

// sweepKeys removes key entries that had no record at two sweeps and did not change between them.
func (s *Store) sweepKeys(ctx context.Context) (n int, err error) {
	keys, err := s.kv.Keys(ctx, "key.")
	if err != nil {
		return 0, fmt.Errorf("list key entries: %w", err)
	}
	loose := map[string]uint64{}
	owned := s.ownedKeys()
	for _, key := range keys {
		if owned[key] || len(loose) == sweepMax {
			continue
		}
		e, entry, err := s.keyEntry(ctx, key)
		if err != nil {
			continue // gone, or unreadable: not ours to judge
		}
		if _, err := s.Fetch(ctx, entry.Job); fault.KindOf(err) != fault.NotFound {
			continue
		}
		if s.looseKeys[key] != e.Revision {
			loose[key] = e.Revision
			continue
		}
		if err := s.delete(ctx, key, e.Revision); err != nil && fault.KindOf(err) != fault.Conflict {
			return n, fmt.Errorf("remove key entry: %w", err)
		}
		n++
	}
	s.looseKeys = loose
	return n, nil
}

func (s *Store) ownedKeys() map[string]bool {
	owned := map[string]bool{}
	jobs, _ := s.List(Query{})
	for _, j := range jobs {
		if j.Record.Key != "" {
			owned[wire.IdempotencyKey(j.Record.Tenant, j.Record.Key)] = true
		}
	}
	return owned
}

// sweepSlices removes slices and inputs without a record, or of a job that needs them no more. A job that failed may be
// replayed.
func (s *Store) sweepSlices(ctx context.Context, now time.Time) (int, error) {
	return s.sweepObjects(ctx, wire.ObjectsSlices, now, s.cfg.OrphanAge, func(name string) bool {
		id, _, _ := strings.Cut(name, ".")
		return s.wanted(ctx, job.ID(id), func(r *job.Record) bool {
			return r.State != job.Done && r.State != job.Cancelled
		})
	}, s.dropReplays)
}

func (s *Store) sweepProofs(ctx context.Context, t job.Tenant, now time.Time) (int, error) {
	return s.sweepObjects(ctx, wire.ObjectsProofs(t), now, s.cfg.OrphanAge, func(name string) bool {
		return s.wanted(ctx, job.ID(name), func(r *job.Record) bool { return r.State == job.Active || r.State == job.Done })
	}, func(ctx context.Context, list []bus.ObjectInfo) (int, error) { return s.dropUnproved(ctx, t, list) })
}

// dropUnproved removes proofs of jobs that were cancelled or failed after theirs was stored: no age has to protect
// those, since a proof is stored after its job.
func (s *Store) dropUnproved(ctx context.Context, t job.Tenant, list []bus.ObjectInfo) (n int, err error) {
	unproved := func(j Job) bool { return j.Record.State == job.Cancelled || j.Record.State == job.Failed }
	for _, o := range list {
		j, ok := s.Get(job.ID(o.Name))
		if !ok || !unproved(j) || n == sweepMax {
			continue
		}
		// The view may be behind: a failed job may have been replayed meanwhile.
		if j, err = s.Fetch(ctx, j.Record.ID); err != nil || !unproved(j) {
			continue
		}
		if err := s.dropObject(ctx, wire.ObjectsProofs(t), o.Name); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (s *Store) sweepUploads(ctx context.Context, t job.Tenant, now time.Time) (int, error) {
	return s.sweepObjects(ctx, wire.ObjectsIn(t), now, s.cfg.InputRetention, func(string) bool { return false }, nil)
}

// wanted asks the bucket itself before something counts as without owner: the view may be behind. Names that are none
// of a job are left alone.
func (s *Store) wanted(ctx context.Context, id job.ID, by func(*job.Record) bool) bool {
	if _, err := job.ParseID(string(id)); err != nil {
		return true
	}
	j, ok := s.Get(id)
	if !ok {
		var err error
		if j, err = s.Fetch(ctx, id); err != nil {
			return fault.KindOf(err) != fault.NotFound
		}
	}
	return by(j.Record)
}

func (s *Store) sweepObjects(
	ctx context.Context, bucket string, now time.Time, age time.Duration, wanted func(name string) bool,
	more func(context.Context, []bus.ObjectInfo) (int, error),
) (n int, err error) {
	objects, err := s.bus.Objects(ctx, bucket)
	if err != nil {
		if fault.KindOf(err) == fault.NotFound {
			return 0, nil
		}
		return 0, fmt.Errorf("open objects %s: %w", bucket, err)
	}
	list, err := objects.List(ctx)
	if err != nil {
		return 0, fmt.Errorf("list objects %s: %w", bucket, err)
	}
	// The pieces of an upload that nobody goes on with go sooner than whole uploads (B67).
	if _, err := objects.Sweep(ctx, now.Add(-min(age, s.cfg.OrphanAge))); err != nil {
		return 0, fmt.Errorf("sweep interrupted uploads of %s: %w", bucket, err)
	}
	for _, o := range list {
		if now.Sub(o.Modified) < age || n == sweepMax || wanted(o.Name) {
			continue
		}
		if err := s.dropObject(ctx, bucket, o.Name); err != nil {
			return n, err
		}
		n++
	}
	if more == nil {
		return n, nil
	}
	further, err := more(ctx, list)
	return n + further, err
}

func (s *Store) sweepAudits(ctx context.Context, now time.Time) (n int, err error) {
	keys, err := s.kv.Keys(ctx, auditPrefix)
	if err != nil {
		return 0, fmt.Errorf("list audit records: %w", err)
	}
	count, early := s.cfg.AuditCount, 0
	fit, err := s.auditsThatFit(ctx, keys)
	if err != nil {
		return 0, err
	}
	s.auditFloor = ""
	defer func() { s.tooEarly(early, "audit records", "job_bytes") }()
	for i, key := range keys { // oldest first
		left := len(keys) - i
		if left <= min(count, fit) {
			due, err := s.auditDue(ctx, key, now)
			if err != nil {
				return n, err
			}
			if !due {
				break
			}
		} else if left <= count {
			early++
		}
		if n == sweepMax {
			break
		}
		if err := s.delete(ctx, key, 0); err != nil {
			return n, fmt.Errorf("remove %s: %w", key, err)
		}
		n++
	}
	if n < len(keys) && n > 0 {
		s.auditFloor = keys[n]
	}
	return n, nil
}

// auditDue tells whether an audit record is past its retention, or gone.
func (s *Store) auditDue(ctx context.Context, key string, now time.Time) (bool, error) {
	a, _, err := s.audit(ctx, key)
	if fault.KindOf(err) == fault.NotFound {
		return true, nil
	}
	return err == nil && now.Sub(a.EndedAt) >= s.cfg.AuditRetention, err
}
