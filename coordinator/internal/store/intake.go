package store

import (
	"context"

	"github.com/proofrack/proofrack/shared/job"
)

// Records is the store as intake needs it.
type Records struct{ Store *Store }

// Find is the job that a key stands for now: live or done, or nil.
func (r Records) Find(ctx context.Context, tenant job.Tenant, key string) (*job.Record, error) {
	return r.Store.Find(ctx, tenant, key)
}

// Create stores a record and its key entry; existing is the job that the key stands for already.
func (r Records) Create(ctx context.Context, record *job.Record) (existing *job.Record, err error) {
	created, err := r.Store.Create(ctx, record)
	if err != nil || !created.Existing {
		return nil, err
	}
	return created.Job.Record, nil
}

// LiveCount is how many of a tenant's jobs have not ended.
func (r Records) LiveCount(tenant job.Tenant) int {
	v := r.Store.view
	v.mu.RLock()
	defer v.mu.RUnlock()
	count := 0
	for id := range v.live {
		if v.jobs[id].Record.Tenant == tenant {
			count++
		}
	}
	return count
}

// Slices is the store as intake keeps slices and public inputs in it.
type Slices struct{ Store *Store }

// Put stores an object and tells its size and digest.
func (s Slices) Put(ctx context.Context, name string, data []byte) (job.Object, error) {
	return s.Store.PutInput(ctx, name, data)
}

// Delete removes an object.
func (s Slices) Delete(ctx context.Context, name string) error { return s.Store.DeleteInput(ctx, name) }
