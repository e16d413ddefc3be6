package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/proofrack/proofrack/shared/bus"
	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/job"
	"github.com/proofrack/proofrack/shared/wire"
)

// Created is what came of Create.
type Created struct {
	Job Job
	// Existing tells that the same request was accepted before: the job is that one, the caller's objects are unused.
	Existing bool
}

// entryBody is the value of a key entry.
type entryBody struct {
	Version   int    `json:"v"`
	Job       job.ID `json:"job_id"`
	InputHash string `json:"input_hash"`
	// Confirmed tells that the record was there after the entry.
	Confirmed bool `json:"confirmed,omitempty"`
}

const entryVersion = 1

// pollEvery is how often a record is looked for that another coordinator is about to write.
const pollEvery = 20 * time.Millisecond

// Find is the job that a key stands for now: live or done; nil when the key is free.
func (s *Store) Find(ctx context.Context, tenant job.Tenant, key string) (*job.Record, error) {
	if key == "" {
		return nil, nil
	}
	_, entry, err := s.keyEntry(ctx, wire.IdempotencyKey(tenant, key))
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	holder, err := s.Fetch(ctx, entry.Job)
	if fault.KindOf(err) == fault.NotFound {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch holder.Record.State {
	case job.Active, job.Done:
		return holder.Record, nil
	case job.Cancelling, job.Failed, job.Cancelled:
	}
	return nil, nil
}

// judge decides by invariant 7 what the holder of a key means for a request: it is the same one, or a conflict, or
// (neither) the key is free.
func judge(holder Job, key, inputHash string) (existing bool, err error) {
	r := holder.Record
	same := r.InputHash == inputHash
	switch r.State {
	case job.Active:
		if !same {
			return false, fault.WithHint(
				fault.New(fault.Conflict, "key %q belongs to job %s, which has another input and has not ended", key, r.ID),
				"use another key, or cancel that job")
		}
		return true, nil
	case job.Done:
		return same, nil
	case job.Cancelling, job.Failed, job.Cancelled:
	}
	return false, nil
}

// Create stores a new job; its slices and inputs must be stored already. Under one key, of requests at the same time
// exactly one creates a job. The record must be new: active, nothing claimed. fault.Conflict: another input has the
// key.
func (s *Store) Create(ctx context.Context, r *job.Record) (Created, error) {
	data, err := encode(r)
	if err != nil {
		return Created{}, err
	}
	if err := check(r.ID, r); err != nil {
		return Created{}, fault.As(fault.Invalid, fmt.Errorf("create job %s: %w", r.ID, err))
	}
	if r.Key == "" {
		return s.createRecord(ctx, r, data)
	}
	key := wire.IdempotencyKey(r.Tenant, r.Key)
	for range conflictsMax {
		revision, existing, err := s.takeKey(ctx, key, r)
		if err != nil || existing != nil {
			return Created{Job: deref(existing), Existing: existing != nil}, err
		}
		if revision == 0 {
			continue // somebody else was faster
		}
		created, err := s.createRecord(ctx, r, data)
		if err != nil {
			return Created{}, err
		}
		body, err := json.Marshal(entryBody{Version: entryVersion, Job: r.ID, InputHash: r.InputHash, Confirmed: true})
		if err != nil {
			return Created{}, fmt.Errorf("encode key of job %s: %w", r.ID, err)
		}
		if _, err = s.swap(ctx, key, body, revision); err == nil {
			return created, nil
		}
		if fault.KindOf(err) != fault.Conflict {
			// The record is there: the job is accepted, and the leader confirms.
			return created, nil
		}
		mine, err := s.Confirm(ctx, created.Job.Record)
		if err != nil || mine {
			return created, nil
		}
		if err := s.delete(ctx, wire.JobKey(r.ID), created.Job.Revision); err != nil {
			return Created{}, fmt.Errorf("take back job %s, whose key went to another: %w", r.ID, err)
		}
	}
	return Created{}, fault.New(fault.Transient, "create job %s: its key changed hands %d times", r.ID, conflictsMax)
}

func deref(j *Job) Job {
	if j == nil {
		return Job{}
	}
	return *j
}

func (s *Store) createRecord(ctx context.Context, r *job.Record, data []byte) (Created, error) {
	callCtx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	revision, err := s.kv.Create(callCtx, wire.JobKey(r.ID), data)
	if err != nil {
		return Created{}, fmt.Errorf("create record of job %s: %w", r.ID, err)
	}
	j := Job{Record: clone(r), Revision: revision, bytes: len(data)}
	s.view.put(j)
	return Created{Job: j}, nil
}

// takeKey makes the key entry name a job. It gives the entry's revision; or the job that the request stands for
// already; or neither, when it has to be tried again.
func (s *Store) takeKey(ctx context.Context, key string, r *job.Record) (revision uint64, existing *Job, err error) {
	body, err := json.Marshal(entryBody{Version: entryVersion, Job: r.ID, InputHash: r.InputHash})
	if err != nil {
		return 0, nil, fmt.Errorf("encode key of job %s: %w", r.ID, err)
	}
	callCtx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	revision, err = s.kv.Create(callCtx, key, body)
	if err == nil {
		return revision, nil, nil
	}
	if fault.KindOf(err) != fault.Conflict {
		return 0, nil, fmt.Errorf("create key of job %s: %w", r.ID, err)
	}
	e, entry, err := s.keyEntry(ctx, key)
	if fault.KindOf(err) == fault.NotFound {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	holder, found, err := s.awaitRecord(ctx, entry)
	if err != nil {
		return 0, nil, err
	}
	if found {
		same, err := judge(holder, r.Key, r.InputHash)
		if err != nil {
			return 0, nil, err
		}
		if same {
			return 0, &holder, nil
		}
	}
	revision, err = s.swap(ctx, key, body, e.Revision)
	if fault.KindOf(err) == fault.Conflict {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, fmt.Errorf("take over key of job %s: %w", r.ID, err)
	}
	return revision, nil, nil
}

// awaitRecord waits for the record that a key entry names, for as long as its writer may take; for one that was written
// for as long as a server may be behind that led a moment ago.
func (s *Store) awaitRecord(ctx context.Context, entry entryBody) (Job, bool, error) {
	since, grace := time.Now(), s.cfg.KeyGrace
	if entry.Confirmed {
		grace = s.cfg.RollbackAfter
	}
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		j, err := s.Fetch(ctx, entry.Job)
		if err == nil {
			return j, true, nil
		}
		if fault.KindOf(err) != fault.NotFound {
			return Job{}, false, err
		}
		if time.Since(since) >= grace {
			return Job{}, false, nil
		}
		select {
		case <-ctx.Done():
			return Job{}, false, fmt.Errorf("wait for record of job %s: %w", entry.Job, ctx.Err())
		case <-ticker.C:
		}
	}
}

// Confirm makes sure that a job's key is its own before anything of it starts. false: another job took the key over,
// and the record must go (see Remove).
func (s *Store) Confirm(ctx context.Context, r *job.Record) (mine bool, err error) {
	if r.Key == "" {
		return true, nil
	}
	key := wire.IdempotencyKey(r.Tenant, r.Key)
	body, err := json.Marshal(entryBody{Version: entryVersion, Job: r.ID, InputHash: r.InputHash, Confirmed: true})
	if err != nil {
		return false, fmt.Errorf("encode key of job %s: %w", r.ID, err)
	}
	for range conflictsMax {
		e, entry, err := s.keyEntry(ctx, key)
		switch {
		case fault.KindOf(err) == fault.NotFound:
			_, err = s.createKey(ctx, key, body) // somebody removed it: put it back
		case err != nil:
			return false, err
		case entry.Job != r.ID:
			return false, nil
		case entry.Confirmed:
			return true, nil
		default:
			_, err = s.swap(ctx, key, body, e.Revision)
		}
		if err == nil {
			return true, nil
		}
		if fault.KindOf(err) != fault.Conflict {
			return false, fmt.Errorf("confirm key of job %s: %w", r.ID, err)
		}
	}
	return false, fault.New(fault.Transient, "confirm key of job %s: changed by others %d times", r.ID, conflictsMax)
}

func (s *Store) createKey(ctx context.Context, key string, body []byte) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	return s.kv.Create(ctx, key, body)
}

func (s *Store) keyEntry(ctx context.Context, key string) (bus.Entry, entryBody, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.CallTimeout)
	defer cancel()
	e, err := s.kv.Get(ctx, key)
	if err != nil {
		return bus.Entry{}, entryBody{}, fmt.Errorf("read key entry %s: %w", key, err)
	}
	var body entryBody
	if err := json.Unmarshal(e.Value, &body); err != nil {
		return bus.Entry{}, entryBody{}, fault.As(fault.Corrupt, fmt.Errorf("decode key entry %s: %w", key, err))
	}
	if body.Version < 1 || body.Version > entryVersion {
		return bus.Entry{}, entryBody{}, fault.New(fault.Corrupt, "key entry %s: version %d", key, body.Version)
	}
	if _, err := job.ParseID(string(body.Job)); err != nil {
		return bus.Entry{}, entryBody{}, fault.As(fault.Corrupt, fmt.Errorf("decode key entry %s: %w", key, err))
	}
	return e, body, nil
}
