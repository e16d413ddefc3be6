package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// auditPrefix is what keys of audit records begin with, in BucketJobs. Job ids sort by time, so keys do.
const auditPrefix = "audit."

// AuditOf makes the audit record of a finished job.
func AuditOf(r *job.Record) wire.Audit {
	a := wire.Audit{
		Job: r.ID, Tenant: r.Tenant, Miner: r.Miner, SectorNumber: r.SectorNumber, Circuit: r.Circuit,
		InputHash: r.InputHash, ParamsDigest: r.ParamsDigest, SubmittedAt: r.SubmittedAt,
	}
	if r.Result != nil {
		a.ProofSHA256 = r.Result.SHA256
	}
	if r.EndedAt != nil {
		a.EndedAt = *r.EndedAt
	}
	for i := range r.Partitions {
		p := &r.Partitions[i]
		a.AttemptCount += p.AttemptCount()
		for _, attempt := range slices.Backward(p.Attempts) {
			if attempt.Outcome == job.OutcomeOK {
				a.Attempts = append(a.Attempts, attempt)
				break
			}
		}
	}
	return a
}

// PutAudit keeps the audit record of a finished job; writing it again changes nothing.
func (s *Store) PutAudit(ctx context.Context, r *job.Record) error {
	data, err := json.Marshal(AuditOf(r))
	if err != nil {
		return fmt.Errorf("encode audit record of job %s: %w", r.ID, err)
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	if _, err := s.kv.Create(ctx, auditPrefix+string(r.ID), data); err != nil && fault.KindOf(err) != fault.Conflict {
		return fmt.Errorf("write audit record of job %s: %w", r.ID, err)
	}
	return nil
}

// PutMissingAudits writes the audit records of finished jobs that have none, since the leader crashed before it wrote
// them.
func (s *Store) PutMissingAudits(ctx context.Context, now time.Time) error {
	keys, err := s.kv.Keys(ctx, auditPrefix)
	if err != nil {
		return fmt.Errorf("list audit records: %w", err)
	}
	s.sweepMu.Lock()
	floor := s.auditFloor
	s.sweepMu.Unlock()
	jobs, _ := s.List(Query{State: job.Done})
	for _, j := range jobs {
		key := auditPrefix + string(j.Record.ID)
		_, found := slices.BinarySearch(keys, key)
		if found || key < floor || j.Record.EndedAt == nil || now.Sub(*j.Record.EndedAt) > s.cfg.AuditRetention/2 {
			continue
		}
		if err := s.PutAudit(ctx, j.Record); err != nil {
			return err
		}
	}
	return nil
}

// audit reads one audit record, and tells its size as it is stored.
func (s *Store) audit(ctx context.Context, key string) (a wire.Audit, bytes int, err error) {
	e, err := s.kv.Get(ctx, key)
	if err != nil {
		return a, 0, fmt.Errorf("read %s: %w", key, err)
	}
	if err := json.Unmarshal(e.Value, &a); err != nil {
		return a, 0, fault.As(fault.Corrupt, fmt.Errorf("decode %s: %w", key, err))
	}
	return a, len(e.Value), nil
}

// auditsRead bounds how many audit records one call of Audits reads.
const auditsRead = 1000

// Audits gives audit records, oldest submission first: those after a job, ended since a time; at most limit. next is
// the job to go on after, "" when there are no further ones: there may be fewer records than limit, or none, and yet
// further ones, since a call reads a bounded number.
func (s *Store) Audits(
	ctx context.Context, after job.ID, since time.Time, limit int,
) (out []wire.Audit, next job.ID, err error) {
	keys, err := s.kv.Keys(ctx, auditPrefix)
	if err != nil {
		return nil, "", fmt.Errorf("list audit records: %w", err)
	}
	slices.Sort(keys)
	from, found := slices.BinarySearch(keys, auditPrefix+string(after))
	if found {
		from++
	}
	for i, key := range keys[from:] {
		if i == auditsRead || len(out) == limit {
			return out, job.ID(strings.TrimPrefix(keys[from+i-1], auditPrefix)), nil
		}
		a, _, err := s.audit(ctx, key)
		if fault.KindOf(err) == fault.NotFound {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if !a.EndedAt.Before(since) {
			out = append(out, a)
		}
	}
	return out, "", nil
}
