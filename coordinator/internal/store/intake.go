package store

import (
	"context"

	"github.com/proofrack/proofrack/shared/fault"
	"github.com/proofrack/proofrack/shared/hook"
	"github.com/proofrack/proofrack/shared/job"
)

// PointBeforeCreate is the test hook between the look at a job's key and the job's creation.
const PointBeforeCreate = "coordinator.before-create"

// Records is the store as intake needs it. Tenants is how many share it, at least 1.
type Records struct {
	Store   *Store
	Tenants int
	Hooks   *hook.Points // nil: none
}

// Find is the job that a key stands for now: live or done, or nil.
func (r Records) Find(ctx context.Context, tenant job.Tenant, key string) (*job.Record, error) {
	return r.Store.Find(ctx, tenant, key)
}

// Create stores a record and its key entry; existing is the job that the key stands for already.
func (r Records) Create(ctx context.Context, record *job.Record) (existing *job.Record, err error) {
	r.Hooks.Hit(ctx, PointBeforeCreate)
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

// Room is nil while a tenant's jobs that have not ended, and so many further bytes of slices, fit into its share of the
// buckets; else fault.Exhausted. Shares are equal, so that no tenant can fill the buckets for the others.
func (r Records) Room(tenant job.Tenant, bytes int64) error {
	tenants := int64(max(1, r.Tenants))
	slices, records := r.Store.heldBy(tenant)
	if share := r.Store.cfg.SliceBytesMax / tenants; r.Store.cfg.SliceBytesMax > 0 && slices+bytes > share {
		return fault.WithHint(fault.New(fault.Exhausted,
			"slices of tenant %s: %d bytes of jobs that have not ended and %d further ones are over its share of %d",
			tenant, slices, bytes, share), "submit again when some have ended, or ask the operator for more slice_bytes")
	}
	share := r.Store.cfg.BytesMax / recordShare / tenants
	if r.Store.cfg.BytesMax > 0 && records >= share {
		return fault.WithHint(fault.New(fault.Exhausted,
			"records of tenant %s: jobs that have not ended need %d bytes of its share of %d", tenant, records, share),
			"submit again when some have ended, or ask the operator for more job_bytes")
	}
	return nil
}

// Slices is the store as intake keeps slices and public inputs in it.
type Slices struct{ Store *Store }

// Put stores an object and tells its size and digest.
func (s Slices) Put(ctx context.Context, name string, data []byte) (job.Object, error) {
	return s.Store.PutInput(ctx, name, data)
}

// Delete removes an object.
func (s Slices) Delete(ctx context.Context, name string) error { return s.Store.DeleteInput(ctx, name) }
